// --set: what the command line says instead of the spec.
#include <gtest/gtest.h>

#include "tests/unit/sweeps/samples.h"

namespace paceline {
namespace {

using Texts = std::vector<std::string>;

Texts points_with(const std::string& keys, const Texts& assignments) {
  Spec spec = spec_with(keys);
  for (const std::string& assignment : assignments) override_axis(spec, assignment);
  return plan_points(expand(spec, 8, Unbuilt::keep));
}

TEST(Override, AnAxisKeepsItsPlaceInThePointsName) {
  const std::string keys = R"("axes": {"gpus": [1, 2], "backend": ["mirrored", "mpi"]})";
  EXPECT_EQ(points_with(keys, {"backend=mpi"}),
            (Texts{"gpus=1,backend=mpi", "gpus=2,backend=mpi"}));
  EXPECT_EQ(points_with(keys, {"gpus=4", "backend=mpi,null"}),
            (Texts{"gpus=4,backend=mpi", "gpus=4,backend=null"}));
}

TEST(Override, WhatWasFixedStaysFixedOrBecomesAnAxis) {
  const std::string keys = R"("fixed": {"steps": 5, "backend": "null"}, "axes": {"gpus": [1, 2]})";
  EXPECT_EQ(points_with(keys, {"steps=9"}), (Texts{"gpus=1", "gpus=2"}));
  EXPECT_EQ(points_with(keys, {"steps=9,10", "gpus=1"}),
            (Texts{"gpus=1,steps=9", "gpus=1,steps=10"}));
}

TEST(Override, AZippedAxis) {
  const std::string zipped =
      R"("fixed": {"backend": "null"}, "zip": {"gpus": [1, 2], "cpus_per_task": [4, 8]})";
  EXPECT_EQ(points_with(zipped, {"cpus_per_task=6"}),
            (Texts{"gpus=1,cpus_per_task=6", "gpus=2,cpus_per_task=6"}));
}

TEST(Override, IncludedPointsOfOtherValuesAreLeftOut) {
  const std::string keys =
      R"("fixed": {"backend": "null"}, "axes": {"gpus": [1]}, "include": [{"gpus": 4}, {"gpus": 8}])";
  EXPECT_EQ(points_with(keys, {"gpus=2,8"}), (Texts{"gpus=2", "gpus=8"})) << "8 is there once";
}

// What a study keeps of its spec, so that another site makes the same runs.
TEST(Override, TheTextOfASpecGivesTheSameRuns) {
  Spec spec = spec_with(
      "\"fixed\": {\"backend\": \"null\", \"steps\": 3}, // one line\n"
      "\"axes\": {\"gpus\": [1]}, \"include\": [{\"gpus\": 2}, {\"gpus\": 8}],"
      "\"set\": [\"steps=5\"]");
  for (const char* assignment : {"gpus=2,8", "epochs=2"}) override_axis(spec, assignment);
  spec.repeats = 7;
  spec.control = true;
  spec.timeout_seconds = 2.5;
  const Spec again = parse_spec("again.json", to_text(spec));
  const auto points = [](const Spec& each) { return plan_points(expand(each, 8, Unbuilt::keep)); };
  EXPECT_EQ(points(again), (Texts{"gpus=2", "gpus=8", "gpus=2,control=true"}));
  EXPECT_EQ(points(again), points(spec));
  EXPECT_EQ(again.fixed.text(), spec.fixed.text());
  EXPECT_EQ(again.fixed.integer("steps"), 5);
  EXPECT_EQ(again.set, (Texts{"steps=5", "gpus=2,8", "epochs=2"}));
  EXPECT_EQ(again.repeats, 7);
  EXPECT_EQ(again.seed, spec.seed);
  EXPECT_EQ(again.timeout_seconds, 2.5);
  EXPECT_EQ(to_text(again), to_text(spec));
}

TEST(Override, ABadSetOfASpecNamesItsLine) {
  expect_parts(catch_error([] { spec_with("\n\"set\": [\"gpus=1\",\n\"gpu=1\"]"); }),
               {"s.json:3: ", "gpu", "did you mean \"gpus\""});
  expect_parts(catch_error([] { spec_with("\"set\": \"gpus=1\""); }),
               {"s.json:1", "must be a list"});
}

TEST(ChangeValues, OfAxesZipsFixedAndIncludedPoints) {
  const auto changed = [](const std::string& keys) {
    Spec spec = spec_with(keys);
    change_values(spec, "backend", [](const Value& value) {
      return to_text(value) == "nccl" ? Value(std::string("gloo")) : value;
    });
    return plan_points(expand(spec, 8, Unbuilt::keep));
  };
  EXPECT_EQ(changed(R"("axes": {"gpus": [2], "backend": ["nccl", "mpi", "gloo"]})"),
            (Texts{"gpus=2,backend=gloo", "gpus=2,backend=mpi"}));
  EXPECT_EQ(changed(R"("zip": {"gpus": [1, 2], "backend": ["self", "nccl"]})"),
            (Texts{"gpus=1,backend=self", "gpus=2,backend=gloo"}));
  EXPECT_EQ(changed(R"("axes": {"gpus": [2], "backend": ["mpi"]},
                       "include": [{"gpus": 2, "backend": "nccl"}, {"gpus": 2, "backend": "gloo"}])"),
            (Texts{"gpus=2,backend=mpi", "gpus=2,backend=gloo"}));
  Spec fixed = spec_with(R"("fixed": {"backend": "nccl"}, "axes": {"gpus": [2]})");
  change_values(fixed, "backend", [](const Value&) { return Value(std::string("gloo")); });
  EXPECT_EQ(fixed.fixed.text("backend"), "gloo");
}

TEST(Override, Refused) {
  struct Case {
    std::string assignment;
    Texts parts;
  };
  for (const Case& bad : std::vector<Case>{
           {"gpus", {"axis=value", "--set gpus"}},
           {"gpus=", {"axis=value", "--set gpus="}},
           {"=4", {"axis=value", "--set =4"}},
           {"gpu=4", {"unknown axis \"gpu\"", "did you mean \"gpus\"?", "--set gpu=4"}},
           {"gpus=four", {"gpus cannot be \"four\"", "--set gpus=four"}},
           {"gpus=0", {"gpus cannot be \"0\"", "at least 1"}},
           {"gpus=1,,2", {"gpus cannot be \"\""}},
           {"gpus=1,1", {"1 occurs twice"}},
           {"backend=mirored", {"unknown backend", "did you mean \"mirrored\"?"}},
           {"log_every=1,2", {"log_every changes nothing", "one value"}}}) {
    SCOPED_TRACE(bad.assignment);
    Spec spec = spec_with(R"("axes": {"gpus": [1, 2]})");
    expect_parts(catch_error([&] { override_axis(spec, bad.assignment); }), bad.parts);
  }
}

}  // namespace
}  // namespace paceline
