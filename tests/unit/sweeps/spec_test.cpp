#include "sweeps/spec.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/unit/results/sample_record.h"
#include "tests/unit/sweeps/samples.h"

namespace paceline {
namespace {

using testing::spec_with;

// A broken text and what its one line of error has to name.
struct Case {
  std::string text;
  std::vector<std::string> parts;
};

void expect_refused(const std::vector<Case>& cases) {
  for (const Case& broken : cases) {
    SCOPED_TRACE(broken.text.substr(0, 200));
    expect_parts(catch_error([&] { parse_spec("s.json", broken.text); }), broken.parts);
  }
}

// `keys` stand in line 2.
std::string in_spec(const std::string& keys) {
  return "{\"name\": \"s\", \"workload\": \"mnist-mlp\",\n" + keys + "}";
}

TEST(Spec, ReadsEveryKey) {
  const Spec spec = parse_spec("s.json", R"({
    "name": "all-keys_1.0", "description": "Every key", "workload": "mnist-cnn",
    "fixed": {"epochs": 2, "learning_rate": 1, "overlap": false, "steps_per_epoch": 100},
    "axes": {"gpus": [1, 2], "bucket_mb": [8, 16.5]},
    "zip": [{"cpus_per_task": [1, 2], "seed": [7, 8]}, {"input_threads": [0]}],
    "include": [{"gpus": 4}], "exclude": [{"gpus": 2, "seed": 8}, "gpus * cpus_per_task > 8"],
    "where": "gpus <= cores",
    "repeats": 5, "order": "sequential", "seed": 42, "timeout_seconds": 1.5,
    "control": true})");
  EXPECT_EQ(spec.name, "all-keys_1.0");
  EXPECT_EQ(spec.description, "Every key");
  EXPECT_EQ(spec.workload, "mnist-cnn");
  EXPECT_EQ(spec.fixed.text(), "epochs=2,steps_per_epoch=100,learning_rate=1,overlap=false");
  ASSERT_EQ(spec.axes.size(), 2u);
  EXPECT_EQ(spec.axes[1].values, (std::vector<Value>{8.0, 16.5}));
  ASSERT_EQ(spec.zips.size(), 2u);
  EXPECT_EQ(spec.zips[0].size(), 2u);
  EXPECT_EQ(spec.include.at(0).point.text(), "gpus=4");
  EXPECT_EQ(spec.exclude.at(0).point.text(), "gpus=2,seed=8");
  EXPECT_EQ(spec.exclude_if.at(0).text(), "gpus * cpus_per_task > 8");
  EXPECT_EQ(spec.condition.value().where(), "s.json:7");
  EXPECT_EQ(spec.repeats, 5);
  EXPECT_FALSE(spec.interleaved);
  EXPECT_EQ(spec.seed, 42u);
  EXPECT_EQ(spec.timeout_seconds, 1.5);
  EXPECT_TRUE(spec.control);
}

TEST(Spec, DefaultsAndASeedFromTheName) {
  const Spec spec = spec_with(R"("axes": {"gpus": [1]})");
  EXPECT_EQ(spec.repeats, 1);
  EXPECT_TRUE(spec.interleaved);
  EXPECT_FALSE(spec.control);
  EXPECT_EQ(spec.timeout_seconds, 0);
  EXPECT_EQ(spec.seed, spec_with(R"("axes": {"gpus": [2]})").seed);
  EXPECT_NE(spec.seed, parse_spec("s.json", R"({"name": "t", "workload": "mnist-mlp"})").seed);
}

TEST(Spec, EveryShippedOneIsRead) {
  int read = 0;
  for (const auto& entry : std::filesystem::directory_iterator(PACELINE_SOURCE_DIR "/sweeps")) {
    if (entry.path().extension() != ".json") continue;
    EXPECT_EQ(read_spec(entry.path()).name, entry.path().stem());
    ++read;
  }
  EXPECT_GT(read, 0);
}

TEST(SpecErrors, NotASpec) {
  expect_refused({
      {"{\"name\": \"s\",\n  oops}", {"s.json:2:3: not JSON"}},
      {"{\"name\": \"s\"", {"s.json:1:", "not JSON"}},
      {"", {"not JSON", "s.json"}},
      {"[1, 2]", {"must be a JSON object", "s.json"}},
      {"null", {"must be a JSON object"}},
      {"<!DOCTYPE html>", {":1:1: not JSON"}},
      {"{\"name\": \"\xff\xfe\"}", {"not JSON", ":1:"}},
      {"{\"name\": 1e999}", {"not JSON", ":1:"}},
      {std::string(200, '[') + std::string(200, ']'), {"nested deeper"}},
      {"{}", {"\"name\" is missing", "s.json"}},
      {"{\"name\": \"s\"}", {"\"workload\" is missing", "s.json"}},
  });
}

TEST(SpecErrors, KeysAndNames) {
  expect_refused({
      {in_spec(R"("axis": {})"), {"unknown key \"axis\"", "s.json:2", "did you mean \"axes\"?"}},
      {in_spec("\"repeats\": 2,\n\"repeats\": 3"), {"\"repeats\" is given twice", "s.json:3"}},
      {in_spec(R"("gpus": [1, 2])"), {"\"gpus\" is an axis", "s.json:2", "fixed or axes"}},
      {in_spec(R"("axes": {"gpu": [1]})"),
       {"unknown axis \"gpu\"", "s.json:2", "did you mean \"gpus\"?"}},
      {in_spec("\"axes\": {\"gpus\": [1],\n\"gpus\": [2]}"), {"\"gpus\" is given twice", ":3"}},
      {in_spec(R"("fixed": {"epoch": 1})"), {"\"epoch\"", "s.json:2", "\"epochs\""}},
      {in_spec(R"("include": [{"gpsu": 1}])"), {"\"gpsu\"", "s.json:2", "\"gpus\""}},
      {in_spec(R"("exclude": [{"gpsu": 1}])"), {"\"gpsu\"", "s.json:2", "\"gpus\""}},
      {in_spec("\"axes\": {\"backend\": [\"self\",\n\"mirored\"]}"),
       {"unknown backend \"mirored\"", "s.json:3", "did you mean \"mirrored\"?"}},
      {in_spec(R"("fixed": {"device": "cpus"})"),
       {"unknown device \"cpus\"", "s.json:2", "did you mean \"cpu\"?"}},
      {"{\"name\": \"s\",\n\"workload\": \"mnist-mpl\"}",
       {"unknown workload \"mnist-mpl\"", "s.json:2", "did you mean \"mnist-"}},
  });
}

TEST(SpecErrors, WrongTypes) {
  expect_refused({
      {in_spec(R"("axes": {"gpus": 4})"), {"gpus must be a list", "s.json:2", "[ ]"}},
      {in_spec(R"("axes": {"gpus": []})"), {"axis gpus has no values", "s.json:2"}},
      {in_spec("\"axes\": {\"gpus\": [1,\n\"two\"]}"), {"gpus cannot be \"two\"", "s.json:3"}},
      {in_spec(R"("axes": {"gpus": [1, 2.5]})"), {"gpus cannot be \"2.5\"", "whole number"}},
      {in_spec(R"("axes": {"gpus": [1, true]})"), {"gpus cannot be \"true\"", "s.json:2"}},
      {in_spec(R"("axes": {"gpus": [1, [2]]})"), {"must be a number", "s.json:2"}},
      {in_spec(R"("axes": {"gpus": [null]})"), {"must be a number", "s.json:2"}},
      {in_spec(R"("axes": {"overlap": [1]})"), {"overlap cannot be \"1\"", "true or false"}},
      {in_spec(R"("axes": [])"), {"axes must be an object", "s.json:2"}},
      {in_spec(R"("fixed": 1)"), {"fixed must be an object", "s.json:2"}},
      {in_spec(R"("fixed": {"gpus": [1]})"), {"must be a number", "s.json:2"}},
      {in_spec(R"("include": {})"), {"include must be a list", "s.json:2"}},
      {in_spec(R"("exclude": {"gpus": 1})"), {"exclude must be a list", "s.json:2"}},
      {in_spec(R"("exclude": [{}])"), {"would exclude everything", "s.json:2"}},
      {in_spec(R"("where": true)"), {"where must be a text", "s.json:2"}},
      {in_spec(R"("zip": {})"), {"a zip needs axes", "s.json:2"}},
      {in_spec(R"("description": "")"), {"description must be a text", "s.json:2"}},
      {in_spec(R"("control": 1)"), {"control must be true or false", "s.json:2"}},
      {in_spec(R"("order": "random")"), {"order cannot be \"random\"", "interleaved"}},
      {in_spec(R"("repeats": "3")"), {"repeats must be a whole number", "s.json:2"}},
      {in_spec(R"("timeout_seconds": "1h")"), {"timeout_seconds must be", "s.json:2"}},
  });
}

TEST(SpecErrors, OutOfRange) {
  expect_refused({
      {in_spec(R"("axes": {"gpus": [0]})"), {"gpus cannot be \"0\"", "s.json:2", "at least 1"}},
      {in_spec(R"("fixed": {"gpus": -1})"), {"gpus cannot be \"-1\"", "s.json:2", "at least 1"}},
      {in_spec(R"("fixed": {"gpus": 99999999999999999999})"), {"gpus cannot be", "s.json:2"}},
      {in_spec(R"("fixed": {"gpus": 9223372036854775807})"), {"gpus cannot be", "s.json:2"}},
      {in_spec(R"("fixed": {"gpus": 9223372036854775808})"), {"gpus cannot be", "s.json:2"}},
      {in_spec(R"("fixed": {"momentum": 1.5})"), {"momentum cannot be \"1.5\"", "at most 1"}},
      {in_spec(R"("fixed": {"learning_rate": -0.1})"), {"learning_rate cannot be", "at least 0"}},
      {in_spec(R"("fixed": {"precision": "fp8"})"), {"precision cannot be \"fp8\"", "fp32"}},
      {in_spec(R"("repeats": 0)"), {"repeats must be", "from 1", "s.json:2"}},
      {in_spec(R"("repeats": 1000000000000)"), {"repeats must be", "s.json:2"}},
      {in_spec(R"("repeats": 2.5)"), {"repeats must be a whole number", "s.json:2"}},
      {in_spec(R"("seed": -1)"), {"seed must be", "from 0", "s.json:2"}},
      {in_spec(R"("seed": 18446744073709551615)"), {"seed must be", "s.json:2"}},
      {in_spec(R"("timeout_seconds": 0)"), {"timeout_seconds must be", "above 0"}},
      {in_spec(R"("timeout_seconds": -5)"), {"timeout_seconds must be", "above 0"}},
  });
}

TEST(SpecErrors, AxesThatContradict) {
  expect_refused({
      {in_spec("\"fixed\": {\"gpus\": 1},\n\"axes\": {\"gpus\": [1, 2]}"),
       {"axis gpus is given twice", "first at s.json:2", "s.json:3"}},
      {in_spec("\"axes\": {\"gpus\": [1]},\n\"zip\": {\"gpus\": [2]}"),
       {"axis gpus is given twice", "first at s.json:2", "s.json:3"}},
      {in_spec("\"zip\": {\"gpus\": [1, 2],\n\"cpus_per_task\": [1, 2, 3]}"),
       {"gpus and cpus_per_task have 2 and 3 values", "s.json:3"}},
      {in_spec("\"axes\": {\"gpus\": [1,\n2,\n1]}"), {"axis gpus has 1 twice", "s.json:4"}},
      {in_spec(R"("axes": {"bucket_mb": [8, 8.0]})"), {"axis bucket_mb has 8 twice"}},
      {in_spec(R"("axes": {"log_every": [1, 2]})"), {"log_every changes nothing", "fixed"}},
  });
}

TEST(SpecErrors, NamesThatAreNoFolder) {
  for (const std::string name :
       {"../x", "..", ".", ".hidden", "a/b", "/etc", "a b", "a\\\\b", "a\\u0000b", "a\\nb", "ü"}) {
    SCOPED_TRACE(name);
    const std::string line = catch_error([&] {
      parse_spec("s.json", "{\"workload\": \"mnist-mlp\",\n\"name\": \"" + name + "\"}");
    });
    expect_parts(line, {"cannot be a folder's", "s.json:2", "letters, digits"});
  }
  EXPECT_NE(catch_error([] { parse_spec("s.json", R"({"name": ""})"); }), "");
  EXPECT_NE(
      catch_error([] { parse_spec("s.json", "{\"name\": \"" + std::string(101, 'a') + "\"}"); }),
      "");
}

TEST(SpecErrors, FilesThatCannotBeRead) {
  const Scratch folder;
  expect_parts(catch_error([&] { read_spec(folder / "none.json"); }), {"none.json"});
  expect_parts(catch_error([&] { read_spec(folder.path()); }), {folder.path().string()});
  std::ofstream(folder / "big.json") << std::string(2 << 20, ' ');
  expect_parts(catch_error([&] { read_spec(folder / "big.json"); }), {"big.json"});
}

}  // namespace
}  // namespace paceline
