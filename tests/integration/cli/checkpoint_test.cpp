// Runs that are killed, stopped or asked to stop, and go on; `paceline checkpoint`.
#include <nlohmann/json.hpp>

#include "engine/core/clock.h"
#include "results/names.h"
#include "tests/integration/cli/paceline.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// 6400 samples of the real MNIST, an epoch of 50 steps.
const std::string kTrain =
    "train mnist-cnn --train-limit 6400 --evaluate none --log-every 1 --run-dir run ";
const std::string kEvery = "--checkpoint-every 17steps ";

// Replicas of each kind, on two cores.
std::vector<std::string> layouts() {
  std::vector<std::string> all = {"--gpus 2 --backend mirrored --cpus-per-task 2 "};
  for (const char* name : {"ring", "mpi"}) {
    if (!find_name("backend", name).built) continue;
    all.push_back(std::string("--gpus 2 --cpus-per-task 1 --backend ") + name + " ");
  }
  return all;
}

class CliCheckpoint : public Cli {
 protected:
  json record(const std::string& name) const {
    std::ifstream stream(folder() / name);
    return json::parse(stream);
  }
  std::string checksum(const std::string& name) const {
    return record(name)["quality"]["parameter_checksum"];
  }
  // Starts a run in the background, waits until `when` is in what it says, and sends it `signal`.
  Ran interrupted(const std::string& arguments, const std::string& when,
                  const std::string& signal) const {
    return shell("'" PACELINE_BINARY "' " + arguments + " 2> said & pid=$!\n" +
                 "for i in $(seq 3000); do grep -q '" + when +
                 "' said && break; sleep 0.02; done\n" + "kill -" + signal +
                 " $pid; wait $pid; code=$?; cat said >&2; exit $code");
  }
  void clear() const {
    for (const auto& entry : fs::directory_iterator(folder())) fs::remove_all(entry.path());
  }
};

TEST_F(CliCheckpoint, AKilledRunGoesOnBitForBit) {
  for (const std::string& layout : layouts()) {
    SCOPED_TRACE(layout);
    clear();
    const std::string run = kTrain + layout + "--steps 40 ";
    succeed(run + "--record whole.json");
    // The starter and all ranks, at once, some time after the first checkpoint within the epoch.
    const Ran killed = shell("setsid '" PACELINE_BINARY "' " + run + kEvery +
                             " 2> said & pid=$!\n"
                             "for i in $(seq 1200); do\n"
                             "  [ -e run/checkpoints/mnist-cnn-0000-step-00000017 ] && break\n"
                             "  sleep 0.05\ndone\n"
                             "kill -9 -- -$pid; wait $pid; ls -A run/checkpoints");
    EXPECT_TRUE(contains(killed.out, "step-00000017")) << killed.out << killed.err;
    const Ran resumed = succeed(run + kEvery + "--resume latest --record resumed.json");
    if (!contains(resumed.err, "already complete")) {
      EXPECT_EQ(checksum("resumed.json"), checksum("whole.json"));
      EXPECT_TRUE(record("resumed.json")["flags"]["resumed"]);
      EXPECT_GE(record("resumed.json")["checkpoints"]["resumed_after_steps"], 17);
    }
    for (const auto& entry : fs::directory_iterator(folder() / "run" / "checkpoints")) {
      EXPECT_FALSE(entry.path().extension() == ".tmp") << entry.path();
    }
  }
}

TEST_F(CliCheckpoint, ASignalStopsAllRanksAfterACheckpoint) {
  for (const std::string& layout : layouts()) {
    const std::string run = kTrain + layout + "--epochs 4 ";  // ends long after step 20
    succeed(run + "--record whole.json");
    const bool of_mpirun = contains(layout, "mpi");  // passes on one of them only
    for (const std::string signal : {"TERM", "USR1"}) {
      if (!of_mpirun && signal == "USR1") continue;
      SCOPED_TRACE(layout + signal);
      const Ran stopped =
          interrupted(run + "--checkpoint-every 60minutes --record never.json", "step 20/", signal);
      ASSERT_EQ(stopped.code, 75) << stopped.err;
      expect_parts(stopped.err, {"stopped on request after step", "resume with --resume latest"});
      EXPECT_FALSE(fs::exists(folder() / "never.json"));
      const Ran resumed = succeed(run + "--resume latest --record resumed.json");
      EXPECT_EQ(checksum("resumed.json"), checksum("whole.json"));
      EXPECT_TRUE(fs::exists(folder() / "run" / "model" / "parameters.safetensors"));
      shell("rm -r run resumed.*");
    }
    clear();
  }
}

