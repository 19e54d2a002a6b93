// What `paceline train --tensorboard` leaves, read by our own reader and by TensorBoard's.
#include <fstream>
#include <map>
#include <set>

#include "engine/train/events/event_log.h"
#include "tests/integration/cli/paceline.h"
#include "tests/support/read_events.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

constexpr char kThreeEpochs[] =
    "mnist-mlp --train-limit 640 --test-limit 100 --batch-per-replica 32 --epochs 3 --quiet";

class Events : public Cli {
 protected:
  // The one run below logs/fit.
  fs::path run_folder(const std::string& above = "logs/fit") const {
    std::vector<fs::path> runs;
    for (const auto& entry : fs::directory_iterator(folder() / above)) runs.push_back(entry.path());
    EXPECT_EQ(runs.size(), 1U);
    return runs.at(0);
  }
  static std::vector<Event> events(const fs::path& side) {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(side)) files.push_back(entry.path());
    EXPECT_EQ(files.size(), 1U) << "rank 0 alone writes";
    return read_events(files.at(0)).events;
  }
  // tag -> step -> value
  static std::map<std::string, std::map<std::int64_t, double>> scalars(const fs::path& side) {
    std::map<std::string, std::map<std::int64_t, double>> all;
    for (const Event& event : events(side)) {
      for (const auto& [tag, value] : event.scalars) all[tag][event.step] = value;
    }
    return all;
  }
};

TEST_F(Events, HaveKerasNamesAndTheRecordsValues) {
  const Ran ran = succeed(std::string("train ") + kThreeEpochs +
                          " --evaluate epoch --gpus 2 --backend mirrored --cpus-per-task 2 "
                          "--log-every 5 --histogram-freq 2 --json --tensorboard");
  const fs::path run = run_folder();
  EXPECT_TRUE(contains(run.filename(), "-mnist-mlp,gpus=2,")) << run;
  auto train = scalars(run / "train"), validation = scalars(run / "validation");
  for (const char* tag : {"epoch_loss", "epoch_accuracy", "epoch_learning_rate", "epoch_seconds",
                          "epoch_steps_per_second", "epoch_samples_per_second",
                          "phases/forward_seconds", "phases/communication_seconds"}) {
    EXPECT_EQ(train[tag].size(), 3U) << tag;
    EXPECT_TRUE(train[tag].count(0) && train[tag].count(2)) << tag;
  }
  EXPECT_EQ(train["batch_loss"].size(), 6U);
  EXPECT_TRUE(train["batch_loss"].count(30));
  EXPECT_EQ(validation["epoch_accuracy"].size(), 3U);
  EXPECT_TRUE(validation["evaluation_loss_vs_iterations"].count(10));
  EXPECT_GT(train["epoch_loss"][0], train["epoch_loss"][2]);
  EXPECT_TRUE(contains(ran.out, "\"events_seconds\""));
  std::set<std::string> tags;
  std::set<std::int64_t> epochs;
  for (const Event& event : events(run / "train")) {
    for (const auto& distribution : event.histograms) {
      tags.insert(distribution.tag);
      epochs.insert(event.step);
    }
  }
  EXPECT_EQ(tags, (std::set<std::string>{"dense/kernel/histogram", "dense/bias/histogram",
                                         "dense_1/kernel/histogram", "dense_1/bias/histogram"}));
  EXPECT_EQ(epochs, (std::set<std::int64_t>{0, 2}));
}

TEST_F(Events, RunsDoNotShareAFolder) {
  const std::string line =
      std::string("paceline train ") + kThreeEpochs + " --log-every 1000 --tensorboard=tb";
  expect_success(shell(line + " & " + line + "; wait"));
  std::size_t runs = 0;
  for (const auto& entry : fs::directory_iterator(folder() / "tb")) {
    EXPECT_EQ(events(entry.path() / "train").size(), 3U);
    ++runs;
  }
  EXPECT_EQ(runs, 2U);
}

// Killed while it writes: what lies there is whole, and is read.
TEST_F(Events, OfAKilledRunAreRead) {
  expect_success(shell(
      "timeout -s KILL 300 '" PACELINE_BINARY
      "' train mnist-mlp --epochs 100000 --train-limit 640 "
      "--log-every 1 --quiet --evaluate none --tensorboard & pid=$!\n"
      "for i in $(seq 2000); do sleep 0.1; size=$(cat logs/fit/*/train/* 2> /dev/null | wc -c); "
      "[ $size -gt 20000 ] && break; done\n"
      "pkill -KILL -P $pid; wait $pid; [ $size -gt 20000 ]"));
  const auto found = events(run_folder() / "train");
  EXPECT_GT(found.size(), 50U);
  EXPECT_EQ(found.front().step, 1);
}

TEST_F(Events, AreRefusedWhereTheyCannotBe) {
  expect_refused("train mnist-mlp --histogram-freq 1", 64, {"histogram_freq", "--tensorboard"});
  expect_refused("train mnist-mlp --tensorboard x --histogram-freq -1", 64, {"histogram"});
  std::ofstream(folder() / "file") << "x";
  expect_refused("train mnist-mlp --quiet --tensorboard file", 65, {"file", "cannot be created"});
}

TEST_F(Events, AreReadByTensorBoard) {
  if (shell("python3 -c 'import tensorboard'").code != 0) {
    GTEST_SKIP() << "python3 has no tensorboard (pip install tensorboard)";
  }
  succeed(std::string("train ") + kThreeEpochs +
          " --evaluate epoch --log-every 5 --histogram-freq 1 --tensorboard");
  const Ran ran = expect_success(
      shell("python3 '" PACELINE_SOURCE_DIR "/tests/integration/cli/read_events.py' logs/fit/*"));
  auto ours = scalars(run_folder() / "train");
  std::istringstream lines(ran.out);
  std::string side, tag;
  std::int64_t step = 0;
  double value = 0;
  std::size_t seen = 0, histograms = 0;
  while (lines >> side >> tag >> step >> value) {
    if (tag.ends_with("/histogram")) {
      ++histograms;
    } else if (side == "train") {
      ++seen;
      EXPECT_EQ(ours[tag].at(step), value) << tag;
    }
  }
  EXPECT_EQ(seen, 3 * 12 + 3 * 12U);
  EXPECT_EQ(histograms, 3 * 4U);
}

}  // namespace
}  // namespace paceline
