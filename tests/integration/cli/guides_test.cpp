// The centres' guides: their studies run, and what they get wrong is right here (docs/guides.md).
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "results/names.h"
#include "tests/integration/cli/paceline.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::contains;
using testing::Ran;

constexpr char kSmall[] =
    "train mnist-mlp --quiet --json --test-limit 500 --cpus-per-replica 1 --oversubscribe ";

class Guides : public testing::Cli {
 protected:
  json record(const std::string& arguments) const {
    const Ran ran = paceline(kSmall + arguments);
    EXPECT_EQ(ran.code, 0) << ran.err;
    return json::parse(ran.out, nullptr, false);
  }
  // One small run of each point of a shipped study that can run here.
  void expect_study(const std::string& name, const std::string& smaller, std::size_t points) const {
    SCOPED_TRACE(name);
    const Ran ran =
        shell("timeout 110 '" PACELINE_BINARY "' sweep '" PACELINE_SOURCE_DIR "/sweeps/" + name +
              ".json' --repeats 1 --results out " + smaller);
    EXPECT_EQ(ran.code, 0) << ran.err;
    std::size_t found = 0;
    for (const auto& entry : fs::recursive_directory_iterator(folder() / "out" / name)) {
      if (entry.path().filename() != "1.1.json") continue;
      const json one = json::parse(text_of(entry.path()));
      EXPECT_EQ(one["status"], "completed");
      ++found;
    }
    EXPECT_EQ(found, points);
  }
};

constexpr char kFew[] =
    "--set oversubscribe=true --set cpus_per_replica=1 --set test_limit=200 --set steps=4 "
    "--set gpus=1,2";

TEST_F(Guides, Sigma2MnistRuns) {
  expect_study("sigma2-mnist", "--set epochs=2 --set cpus_per_replica=1", 1);
}

TEST_F(Guides, Sigma2MirroredRuns) {
  expect_study("sigma2-mirrored", kFew, 2);
}

TEST_F(Guides, Sigma2HorovodRuns) {
  if (!find_name("backend", "mpi").built) GTEST_SKIP() << "mpi is not built here";
  expect_study("sigma2-horovod", kFew, 2);
}

TEST_F(Guides, MlDistMnistRuns) {
  expect_study("ml-dist-mnist", std::string(kFew) + " --set backend=gloo --set device=cpu", 2);
}

TEST_F(Guides, NerscAdagradRuns) {
  if (!find_name("backend", "mpi").built) GTEST_SKIP() << "mpi is not built here";
  expect_study("nersc-adagrad", kFew, 2);
}

constexpr char kOneStep[] =
    "--set oversubscribe=true --set input=synthetic --set weights=none --set evaluate=none --set "
    "steps=1 --set gpus=1,2 --set backend=mirrored ";

TEST_F(Guides, IdrisCifar10Runs) {
  expect_study("idris-cifar10",
               std::string(kOneStep) + "--set batch_per_replica=2 --set cpus_per_replica=1", 2);
}

TEST_F(Guides, NyuCassavaRuns) {
  expect_study("nyu-cassava",
               std::string(kOneStep) + "--set batch_per_replica=1 --set cpus_per_task=2", 2);
}

// hvd.rank without parentheses is a function, which equals no number: nobody would write.
TEST_F(Guides, ExactlyOneRankWrites) {
  const json one = record(
      "--train-limit 640 --epochs 1 --gpus 2 --backend gloo --checkpoint-every 1epoch "
      "--run-dir run --tensorboard=tb");
  EXPECT_EQ(one["checkpoints"]["written"], 2) << "the initial weights, and the epoch's";
  std::size_t files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder() / "tb")) {
    files += entry.is_regular_file();
  }
  EXPECT_EQ(files, 2U) << "of training and of validation, not of each rank";
}

