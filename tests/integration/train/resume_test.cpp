// A run that goes on from a checkpoint is the run that was never interrupted.
#include <gtest/gtest.h>

#include <atomic>
#include <fstream>

#include "engine/device/cuda/gpu_runtime.h"
#include "engine/train/checkpoint/manager.h"
#include "tests/integration/train/training.h"
#include "tests/support/expect_error.h"
#include "tests/support/host_cuda/host_runtime.h"
#include "tests/support/scratch.h"

namespace paceline::training {

using TrainingRun = Run;

namespace {

// Small, with dropout, batch_norm and a convolution whose layout differs between devices.
Network network() {
  Network n("small", {28, 28, 1}, 10);
  n.conv(6, 3, 2, 1).batch_norm(1e-3, 0.7).relu().max_pool(2).flatten().dense(16).relu();
  n.dropout(0.3).dense(10);
  return n;
}

const DatasetPair& data() {
  static const DatasetPair pair = mnist(200, 20);
  return pair;
}

class Resume : public ::testing::Test {
 protected:
  TrainingRun make_run(int replicas, int batch, std::size_t steps) {
    TrainingRun run;
    run.network = &network_;
    run.config.replicas = replicas;
    run.config.batch_per_replica = batch;
    run.config.step_limit = steps;
    run.config.epochs = 1000;
    run.config.evaluate = Evaluate::none;
    run.reported = &reported_;
    return run;
  }
  CheckpointSetup every(const std::string& schedule) const {
    CheckpointSetup setup;
    setup.schedule = parse_checkpoint_schedule(schedule, "");
    setup.run = scratch_ / "run";
    setup.workload = "small";
    return setup;
  }
  CheckpointSetup from(const std::string& name) const {
    CheckpointSetup setup;
    setup.workload = "small";
    setup.resume = scratch_ / "run" / "checkpoints" / name;
    return setup;
  }
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const auto& one : find_checkpoints(scratch_ / "run")) {
      all.push_back(one.folder.filename());
    }
    return all;
  }

  // 40 steps in one go, and 17 and then 23: within an epoch, whose last batch is incomplete.
  void expect_equal(TrainingRun run) {
    const Result whole = train(run, data());
    const CheckpointSetup saving = every("17 steps"), going_on = from("small-0002-step-00000017");
    run.checkpoints = &saving;
    run.config.step_limit = 17;
    EXPECT_NE(train(run, data()).parameters[0], whole.parameters[0]);
    run.checkpoints = &going_on;
    run.config.step_limit = 40;
    const Result second = train(run, data());
    EXPECT_TRUE(second.outcome.resumed);
    EXPECT_EQ(second.outcome.steps, 23U);
    EXPECT_EQ(second.outcome.resumed_after, 17U);
    EXPECT_EQ(second.parameters, whole.parameters);
    EXPECT_EQ(second.statistics, whole.statistics);
    ASSERT_EQ(second.outcome.quality.epochs.size(), whole.outcome.quality.epochs.size());
    for (std::size_t i = 0; i < whole.outcome.quality.epochs.size(); ++i) {
      EXPECT_NEAR(second.outcome.quality.epochs[i].train_loss.value(),
                  whole.outcome.quality.epochs[i].train_loss.value(), 1e-9);
    }
  }

  Scratch scratch_;
  Network network_ = network();
  std::vector<std::string> reported_;
};

TEST_F(Resume, IsBitForBitTheUninterruptedRun) {
  expect_equal(make_run(1, 32, 40));
}

TEST_F(Resume, OfReplicasWithStatisticsOfTheirOwn) {
  TrainingRun run = make_run(3, 11, 40);
  run.input_threads = 1;
  expect_equal(run);
}

TEST_F(Resume, WeightsAloneAreWhereARunBegins) {
  TrainingRun run = make_run(2, 16, 12);
  CheckpointSetup saving = every("6 steps");
  saving.content = CheckpointContent::model;
  run.checkpoints = &saving;
  const Result trained = train(run, data());
  EXPECT_EQ(names(), (std::vector<std::string>{"small-0000", "small-0000-step-00000006",
                                               "small-0001-step-00000012"}));
  const std::filesystem::path folder = scratch_ / "run" / "checkpoints";
  for (const std::string& name : names()) {
    EXPECT_TRUE(std::filesystem::exists(folder / name / kParametersFile));
    EXPECT_FALSE(std::filesystem::exists(folder / name / "optimizer.safetensors"));
    EXPECT_FALSE(std::filesystem::exists(folder / name / "statistics.safetensors"));
  }
  // The last ones, and those before the first step.
  run.checkpoints = nullptr;
  run.config.update = false;
  const Result untrained = train(run, data());
  run.config.seed = 2;
  run.config.weights = folder / "small-0001-step-00000012" / kParametersFile;
  EXPECT_EQ(train(run, data()).parameters, trained.parameters);
  run.config.weights = folder / "small-0000" / kParametersFile;
  EXPECT_EQ(train(run, data()).parameters, untrained.parameters);
  EXPECT_NE(untrained.parameters, trained.parameters);
  run.config.weights.clear();
  const CheckpointSetup going_on = from("small-0000-step-00000006");
  run.checkpoints = &going_on;
  expect_error(
      ErrorKind::usage,
      {"weights only, without the optimizer's state", "small-0000-step-00000006", "--weights"},
      [&] { train(run, data()); });
  run.config.optimizer = Optimizer::sgd;
  expect_error(ErrorKind::usage, {"weights only, without each rank's running averages"},
               [&] { train(run, data()); });
}