TEST_F(CliCheckpoint, EveryFewMinutesOfARunThatLastsThatLong) {
  // Ranks agree when the time has come. Until there are two beside the initial weights.
  const Ran ran = expect_success(shell(
      "setsid '" PACELINE_BINARY "' " + kTrain + layouts().back() +
      "--epochs 1000 --checkpoint-every 0.01minutes 2> said & pid=$!\n"
      "for i in $(seq 600); do\n"
      "  set -- run/checkpoints/mnist-cnn-*\n"
      "  [ $# -ge 3 ] && break\n  sleep 0.1\ndone\n"
      "kill -9 -- -$pid; wait $pid; for c in run/checkpoints/mnist-cnn-*; do paceline checkpoint "
      "show $c --json || exit; done"));
  std::vector<std::size_t> steps;
  for (std::size_t at = 0; (at = ran.out.find("\"step\": ", at)) != std::string::npos; at += 8) {
    steps.push_back(std::stoul(ran.out.substr(at + 8)));
  }
  ASSERT_GE(steps.size(), 3U) << ran.out << ran.err;
  EXPECT_EQ(steps.front(), 0U) << "the initial weights";
  EXPECT_GT(steps.back(), steps.size()) << "not every step";
}

TEST_F(CliCheckpoint, ResumeOfAnotherJobAndOfNothing) {
  const std::string run = "train mnist-mlp --cpus-per-task 1 --evaluate none ";
  const std::string slurm = "SLURM_SUBMIT_DIR=$PWD SLURM_JOB_ID=";
  const std::string paceline = " '" PACELINE_BINARY "' ";
  const Ran first = expect_success(shell(slurm + "4711" + paceline + run +
                                         "--steps 5 --checkpoint-every 5steps --resume latest"));
  expect_parts(first.err, {"starting from scratch"});
  EXPECT_TRUE(fs::exists(folder() / "4711" / "checkpoints" / "mnist-mlp-0000-step-00000005"));
  const Ran second = expect_success(
      shell(slurm + "4712" + paceline + run + "--steps 9 --checkpoint-every 5steps --resume 4711"));
  expect_parts(second.err, {"resuming after step 5 of "});
  EXPECT_TRUE(fs::exists(folder() / "4712" / "model"));
  const Ran third =
      expect_success(shell(slurm + "4712" + paceline + run +
                           "--steps 9 --checkpoint-every 5steps --resume latest --record r.json"));
  expect_parts(third.err, {"already complete"});
  EXPECT_FALSE(fs::exists(folder() / "r.json"));
}

// As ModelCheckpoint(save_weights_only=True), with the weights before the training.
TEST_F(CliCheckpoint, WeightsOnlyCanBeStartedFromAndNotResumed) {
  const std::string run = "train mnist-mlp --cpus-per-task 1 --train-limit 640 --epochs 2 ";
  const std::string saving = "--checkpoint-every 1epoch --save-weights-only --run-dir run ";
  succeed(run + saving + "--quiet --record whole.json");
  const fs::path last = folder() / "run" / "checkpoints" / "mnist-mlp-0002";
  EXPECT_TRUE(fs::exists(folder() / "run" / "checkpoints" / "mnist-mlp-0000"));
  EXPECT_TRUE(fs::exists(last / "parameters.safetensors"));
  EXPECT_FALSE(fs::exists(last / "optimizer.safetensors"));
  succeed("checkpoint verify run");
  expect_refused(run + saving + "--quiet --resume latest", 64,
                 {"weights only", "optimizer's state", "--weights ", "mnist-mlp-0002"});
  succeed(run + "--weights run/checkpoints/mnist-mlp-0002 --record more.json");
  const auto loss = [&](const char* name) {
    return record(name)["quality"]["epochs"][0]["train_loss"].get<double>();
  };
  EXPECT_LT(loss("more.json"), loss("whole.json") / 2);
  // Nothing could go on from its checkpoint, so it ends at the first signal.
  clear();
  const Ran stopped = interrupted(kTrain +
                                      "--epochs 1000 --cpus-per-task 1 --checkpoint-every "
                                      "60minutes --save-weights-only",
                                  "step 20/", "TERM");
  expect_parts(stopped.err, {"step 20/"});
  EXPECT_NE(stopped.code, 0);
  EXPECT_NE(stopped.code, 75) << stopped.err;
}

