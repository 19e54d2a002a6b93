#include "run/resolve.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "results/names.h"
#include "run/training_run.h"
#include "tests/support/expect_error.h"

namespace paceline {
namespace {

Point make_point(const std::vector<std::pair<std::string, std::string>>& given) {
  Point point;
  for (const auto& [name, text] : given) point.set(name, parsed_value(name, text, ""));
  return point;
}

Point resolved(const std::vector<std::pair<std::string, std::string>>& given,
               const std::string& workload = "mnist-mlp") {
  return resolve_parameters(make_workload(workload), make_point(given));
}

void refused(const std::vector<std::pair<std::string, std::string>>& given,
             const std::vector<std::string>& parts, const std::string& workload = "mnist-mlp") {
  expect_error(ErrorKind::usage, parts, [&] { resolved(given, workload); });
}

TEST(Resolve, WhatIsNotGivenIsTheTables) {
  const Point p = resolved({});
  for (const Parameter& parameter : parameters()) {
    if (parameter.initial.empty() || parameter.is_assumed) continue;
    const auto value = p.text(parameter.name);
    const bool applies = parameter.need == Requirement::nothing && is_with(p, parameter);
    EXPECT_EQ(value.has_value(), applies) << parameter.name;
  }
  EXPECT_EQ(p.real("learning_rate"), 0.001);
  EXPECT_EQ(p.integer("epochs"), 5);
  EXPECT_EQ(p.text("evaluate"), "end");
  EXPECT_FALSE(p.find("cpus_per_replica"));
}

TEST(Resolve, WhatIsAssumedIsNotWrittenDown) {
  const Point p = resolved({});
  for (const char* name : {"gradient_accumulation_steps", "schedule", "cache"}) {
    EXPECT_FALSE(p.find(name)) << name;
    EXPECT_NO_THROW(Settings(p).text(name)) << name;
  }
}

TEST(Resolve, ADefaultComesWithWhatItIsFor) {
  const Point step = resolved({{"schedule", "step"}, {"decay_epochs", "2,3"}});
  EXPECT_EQ(step.real("decay_factor"), 0.1);
  EXPECT_FALSE(step.find("end_rate"));
  EXPECT_EQ(resolved({{"schedule", "cosine"}}).real("end_rate"), 0);
  EXPECT_EQ(resolved({{"optimizer", "momentum"}}).real("momentum"), 0.9);
  EXPECT_EQ(resolved({{"checkpoint_every", "1epoch"}}).integer("keep_checkpoints"), 5);
  EXPECT_EQ(resolved({{"weight_decay", "0.1"}}).text("weight_decay_form"), "decoupled");
  EXPECT_EQ(resolved({{"until", "test_accuracy=0.9"}}).text("evaluate"), "epoch");
  const Point plateau = resolved({{"schedule", "plateau"}});
  EXPECT_EQ(plateau.text("plateau_metric"), "test_loss");
  EXPECT_EQ(plateau.integer("patience"), 10);
  EXPECT_EQ(plateau.real("decay_factor"), 0.1);
  EXPECT_EQ(plateau.text("evaluate"), "epoch") << "of which the metric is";
  EXPECT_EQ(resolved({{"schedule", "plateau"}, {"plateau_metric", "train_loss"}}).text("evaluate"),
            "end");
  EXPECT_FALSE(resolved({{"steps", "3"}}).find("epochs"));
}

TEST(Resolve, AWorkloadsDefaultComesWithWhatItIsFor) {
  EXPECT_EQ(resolved({}, "gpt2-124m").real("beta2"), 0.95);
  const Point sgd = resolved({{"optimizer", "sgd"}}, "gpt2-124m");
  EXPECT_FALSE(sgd.find("beta2"));
  EXPECT_EQ(sgd.real("clip_norm"), 1);
}

TEST(Resolve, WhatMeansNothingIsRefused) {
  refused({{"schedule", "plateau"}, {"evaluate", "end"}},
          {"watches test_loss", "evaluate is end", "--plateau-metric train_loss"});
  refused({{"patience", "3"}}, {"patience is for schedule plateau"});
  refused({{"decay_factor", "0.5"}}, {"decay_factor is for schedule step", "--schedule step"});
  refused({{"end_rate", "0.5"}}, {"schedule cosine or plateau", "--schedule cosine"});
  refused({{"momentum", "0.5"}}, {"momentum is for optimizer momentum"});
  refused({{"keep_checkpoints", "2"}}, {"checkpoint_every, which is not given"});
  refused({{"until", "test_accuracy=0.9"}, {"evaluate", "end"}}, {"until is for evaluate epoch"});
  refused({{"graph", "true"}}, {"graph is for GPUs, but the device is cpu", "--device cuda"});
  refused({{"bn_stats", "local"}}, {"mnist-mlp has no batch normalisation", "bn_stats"});
  refused({{"schedule", "step"}}, {"--decay-epochs, such as 30,60,80"});
}

TEST(Resolve, ContradictionsAreRefused) {
  refused({{"warmup_epochs", "9"}}, {"a warm-up of 9 epochs", "training of 5"});
  refused({{"precision", "fp16"}}, {"device cpu computes in", "not in fp16"});
  refused({{"cache", "off"}, {"cache_mb", "10"}}, {"cache is off"});
  refused({{"backend", "null"}, {"gpus", "2"}, {"check_every", "5"}}, {"drift apart"});
  refused({{"steps_per_epoch", "many"}}, {"steps_per_epoch cannot be"});
}

TEST(Resolve, TheBatchThatIsMissingFollows) {
  const Point p = resolved({{"gpus", "2"}, {"backend", "mirrored"}, {"global_batch", "96"}});
  EXPECT_EQ(p.integer("batch_per_replica"), 48);
  const Point parts = resolved({{"global_batch", "96"}, {"batch_per_replica", "32"}});
  EXPECT_EQ(parts.integer("gradient_accumulation_steps"), 3);
  refused({{"gpus", "2"}, {"backend", "mirrored"}, {"global_batch", "97"}},
          {"divided evenly among 2"});
  refused({{"global_batch", "96"}, {"batch_per_replica", "5"}}, {"batch_per_replica 5"});
}

TEST(Resolve, TheWorkloadsDefaultsComeBeforeTheTables) {
  EXPECT_EQ(resolved({}, "resnet50-imagenet").text("input"), "synthetic");
  EXPECT_EQ(resolved({{"input", "data"}}, "resnet50-imagenet").text("input"), "data");
  EXPECT_FALSE(resolved({{"augment", "none"}}).find("augment"));
  EXPECT_EQ(resolved({{"augment", "crop2+hflip"}}).text("augment"), "hflip+crop2");
}

// Built or not, a GPU's is tf32.
TEST(Resolve, APrecisionThatIsNotGivenIsTheDevices) {
  const auto of = [](const char* device) {
    return resolve_place(make_point({{"gpus", "1"}, {"backend", "self"}, {"device", device}}))
        .text("precision");
  };
  EXPECT_EQ(of("cpu"), "fp32");
  if (find_name("device", "cuda").built) {
    EXPECT_EQ(of("cuda"), "tf32");
  }
  EXPECT_EQ(of("reference"), "fp64");
}

TEST(Resolve, ThePlaceAloneHasNoTraining) {
  const Point p = resolve_place(make_point({{"gpus", "2"}, {"backend", "mirrored"}}));
  EXPECT_EQ(p.text("precision"), "fp32");
  EXPECT_FALSE(p.find("optimizer"));
  EXPECT_EQ(make_place_config(p).layout.gpus, 2);
}

TEST(Describe, CountsParametersAndMemoryOfAReplica) {
  const WorkloadDescription fp32 = describe_workload({"mnist-mlp", "", "fp32", 32});
  const Json json = fp32.json();
  EXPECT_EQ(json["parameters"], 784 * 512 + 512 + 512 * 10 + 10);
  EXPECT_EQ(json["gradient_bytes"], 4 * 407050);
  EXPECT_EQ(json["batch_per_replica"], 32);
  EXPECT_EQ(json["memory_bytes"]["gradients"], fp32.memory.gradients);
  std::int64_t of_layers = 0;
  for (const Json& layer : json["layers"]) of_layers += layer["parameters"].get<std::int64_t>();
  EXPECT_EQ(of_layers, 407050);
  expect_parts(fp32.text(100), {"407050 ("});
  EXPECT_GT(fp32.memory.activations,
            describe_workload({"mnist-mlp", "", "fp32", 16}).memory.activations);
  EXPECT_GT(fp32.memory.activations,
            describe_workload({"mnist-mlp", "", "bf16", 32}).memory.activations);
  expect_error(ErrorKind::usage, {"mnist-mlb", "mnist-mlp"}, [] {
    describe_workload({"mnist-mlb", "", "fp32", 32});
  });
}

TEST(Describe, LinesHaveTheWidth) {
  const std::string text = describe_workload({"mnist-mlp", "", "fp32", 0}).text(80);
  std::istringstream lines(text.substr(text.find("\ndefaults ") + 1));
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80U) << line;
}

}  // namespace
}  // namespace paceline