TEST_F(Resume, OfEveryOptimizer) {
  for (const Optimizer optimizer : {Optimizer::sgd, Optimizer::momentum, Optimizer::adagrad}) {
    SCOPED_TRACE(to_string(optimizer));
    TrainingRun run = make_run(1, 32, 40);
    run.config.optimizer = optimizer;
    expect_equal(run);
    std::filesystem::remove_all(scratch_ / "run");
  }
}

TEST_F(Resume, InDoubleLosesNoDigit) {
  TrainingRun run = make_run(1, 32, 40);
  run.device = "reference";
  expect_equal(run);
}

TEST_F(Resume, OfAnEndlessStream) {
  TrainingRun run = make_run(2, 16, 40);
  run.config.steps_per_epoch = 7;
  expect_equal(run);
}

TEST_F(Resume, OnAEmulatedGpuWithItsOwnLayoutsAndLossScale) {
  for (const cuda::Math math : {cuda::Math::fp32, cuda::Math::fp16}) {
    TrainingRun run = make_run(2, 16, 40);
    run.make_device = [math] {
      auto runtime = cuda::make_host_runtime();
      auto products = cuda::make_host_products(*runtime);
      cuda::CudaDeviceOptions options;
      options.math = math;
      return make_device_on(std::move(runtime), std::move(products), options);
    };
    expect_equal(run);
    std::filesystem::remove_all(scratch_ / "run");
  }
}

// Without batch_norm two replicas of 16 are one of 32.
TEST_F(Resume, AtAnotherWorldSizeTakesTheSameSamples) {
  Network plain("plain", {28, 28, 1}, 10);
  plain.flatten().dense(16).relu().dropout(0.3).dense(10);
  TrainingRun run = make_run(2, 16, 40);
  run.network = &plain;
  run.device = "reference";
  const Result whole = train(run, data());
  const CheckpointSetup saving = every("9 steps"), going_on = from("small-0001-step-00000009");
  run.checkpoints = &saving;
  run.config.step_limit = 9;
  train(run, data());
  for (const auto& [replicas, batch] : {std::pair{1, 32}, {4, 8}}) {
    TrainingRun other = make_run(replicas, batch, 40);
    other.network = &plain;
    other.device = "reference";
    other.checkpoints = &going_on;
    const Result result = train(other, data());
    EXPECT_EQ(result.outcome.steps, 31U);
    for (const auto& [name, values] : whole.parameters[0]) {
      for (std::size_t i = 0; i < values.size(); ++i) {
        ASSERT_NEAR(result.parameters[0].at(name)[i], values[i], 1e-9) << name;
      }
    }
  }
}

// 9 steps of 32 of 200: two epochs' worth of 64 end after 4 + 4 steps, of which 88 samples are left
// in the second.
TEST_F(Resume, AtAnotherGlobalBatchTakesWhatIsLeftOfTheEpoch) {
  TrainingRun run = make_run(1, 32, 9);
  const CheckpointSetup saving = every("9 steps"), going_on = from("small-0001-step-00000009");
  run.checkpoints = &saving;
  train(run, data());
  TrainingRun other = make_run(2, 32, 0);
  other.config.epochs = 2;
  other.checkpoints = &going_on;
  const Result result = train(other, data());
  EXPECT_EQ(result.outcome.samples, 400U - 200U - 2U * 32U);
  EXPECT_EQ(result.outcome.steps, 3U);  // 64, 64, 8
  ASSERT_EQ(result.outcome.quality.epochs.size(), 2U);
}

TEST_F(Resume, AtAnotherWorldSizeTakesTheMeanOfRunningAverages) {
  TrainingRun run = make_run(2, 16, 5);
  const CheckpointSetup saving = every("5 steps"), going_on = from("small-0000-step-00000005");
  run.checkpoints = &saving;
  const Result two = train(run, data());
  EXPECT_NE(two.statistics[0], two.statistics[1]);
  TrainingRun other = make_run(1, 32, 5);  // nothing is left to do
  other.checkpoints = &going_on;
  const Result one = train(other, data());
  EXPECT_EQ(one.outcome.steps, 0U);
  for (const auto& [name, values] : one.statistics[0]) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      EXPECT_FLOAT_EQ(
          static_cast<float>(values[i]),
          static_cast<float>((two.statistics[0].at(name)[i] + two.statistics[1].at(name)[i]) / 2));
    }
  }
}