TEST_F(CliCheckpoint, WhatCannotBeDoneIsRefused) {
  const std::string run = "train mnist-mlp --cpus-per-task 1 --steps 3 --quiet ";
  expect_refused(run + "--checkpoint-every 5", 64,
                 {"checkpoint_every cannot be \"5\"", "500steps"});
  expect_refused(run + "--keep-checkpoints 3", 64,
                 {"keep_checkpoints is for checkpoint_every", "--checkpoint-every"});
  expect_refused(run + "--resume nowhere", 65, {"no checkpoint to resume", "nowhere"});
  succeed(run + "--checkpoint-every 3 steps --run-dir a");
  expect_refused(run + "--checkpoint-every 3steps --run-dir a", 64,
                 {"an earlier run left checkpoints", "--resume latest"});
  const double start = now_seconds();  // before ranks are started, which would wait for each other
  expect_refused(run + "--checkpoint-every 3steps --run-dir a --gpus 2 --oversubscribe", 64,
                 {"an earlier run left checkpoints"});
  expect_refused(run + "--gpus 2 --oversubscribe --resume nowhere", 65,
                 {"no checkpoint to resume"});
  EXPECT_LT(now_seconds() - start, 5);
  expect_refused(run + "--run-dir a --resume latest --seed 2", 64,
                 {"seed is 2, but 1 in the checkpoint"});
  expect_refused("train mnist-cnn --cpus-per-task 1 --quiet --run-dir a --resume latest", 64,
                 {"for workload mnist-mlp", "not for mnist-cnn"});
  shell("for f in a/checkpoints/*/optimizer.safetensors; do printf x >> $f; done");
  expect_refused(run + "--run-dir a --resume latest", 65,
                 {"no checkpoint is complete", "bytes of"});
  std::ofstream(folder() / "file") << "x";
  expect_refused(run + "--checkpoint-every 3steps --run-dir file/b", 65,
                 {"cannot be created", "file"});
}

TEST_F(CliCheckpoint, ShowVerifyAndExport) {
  succeed(
      "train mnist-cnn --cpus-per-task 1 --steps 4 --checkpoint-every 2steps "
      "--run-dir a --quiet");
  expect_parts(succeed("checkpoint show a").out,
               {"mnist-cnn after 4 steps, 0 epochs", "optimizer.safetensors", "adam"});
  const json manifests = json::parse(paceline("checkpoint show a --json").out);
  ASSERT_EQ(manifests.size(), 3U);
  EXPECT_EQ(manifests[2]["progress"]["step"], 4);
  succeed("checkpoint verify a");
  expect_parts(succeed("checkpoint export a/model m.safetensors --names torch").out, {"tensors"});
  expect_refused("checkpoint export a/model m.safetensors", 65, {"the file exists already"});
  // The model's folder as weights: the parameters, of a fresh optimizer.
  succeed("train mnist-cnn --cpus-per-task 1 --steps 1 --weights a/model --quiet");
  shell("printf x >> a/checkpoints/mnist-cnn-0000/parameters.safetensors");
  const Ran verified = paceline("checkpoint verify a");
  EXPECT_EQ(verified.code, 1);
  expect_parts(verified.out, {"damaged"});
  shell("printf '{' > a/checkpoints/mnist-cnn-0000/manifest.json");
  const Ran rest = paceline("checkpoint show a");
  EXPECT_EQ(rest.code, 1);
  expect_parts(rest.out, {"damaged", "mnist-cnn after 4 steps"});
  expect_refused("checkpoint show nothing", 65, {"there is no checkpoint", "nothing"});
  expect_refused("checkpoint", 64, {"--help"});
}

}  // namespace
}  // namespace paceline
