// Weight files of all formats: recognised, refused for what they are, written into a program.
#include <gtest/gtest.h>

#include <limits>
#include <map>

#include "engine/train/weights.h"
#include "tests/support/expect_error.h"
#include "tests/support/scratch.h"

namespace paceline {
namespace {

// Keeps what is written into it.
class FakeProgram : public Program {
 public:
  void load(const Batch&) override {}
  void forward(Mode) override {}
  void write_gradient(int, std::span<const double>) override {}
  void repeat_forward(int, int) override {}
  void backward(int, int) override {}
  void accumulate(Accumulate, std::size_t, std::size_t) override {}
  void measure_gradients(const UpdateRule&) override {}
  void update(const UpdateRule&, std::size_t, std::size_t) override {}
  LossSums take_sums() override { return {}; }
  std::byte* gradients() override { return nullptr; }
  std::vector<double> read_parameter(int index) const override { return written.at(index); }
  std::vector<double> read_gradient(int) const override { return {}; }
  void write_parameter(int index, std::span<const double> values) override {
    written[index].assign(values.begin(), values.end());
  }
  std::vector<double> read_statistic(int index) const override { return averages.at(index); }
  void write_statistic(int index, std::span<const double> values) override {
    averages[index].assign(values.begin(), values.end());
  }
  ProgramState state(Optimizer) override { return {}; }
  std::vector<std::string> implementations() const override { return {}; }

  std::map<int, std::vector<double>> written, averages;
};

Plan make_plan(std::vector<std::pair<std::string, std::vector<int>>> parameters) {
  Plan plan;
  for (auto& [name, shape] : parameters) {
    ParameterInfo info;
    info.name = name;
    info.shape = shape;
    plan.parameters.push_back(info);
  }
  return plan;
}

class WeightsFile : public ::testing::Test {
 protected:
  std::filesystem::path put(const std::string& name, const std::string& bytes) const {
    std::ofstream(scratch_ / name, std::ios::binary) << bytes;
    return scratch_ / name;
  }
  void expect_bad(const std::string& bytes, const std::string& part) const {
    const auto file = put("weights", bytes);
    expect_error(ErrorKind::input, {part, file.string()}, [&] { read_weights(file); });
  }
  const std::filesystem::path& folder() const { return scratch_.path(); }

 private:
  Scratch scratch_;
};

TEST_F(WeightsFile, OtherFilesAreCalledWhatTheyAre) {
  expect_bad("", "is empty");
  expect_bad("version https://git-lfs.github.com/spec/v1\noid sha256:12\nsize 3\n", "git-lfs");
  expect_bad("<!DOCTYPE html><html></html>", "web page");
  expect_bad(std::string("PK\x03\x04", 4) + "archive/data.pkl...", "zip archive");
  expect_bad("\x80\x02}q", "pickle");
  expect_bad("hello, world", "safetensors");
  expect_error(ErrorKind::input, {"cannot be read", "nowhere.h5"},
               [&] { read_weights(folder() / "nowhere.h5"); });
  expect_error(ErrorKind::input, {"is a folder"}, [&] { read_weights(folder()); });
}

TEST_F(WeightsFile, ParametersAreWritten) {
  const Plan plan = make_plan({{"dense/bias", {3}},
                               {"conv1_conv/kernel", {1, 1, 2, 2}},
                               {"conv1_conv/bias", {2}},
                               {"dense/kernel", {2, 3}}});
  write_safetensors(folder() / "w", {{"conv1.weight", {2, 2, 1, 1}, {1, 2, 3, 4}}});
  FakeProgram program;
  std::vector<std::string> notes;
  load_weights(program, plan, folder() / "w", notes);
  ASSERT_EQ(program.written.size(), 2U) << "the head keeps its values";
  EXPECT_EQ(program.written.at(1), (std::vector<double>{1, 3, 2, 4}));
  EXPECT_EQ(program.written.at(2), (std::vector<double>{0, 0}));
  EXPECT_EQ(notes.size(), 2U);
}

TEST_F(WeightsFile, RunningAveragesAreWritten) {
  Plan plan = make_plan({{"conv1_bn/beta", {2}}, {"conv1_bn/gamma", {2}}});
  plan.statistics =
      make_plan({{"conv1_bn/moving_mean", {2}}, {"conv1_bn/moving_variance", {2}}}).parameters;
  std::vector<NamedTensor> tensors = {{"bn1.weight", {2}, {1, 2}},
                                      {"bn1.bias", {2}, {3, 4}},
                                      {"bn1.running_mean", {2}, {5, 6}},
                                      {"bn1.running_var", {2}, {7, 8}}};
  write_safetensors(folder() / "w", tensors);
  FakeProgram program;
  std::vector<std::string> notes;
  load_weights(program, plan, folder() / "w", notes);
  EXPECT_EQ(program.written.at(0), (std::vector<double>{3, 4}));
  EXPECT_EQ(program.written.at(1), (std::vector<double>{1, 2}));
  EXPECT_EQ(program.averages.at(0), (std::vector<double>{5, 6}));
  EXPECT_EQ(program.averages.at(1), (std::vector<double>{7, 8}));
  tensors.pop_back();
  write_safetensors(folder() / "part", tensors);
  expect_error(ErrorKind::input, {"missing conv1_bn/moving_variance"},
               [&] { load_weights(program, plan, folder() / "part", notes); });
}

TEST_F(WeightsFile, ValuesThatAreNoNumbersAreRefused) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  Plan plan = make_plan({{"conv1_conv/kernel", {1, 1, 2, 2}}});
  plan.statistics = make_plan({{"conv1_bn/moving_mean", {2}}}).parameters;
  const auto refuse = [&](const std::vector<NamedTensor>& tensors, const std::string& part) {
    write_safetensors(folder() / "w", tensors);
    FakeProgram program;
    std::vector<std::string> notes;
    expect_error(ErrorKind::input, {part, (folder() / "w").string()},
                 [&] { load_weights(program, plan, folder() / "w", notes); });
    EXPECT_TRUE(program.written.empty());
  };
  refuse(
      {{"conv1.weight", {2, 2, 1, 1}, {1, nan, nan, infinity}}, {"bn1.running_mean", {2}, {1, 2}}},
      "tensor conv1_conv/kernel holds 3 values that are not numbers");
  refuse({{"conv1.weight", {2, 2, 1, 1}, {1, 2, 3, 4}}, {"bn1.running_mean", {2}, {1, nan}}},
         "tensor conv1_bn/moving_mean holds 1 value that is not a number");
}

TEST_F(WeightsFile, NothingIsWrittenWhereOneDoesNotFit) {
  const Plan plan = make_plan({{"conv1_conv/kernel", {1, 1, 2, 2}}, {"conv1_bn/gamma", {2}}});
  write_safetensors(folder() / "w", {{"conv1.weight", {2, 2, 1, 1}, {1, 2, 3, 4}}});
  FakeProgram program;
  std::vector<std::string> notes;
  expect_error(ErrorKind::input, {"missing conv1_bn/gamma"},
               [&] { load_weights(program, plan, folder() / "w", notes); });
  EXPECT_TRUE(program.written.empty());
}

}  // namespace
}  // namespace paceline
