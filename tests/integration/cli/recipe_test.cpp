// Schedules, clipping, accumulation and goals on the command line: what contradicts itself is one
// line, what is given is in the record.
#include <nlohmann/json.hpp>

#include "engine/core/json.h"
#include "tests/integration/cli/paceline.h"

namespace paceline {
namespace {

const std::string kWithMnist =
    "train mnist-mlp --data '" PACELINE_SOURCE_DIR "/data/mnist' --cpus-per-task 1 ";
const std::string kThreeSteps = kWithMnist + "--steps 3 ";

class CliRecipe : public Cli {
 protected:
  Json make_record(const std::string& options) const {
    const Ran ran = succeed(options + " --json");
    err_ = ran.err;
    return ran.code == 0 ? Json::parse(ran.out) : Json::object();
  }
  mutable std::string err_;
};

TEST_F(CliRecipe, OptionsOfAnotherScheduleAreRefused) {
  expect_refused(kThreeSteps + "--schedule linear", 64, {"schedule", "\"linear\"", "cosine"});
  expect_refused(kThreeSteps + "--schedule step", 64, {"--decay-epochs", "30,60,80"});
  expect_refused(kThreeSteps + "--schedule step --decay-epochs 60,30", 64,
                 {"decay_epochs", "growing"});
  expect_refused(kThreeSteps + "--decay-epochs 1", 64, {"is for schedule step", "--schedule step"});
  expect_refused(kThreeSteps + "--end-rate 0.1", 64,
                 {"end_rate is for schedule cosine or plateau"});
  expect_refused(kThreeSteps + "--warmup-epochs -1", 64, {"warmup_epochs", "at least 0"});
  expect_refused(kWithMnist + "--epochs 2 --warmup-epochs 3", 64,
                 {"warm-up of 3", "longer than", "2"});
}

TEST_F(CliRecipe, ContradictionsAreRefused) {
  expect_refused(kThreeSteps + "--weight-decay-form l2", 64,
                 {"weight_decay_form", "--weight-decay"});
  expect_refused(kThreeSteps + "--weight-decay -1", 64, {"weight_decay", "at least 0"});
  expect_refused(kThreeSteps + "--label-smoothing 1.5", 64, {"label_smoothing", "at most 1"});
  expect_refused(kThreeSteps + "--label-smoothing 0.1 --double-softmax", 64,
                 {"label_smoothing cannot be combined with double_softmax"});
  expect_refused(kThreeSteps + "--until 0.98", 64,
                 {"until cannot be \"0.98\"", "test_accuracy=0.98"});
  expect_refused(kThreeSteps + "--until test_accuracy=98", 64, {"a share of the samples"});
  expect_refused(kThreeSteps + "--until test_accuracy=0.9 --evaluate end", 64,
                 {"until is for evaluate epoch", "--evaluate epoch"});
  expect_refused(kThreeSteps + "--evaluate-every 2 --evaluate none", 64, {"evaluate_every is for"});
}

TEST_F(CliRecipe, AugmentationIsNamedAndFitsTheImages) {
  expect_refused(kThreeSteps + "--augment flip", 64,
                 {"augment cannot be \"flip\"", "hflip", "cropN"});
  expect_refused(kThreeSteps + "--augment hflip+hflip", 64, {"augment cannot be \"hflip+hflip\""});
  expect_refused(kThreeSteps + "--augment hflip,vflip", 64, {"hflip,vflip", "joined by +"});
  expect_refused(kThreeSteps + "--augment crop0", 64, {"augment cannot be"});
  expect_refused(kThreeSteps + "--augment crop28", 64, {"crop28", "28 x 28 black", "smaller"});
  const Json plain = make_record(kThreeSteps);
  EXPECT_FALSE(plain["parameters"].contains("augment"));
  const Json augmented = make_record(kThreeSteps + "--augment crop2+hflip");
  EXPECT_EQ(augmented["parameters"]["augment"], "hflip+crop2");
  const auto loss = [](const Json& record) {
    return record.at("quality").at("epochs").at(0).at("train_loss").get<double>();
  };
  EXPECT_NE(loss(augmented), loss(plain));
}

TEST_F(CliRecipe, GlobalBatchesAndWhatTheyAreMadeOf) {
  const std::string two =
      "train mnist-mlp --cpus-per-task 1 --steps 3 --gpus 2 --backend mirrored "
      "--cpus-per-replica 1 --oversubscribe --input synthetic ";
  const std::string bad = "train mnist-mlp --steps 3 --gpus 2 --backend mirrored ";
  expect_refused(bad + "--global-batch 100 --batch-per-replica 64", 64,
                 {"global_batch 100 is not gpus 2 x batch_per_replica 64"});
  expect_refused(
      bad + "--global-batch 96 --batch-per-replica 16 --gradient-accumulation-steps 2", 64,
      {"global_batch 96 is not gpus 2 x batch_per_replica 16 x gradient_accumulation_steps 2"});
  expect_refused(bad + "--batch-per-replica 1048576 --gradient-accumulation-steps 1000000", 64,
                 {"2^30"});
  expect_refused(bad + "--gradient-accumulation-steps 0", 64,
                 {"gradient_accumulation_steps", "at least 1"});
  std::string two_tasks = two;
  two_tasks.replace(two_tasks.find("--cpus-per-task 1 "), 18, "");
  const Json derived = make_record(two_tasks + "--global-batch 96 --batch-per-replica 16");
  EXPECT_EQ(derived["parameters"]["gradient_accumulation_steps"], 3);
  EXPECT_EQ(derived["plan"]["global_batch"], 96);
  EXPECT_EQ(derived["throughput"]["samples"], 3 * 96);
  const Json batch = make_record(two_tasks + "--global-batch 96 --gradient-accumulation-steps 2");
  EXPECT_EQ(batch["parameters"]["batch_per_replica"], 24);
  const Json plain = make_record(two_tasks + "--global-batch 96");
  EXPECT_EQ(plain["parameters"]["batch_per_replica"], 48);
  EXPECT_FALSE(plain["parameters"].contains("gradient_accumulation_steps"));
}

TEST_F(CliRecipe, AllOfItIsInTheRecord) {
  const Json record =
      make_record(kThreeSteps +
                  "--learning-rate-rule linear --warmup-epochs 0.5 --schedule cosine "
                  "--weight-decay 0.01 --clip-norm 1 --label-smoothing 0.1");
  const Json& parameters = record["parameters"];
  EXPECT_EQ(parameters["schedule"], "cosine");
  EXPECT_EQ(parameters["warmup_epochs"], 0.5);
  EXPECT_EQ(parameters["end_rate"], 0.0);
  EXPECT_EQ(parameters["weight_decay_form"], "decoupled");
  EXPECT_EQ(parameters["clip_norm"], 1.0);
  EXPECT_EQ(parameters["label_smoothing"], 0.1);
  const Json& quality = record["quality"];
  EXPECT_FALSE(quality.contains("until"));
  EXPECT_GE(quality["test_top5"].get<double>(), quality["test_accuracy"].get<double>());
  EXPECT_GE(quality["epochs"][0]["train_top5"].get<double>(), 0);
}

TEST_F(CliRecipe, AGoalEndsTheRunAndIsTimed) {
  const std::string run = kWithMnist + "--train-limit 2000 --test-limit 500 ";
  const Json reached = make_record(run + "--epochs 50 --until test_accuracy=0.5");
  const Json& until = reached["quality"]["until"];
  EXPECT_EQ(until["goal"], "test_accuracy>=0.5");
  EXPECT_EQ(until["reached"], true);
  EXPECT_LT(until.at("epochs"), 50);
  EXPECT_EQ(until["steps"], reached["throughput"]["steps"]);
  EXPECT_EQ(until["fit_seconds"], reached["timing"]["fit_seconds"]);
  EXPECT_GT(until["seconds_with_evaluation"], until["fit_seconds"]);
  EXPECT_EQ(reached["parameters"]["evaluate"], "epoch");
  expect_parts(err_, {"test_accuracy>=0.5 was reached after epoch"});

  const Json missed = make_record(run + "--epochs 2 --until test_loss=0.0001");
  EXPECT_EQ(missed["quality"]["until"]["reached"], false);
  EXPECT_FALSE(missed["quality"]["until"].contains("fit_seconds"));
  EXPECT_EQ(missed["status"], "completed");
  expect_parts(err_, {"test_loss<=0.0001 was not reached in 2 epochs"});
}

TEST_F(CliRecipe, AnotherRecipeOnResumeIsReported) {
  const std::string run =
      kWithMnist +
      "--train-limit 640 --test-limit 100 --epochs 4 --checkpoint-every 2steps --run-dir r ";
  succeed(run + "--steps 4 --schedule cosine");
  const Ran other = succeed(run + "--steps 6 --resume latest --clip-norm 1 --augment crop2");
  expect_parts(other.err, {"schedule not given (was cosine)", "clip_norm 1 (was not given)",
                           "augment crop2 (was not given)"});
}

}  // namespace
}  // namespace paceline
