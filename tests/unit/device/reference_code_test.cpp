#include "engine/device/cpu/reference_code.h"

#include <gtest/gtest.h>

namespace paceline::cpu {
namespace {

TEST(ReferenceCode, IsKnownByItsName) {
  for (const char* name : {"ref:any", "gemm:ref", "ref_fused_convolution:any"}) {
    EXPECT_TRUE(is_reference_code(name, true)) << name;
  }
  for (const char* name : {"brg:avx512_core", "jit:sve_512", "jit_1x1:avx2", "acl", ""}) {
    EXPECT_FALSE(is_reference_code(name, false)) << name;
  }
}

TEST(ReferenceCode, IsTheGeneralProductWhereNoneIsGenerated) {
  EXPECT_FALSE(is_reference_code("gemm:jit", true));
  EXPECT_TRUE(is_reference_code("gemm:jit", false));
}

TEST(ReferenceCode, IsWarnedOfInOneLine) {
  EXPECT_EQ(reference_code_warning({{"conv1", {"jit:sve_512"}}, {"relu1", {}}}, false), "");
  EXPECT_EQ(
      reference_code_warning({{"conv1", {"jit:sve_512", "gemm:ref"}}, {"dense1", {"gemm:jit"}}},
                             false),
      "oneDNN has no fast kernel on this kind of CPU for conv1, dense1: its reference code "
      "(gemm:jit, gemm:ref) computes right, but slowly; install a oneDNN with the Arm Compute "
      "Library");
}

TEST(ReferenceCode, OfManyLayersNamesAFew) {
  std::vector<LayerKernels> layers;
  for (int i = 1; i <= 5; ++i) layers.push_back({"conv" + std::to_string(i), {"ref:any"}});
  EXPECT_NE(reference_code_warning(layers).find("conv4, conv5: its"), std::string::npos);
  layers.push_back({"conv6", {"ref:any"}});
  EXPECT_NE(reference_code_warning(layers).find("conv4, 2 others: its"), std::string::npos);
}

}  // namespace
}  // namespace paceline::cpu