TEST_F(Resume, WritesWhatItIsReported) {
  TrainingRun run = make_run(2, 25, 0);  // 4 steps an epoch
  run.config.epochs = 3;
  CheckpointSetup setup = every("1 epoch");
  run.checkpoints = &setup;
  const Result result = train(run, data());
  EXPECT_EQ(names(),
            (std::vector<std::string>{"small-0000", "small-0001", "small-0002", "small-0003"}));
  EXPECT_EQ(result.outcome.checkpoints.written, 4U);
  EXPECT_EQ(result.outcome.checkpoints.failed, 0U);
  EXPECT_GT(result.outcome.checkpoints.bytes, 0U);
  EXPECT_TRUE(std::filesystem::exists(setup.run / "model" / kManifestFile));

  setup = every("3 steps");
  setup.run = scratch_ / "other";
  setup.keep = 2;
  train(run, data());
  std::vector<std::string> kept;
  for (const auto& one : find_checkpoints(setup.run)) kept.push_back(one.folder.filename());
  EXPECT_EQ(kept, (std::vector<std::string>{"small-0002-step-00000009", "small-0003"}));
}

TEST_F(Resume, AStoppedRunIsSavedAndGoesOn) {
  TrainingRun run = make_run(2, 16, 300);
  const Result whole = train(run, data());
  CheckpointSetup setup = every("1000 epochs");
  std::atomic<int> asked{0};
  setup.stop_signal = [&] { return ++asked > 8 ? 15 : 0; };
  run.checkpoints = &setup;
  const Result stopped = train(run, data());
  ASSERT_TRUE(stopped.outcome.stopped);
  EXPECT_LT(stopped.outcome.steps, 300U);
  CheckpointSetup going_on;
  going_on.workload = "small";
  std::vector<std::string> skipped;
  going_on.resume = find_latest(setup.run, skipped).value();
  run.checkpoints = &going_on;
  const Result rest = train(run, data());
  EXPECT_EQ(rest.outcome.resumed_after, stopped.outcome.steps);
  EXPECT_EQ(rest.parameters, whole.parameters);
}

TEST_F(Resume, RefusesWhatWouldNotGoOnAsItBegan) {
  TrainingRun run = make_run(1, 32, 3);
  CheckpointSetup saving = every("3 steps");
  const auto seed = [](const char* value) { return ResumeFact{value, OnChange::refused}; };
  const ResumeFact no_schedule{std::nullopt, OnChange::announced, true};
  saving.facts = {{"seed", seed("1")}, {"learning_rate", {"0.001"}}, {"schedule", no_schedule}};
  run.checkpoints = &saving;
  train(run, data());
  CheckpointSetup going_on = from("small-0000-step-00000003");
  run.checkpoints = &going_on;
  run.config.step_limit = 5;
  going_on.facts = {{"seed", seed("2")}};
  expect_error(ErrorKind::usage, {"seed is 2, but 1 in the checkpoint", "small-0000-step"},
               [&] { train(run, data()); });
  going_on.facts = {{"seed", seed("1")},
                    {"learning_rate", {"0.01"}},
                    {"schedule", {"cosine", OnChange::announced, true}},
                    {"epochs", {"9", OnChange::ignored}}};
  reported_.clear();
  train(run, data());
  EXPECT_NE(std::find(reported_.begin(), reported_.end(),
                      "resuming with changed settings: learning_rate 0.01 (was 0.001), "
                      "schedule cosine (was not given)"),
            reported_.end());
  going_on.workload = "large";
  expect_error(ErrorKind::usage, {"the checkpoint is for workload small", "not for large"},
               [&] { train(run, data()); });
}

TEST_F(Resume, ACheckpointThatCannotBeWrittenIsReportedAndFailsTheRunAtItsEnd) {
  TrainingRun run = make_run(2, 16, 40);  // longer than the write of the first checkpoint
  const CheckpointSetup setup = every("5 steps");
  run.checkpoints = &setup;
  run.report = [&](const Progress& progress) {
    if (progress.step != 6) return;
    // A folder that is a file takes nothing, whoever asks. Moved, not removed: one may be written.
    std::filesystem::rename(setup.run / "checkpoints", setup.run / "moved");
    std::ofstream(setup.run / "checkpoints") << "in the way";
  };
  run.config.log_every = 1;
  expect_error(ErrorKind::input, {"checkpoints"}, [&] { train(run, data()); });
}

}  // namespace
}  // namespace paceline::training