// "0" == 0 is false: of ranks that compare a text with a number none is the first.
TEST_F(Guides, RanksOfTheEnvironmentAreNumbers) {
  const std::string step =
      "SLURM_JOB_ID=1 SLURM_STEP_ID=0 SLURM_NTASKS=1 SLURM_STEP_NUM_TASKS=1 SLURM_LOCALID=0 "
      "SLURM_NODEID=0 SLURM_STEP_NUM_NODES=1 SLURM_STEP_TASKS_PER_NODE=1 SLURM_PROCID=";
  const std::string run = " paceline train mnist-mlp --steps 2 --cpus-per-task 1 --backend self";
  const Ran fine = shell("export " + step + "0;" + run);
  EXPECT_EQ(fine.code, 0) << fine.err;
  EXPECT_TRUE(contains(fine.err, "training loss")) << "rank 0 speaks: " << fine.err;
  const Ran text = shell("export " + step + "zero;" + run);
  EXPECT_EQ(text.code, 64) << text.err;
  EXPECT_TRUE(contains(text.err, "SLURM_PROCID")) << text.err;
}

// See integration.parity for the curve itself against Keras.
TEST_F(Guides, SoftmaxBeforeALossOfLogitsHardlyLearns) {
  const json right = record("--train-limit 6000 --epochs 3");
  const json wrong = record("--train-limit 6000 --epochs 3 --double-softmax");
  const auto loss = [](const json& one) {
    return one["quality"]["epochs"].back()["train_loss"].get<double>();
  };
  EXPECT_LT(loss(right), 0.5);
  EXPECT_GT(loss(wrong), 1.4612) << "log(e + 9) - 1 is the least that it can be";
  EXPECT_EQ(wrong["parameters"]["double_softmax"], true);
  EXPECT_NE(right["identity"], wrong["identity"]);
}

TEST_F(Guides, ARunWithOneLossDoesNotGoOnWithTheOther) {
  const std::string run =
      "train mnist-mlp --quiet --train-limit 640 --cpus-per-task 1 --epochs 1 "
      "--checkpoint-every 1epoch --run-dir run";
  ASSERT_EQ(paceline(run).code, 0);
  expect_refused(run + " --resume latest --double-softmax", 64,
                 {"mnist-mlp, softmax twice", "--weights"});
}

// Of fit() that is given all samples, every worker passes all of them: here each epoch is divided.
TEST_F(Guides, ReplicasDivideTheStepsOfAnEpoch) {
  const auto of = [&](int gpus, const std::string& length) {
    const json one = record("--train-limit 1280 --batch-per-replica 64 " + length + " --gpus " +
                            std::to_string(gpus) + (gpus > 1 ? " --backend mirrored" : ""));
    return std::pair{one["throughput"]["steps"].get<int>(),
                     one["throughput"]["samples"].get<int>()};
  };
  for (const int gpus : {1, 2, 4}) {
    EXPECT_EQ(of(gpus, "--epochs 2"), (std::pair{40 / gpus, 2 * 1280})) << gpus;
    EXPECT_EQ(of(gpus, "--epochs 2 --steps-per-epoch 8/replicas"), (std::pair{16 / gpus, 16 * 64}))
        << gpus;
  }
  // A last step is of the run and not divided: N replicas take N times the samples.
  EXPECT_EQ(of(1, "--steps 6"), (std::pair{6, 6 * 64}));
  EXPECT_EQ(of(2, "--steps 6"), (std::pair{6, 12 * 64}));
}

// 1000 samples are 15.6 batches of 64.
TEST_F(Guides, TheLastBatchIsKeptUnlessItIsDropped) {
  for (const char* replicas : {"--gpus 1", "--gpus 2 --backend mirrored --batch-per-replica 32"}) {
    const std::string run = std::string("--train-limit 1000 --epochs 1 ") + replicas;
    const json kept = record(run), dropped = record(run + " --last-batch drop");
    EXPECT_EQ(kept["throughput"]["samples"], 1000);
    EXPECT_EQ(kept["throughput"]["steps"], 16);
    EXPECT_EQ(dropped["throughput"]["samples"], 960);
    EXPECT_EQ(dropped["throughput"]["steps"], 15);
  }
}

}  // namespace
}  // namespace paceline
