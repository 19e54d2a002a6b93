// Ranks that somebody started with different parameters, data or sizes: all stop before the first
// step with 73, and say what differs.
#include "results/names.h"
#include "tests/integration/cli/paceline.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

const fs::path kMnistFolder = PACELINE_SOURCE_DIR "/data/mnist";

class Consistency : public Cli {
 protected:
  // Two ranks by hand, as torchrun's variables place them; each with arguments of its own.
  Ran gloo(const std::string& of_0, const std::string& of_1) const {
    return shell(two_ranks("paceline train mnist-mlp", of_0, of_1));
  }

  static std::string two_ranks(const std::string& program, const std::string& of_0,
                               const std::string& of_1) {
    const std::string run =
        " --gpus 2 --cpus-per-task 1 --oversubscribe --steps 5 --quiet "
        "--backend ring ";
    return "export WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 "
           "PACELINE_PORTS=21100-21999 PACELINE_TOKEN=consistency-$$\n"
           "RANK=1 LOCAL_RANK=1 " +
           program + run + of_1 + " 2> of_1 &\nRANK=0 LOCAL_RANK=0 " + program + run + of_0 +
           "; code=$?; wait $!; echo $? > code_1; cat of_1 >&2; exit $code";
  }

  // Both with 73 and the same line.
  void expect_mismatch(const Ran& ran, const std::vector<std::string>& parts) const {
    EXPECT_EQ(ran.code, 73) << ran.err;
    EXPECT_EQ(file_text(folder() / "code_1"), "73\n");
    for (const std::string& part : parts) {
      const auto first = ran.err.find(part);
      ASSERT_NE(first, std::string::npos) << part << " is not in: " << ran.err;
      EXPECT_NE(ran.err.find(part, first + 1), std::string::npos)
          << "of one rank only: " << ran.err;
    }
  }

  void SetUp() override {}
};

TEST_F(Consistency, ParametersAreNamedWithTheirValues) {
  const Ran ran = gloo("", "--learning-rate 0.01 --check-every 2 --log-every 1");
  expect_mismatch(
      ran, {"learning_rate: rank 0 0.001, rank 1 0.01", "check_every: rank 0 not there, rank 1 2"});
  expect_no_parts(ran.err, {"log_every"});  // may differ
}

// Ranks on unlike CPUs.
TEST_F(Consistency, ProductsOfBf16AreTheSameOnAllRanks) {
  if (!find_name("device", "cpu").built || !contains(file_text("/proc/cpuinfo"), "avx512_bf16")) {
    GTEST_SKIP() << "this CPU has one way to multiply bf16 at most";
  }
  const std::string program =
      "sh -c 'export PACELINE_ISA=avx512; [ $RANK = 0 ] || PACELINE_ISA=avx512bf16; "
      "exec \"" PACELINE_BINARY
      "\" train gpt-tiny --input synthetic --device cpu --precision bf16 \"$@\"' sh";
  const Ran ran = shell(two_ranks(program, "", ""));
  expect_mismatch(ran, {"device libraries: rank 0 oneDNN", ", bf16 widened to fp32, rank 1 oneDNN",
                        ", bf16 by pairs"});
}

TEST_F(Consistency, ProgressMayDiffer) {
  expect_success(gloo("--log-every 2", "--log-every 3"));
}

TEST_F(Consistency, DataOfOtherContentIsRefused) {
  fs::create_directory(folder() / "other");
  for (const auto& entry : fs::directory_iterator(kMnistFolder)) {
    fs::create_symlink(entry.path(), folder() / "other" / entry.path().filename());
  }
  expect_success(
      shell("cd other && gunzip -c t10k-labels-idx1-ubyte.gz > t10k-labels-idx1-ubyte && "
            "rm t10k-labels-idx1-ubyte.gz && "
            "printf '\\003' | dd of=t10k-labels-idx1-ubyte bs=1 seek=8 conv=notrunc"));
  expect_mismatch(gloo("--data '" + kMnistFolder.string() + "'", "--data other"),
                  {"data hash: rank 0 "});
}

TEST_F(Consistency, RanksUnderMpirunByHand) {
  if (!find_name("backend", "mpi").built) GTEST_SKIP() << "mpi is not built here";
  if (!mpirun_starts_two_programs()) GTEST_SKIP() << "this mpirun cannot start two programs";
  const std::string run = " '" PACELINE_BINARY
                          "' train mnist-mlp --gpus 2 --cpus-per-task 1 --oversubscribe --steps 5 "
                          "--quiet --backend mpi ";
  const Ran ran = shell(
      "export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 "
      "OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none\n"
      "timeout 60 mpirun -np 1" +
      run + "--seed 1 : -np 1" + run + "--seed 2");
  EXPECT_EQ(ran.code, 73) << ran.err;
  expect_parts(ran.err, {"ranks have different configurations: seed: rank 0 1, rank 1 2;"});
}

TEST_F(Consistency, ACheckOfReplicasThatMayDriftIsRefused) {
  expect_refused("train mnist-mlp --gpus 2 --backend null --check-every 1", 64,
                 {"backend null lets them drift apart", "leave check_every out"});
}

}  // namespace
}  // namespace paceline
