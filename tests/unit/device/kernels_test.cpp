// Which instruction set a CPU gets: a table decides what its products of bf16 are worth.
#include "engine/device/cpu/kernels.h"

#include <gtest/gtest.h>

namespace paceline::cpu {
namespace {

using Sets = std::vector<std::string_view>;

#if defined(__x86_64__)

constexpr bool kYes = true, kNo = false;

TEST(InstructionSets, PairsComeFirstWhereTheyAreFast) {
  EXPECT_EQ(instruction_sets({"AuthenticAMD", kYes, kYes, kYes, kNo}),
            Sets({"avx512bf16", "avx512", "avx2", "baseline"}));
}

TEST(InstructionSets, Bf16IsWidenedWherePairsAreSlowOrNotMeasured) {
  for (const char* vendor : {"GenuineIntel", "CentaurHauls", ""}) {
    EXPECT_EQ(instruction_sets({vendor, kYes, kYes, kYes, kNo}),
              Sets({"avx512", "avx512bf16", "avx2", "baseline"}))
        << vendor;
  }
  EXPECT_EQ(kernels_for("avx2").bf16_products, Bf16Products::none);
}

TEST(InstructionSets, TilesComeFirst) {
  EXPECT_EQ(instruction_sets({"GenuineIntel", kYes, kYes, kYes, kYes}),
            Sets({"amx", "avx512", "avx512bf16", "avx2", "baseline"}));
}

TEST(InstructionSets, OthersHaveNoPairs) {
  EXPECT_EQ(instruction_sets({"GenuineIntel", kYes, kYes, kNo, kNo}),
            Sets({"avx512", "avx2", "baseline"}));
  EXPECT_EQ(instruction_sets({"AuthenticAMD", kYes, kNo, kNo, kNo}), Sets({"avx2", "baseline"}));
}

#endif

TEST(InstructionSets, TheBestOfThisCpuIsTheDefault) {
  EXPECT_EQ(&kernels_for(""), &kernels_for(instruction_sets_here().front()));
}

}  // namespace
}  // namespace paceline::cpu
