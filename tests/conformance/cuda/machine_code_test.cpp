// Limits of what ptxas makes of our kernels for sm_90: registers, memory of a thread's own, and
// instructions of the loops in which our kernels spend a training step. A change that passes a
// limit makes a kernel slower, or needs a reason to raise it.
#include "tests/support/ptx/machine_code.h"

#include <gtest/gtest.h>

#include "engine/core/text.h"
#include "tests/support/scratch.h"

namespace paceline::ptx {
namespace {

namespace fs = std::filesystem;

// Compiled once for all tests.
struct Compiled {
  MachineCode code;
  std::string why_not, why_no_loops;

  Compiled() {
    const Scratch scratch;
    const std::string program = (scratch / "kernels.cubin").string();
    const std::string printed = (scratch / "printed").string();
    const auto run = [&](const std::string& command) {
      return std::system((command + " > " + printed + " 2>&1").c_str()) == 0;
    };
    const std::string ptxas = PACELINE_PTXAS, nvdisasm = PACELINE_NVDISASM;
    if (!fs::exists(ptxas)) {
      why_not = "there is no ptxas beside nvcc";
      return;
    }
    run(ptxas + " --version");
    if (file_text(printed).find("release 13.0,") == std::string::npos) {
      why_not = "these limits are those of CUDA 13.0";
      return;
    }
    if (!fs::exists(nvdisasm)) {
      why_no_loops = "there is no nvdisasm (pip install nvidia-cuda-nvdisasm)";
    }
    for (const std::string& file : split(PACELINE_PTX, ':')) {
      if (!run(ptxas + " -arch=sm_90 -v " + file + " -o " + program)) {
        throw std::runtime_error(file_text(printed));
      }
      read_sizes(file_text(printed), code);
      if (!why_no_loops.empty()) continue;
      if (!run(nvdisasm + " " + program)) throw std::runtime_error(file_text(printed));
      read_loops(file_text(printed), code);
    }
  }
};

const Compiled& compiled() {
  static const Compiled kCompiled;
  return kCompiled;
}

struct Limit {
  const char* kernel;
  int accesses, vectors;        // of 16 bytes, and vectors of 8 elements, in its loop
  int registers, instructions;  // at most; instructions a vector
};

constexpr Limit kLimits[] = {
    {"ChannelSums<paceline::cuda::NormStatistics<paceline::cuda::Bf16> >", 4, 4, 64, 42},
    {"NormApply<paceline::cuda::Bf16>", 4, 2, 72, 95},
    {"NormApply<paceline::cuda::Bf16>", 6, 2, 72, 112},
    {"ChannelSums<paceline::cuda::NormGradientSums<paceline::cuda::Bf16, false> >", 8, 4, 72, 80},
    {"ChannelSums<paceline::cuda::NormGradientSums<paceline::cuda::Bf16, true> >", 12, 4, 104, 108},
    {"NormGradient<paceline::cuda::Bf16, false>", 6, 2, 72, 80},
    {"NormGradient<paceline::cuda::Bf16, false>", 8, 2, 72, 90},
    {"NormGradient<paceline::cuda::Bf16, true>", 10, 2, 104, 120},
    {"NormPool<paceline::cuda::Bf16>", 14, 1, 80, 775},
    {"ChannelSums<paceline::cuda::NormPoolGradientSums<paceline::cuda::Bf16> >", 2, 2, 96, 785},
    {"NormPoolGradient<paceline::cuda::Bf16>", 22, 4, 96, 230},
    {"MaxPool<paceline::cuda::Bf16>", 10, 1, 80, 825},
    {"MaxPoolBackward<paceline::cuda::Bf16>", 12, 4, 72, 190},
};

// Attention holds rows in registers: with blocks of 128 threads, two still fit.
TEST(MachineCode, NoKernelSpillsAndTwoBlocksOfAnyFitOnAMultiprocessor) {
  if (!compiled().why_not.empty()) GTEST_SKIP() << compiled().why_not;
  EXPECT_GT(compiled().code.size(), 90U);
  for (const auto& [name, kernel] : compiled().code) {
    const bool attention = name.starts_with("paceline::cuda::Attention");
    const int stack = attention ? 128 : name.starts_with("paceline::cuda::Dropout<") ? 16 : 0;
    EXPECT_LE(kernel.spill_bytes, attention ? 256 : 0) << name;
    EXPECT_LE(kernel.stack_bytes, stack) << name;
    EXPECT_LE(kernel.registers, 65536 / (attention ? 128 : 256) / 2) << name;
    EXPECT_GT(kernel.registers, 0) << name;
  }
}

TEST(MachineCode, HotLoopsKeepTheirLimits) {
  if (!compiled().why_not.empty()) GTEST_SKIP() << compiled().why_not;
  const bool has_loops = compiled().why_no_loops.empty();
  std::printf("%-60s %9s %12s\n", "kernel (accesses a vector)", "registers", "instructions");
  for (const Limit& limit : kLimits) {
    const auto found = compiled().code.find(std::string("paceline::cuda::") + limit.kernel);
    ASSERT_NE(found, compiled().code.end()) << limit.kernel;
    const KernelCode& kernel = found->second;
    EXPECT_LE(kernel.registers, limit.registers) << limit.kernel;
    const double loop = static_cast<double>(kernel.shortest_loop(limit.accesses)) / limit.vectors;
    std::printf("%-56s (%g) %9d %12g\n", limit.kernel,
                static_cast<double>(limit.accesses) / limit.vectors, kernel.registers, loop);
    if (!has_loops) continue;
    EXPECT_GT(loop, 0) << limit.kernel << " has no loop with " << limit.accesses << " accesses";
    EXPECT_LE(loop, limit.instructions) << limit.kernel;
  }
  if (!has_loops) GTEST_SKIP() << compiled().why_no_loops;
}

TEST(MachineCode, LoopsAreBranchesBack) {
  MachineCode code;
  read_sizes(
      "ptxas info    : Compiling entry function 'k' for 'sm_90'\n"
      "    16 bytes stack frame, 4 bytes spill stores, 8 bytes spill loads\n"
      "ptxas info    : Used 18 registers, used 0 barriers\n",
      code);
  read_loops(
      ".text.k:\n"
      "        /*0000*/                   LDC R1, c[0x0][0x28] ;\n"
      ".L_x_1:\n"
      "        /*0010*/                   LDG.E.128 R4, [R2] ;\n"
      "        /*0020*/              @!P0 BRA `(.L_x_1) ;\n"
      "        /*0030*/                   BRA `(.L_x_2) ;\n"
      ".L_x_2:\n"
      "        /*0040*/                   EXIT ;\n"
      ".L_x_3:\n"
      "        /*0050*/                   BRA `(.L_x_3);\n",
      code);
  ASSERT_EQ(code.size(), 1U);
  const KernelCode& kernel = code["k"];
  EXPECT_EQ(kernel.registers, 18);
  EXPECT_EQ(kernel.stack_bytes, 16);
  EXPECT_EQ(kernel.spill_bytes, 12);
  ASSERT_EQ(kernel.loops.size(), 1U);
  EXPECT_EQ(kernel.shortest_loop(1), 2);
  EXPECT_EQ(kernel.shortest_loop(2), 0);
}

}  // namespace
}  // namespace paceline::ptx
