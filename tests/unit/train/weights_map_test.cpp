// Names and layouts of weight files mapped to ours, and what does not fit is named.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "engine/train/weights.h"
#include "tests/support/expect_error.h"

namespace paceline {
namespace {

// A stem, one block with a shortcut, and a head: every kind of name.
std::vector<WantedTensor> wanted_resnet() {
  std::vector<WantedTensor> wanted;
  const auto conv = [&](const std::string& layer, std::vector<int> kernel) {
    wanted.push_back({layer + "_conv/kernel", kernel});
    wanted.push_back({layer + "_conv/bias", {kernel[3]}});
    for (const char* variable : {"gamma", "beta", "moving_mean", "moving_variance"}) {
      wanted.push_back({layer + "_bn/" + variable, {kernel[3]}});
    }
  };
  conv("conv1", {3, 2, 3, 4});
  conv("conv2_block1_0", {1, 1, 4, 5});
  conv("conv2_block1_1", {1, 1, 4, 2});
  wanted.push_back({"dense/kernel", {5, 3}});
  wanted.push_back({"dense/bias", {3}});
  return wanted;
}

NamedTensor counted(const std::string& name, const std::vector<int>& shape) {
  const int elements = std::accumulate(shape.begin(), shape.end(), 1, std::multiplies<>());
  NamedTensor tensor{name, shape, std::vector<float>(static_cast<std::size_t>(elements))};
  std::iota(tensor.values.begin(), tensor.values.end(), static_cast<float>(name.size() * 1000));
  return tensor;
}

std::vector<NamedTensor> keras_file(const std::string& prefix = "") {
  std::vector<NamedTensor> tensors;
  for (const WantedTensor& wanted : wanted_resnet()) {
    const std::string layer = wanted.name.substr(0, wanted.name.find('/'));
    tensors.push_back(counted(prefix + layer + "/" + wanted.name + ":0", wanted.shape));
  }
  return tensors;
}

std::vector<NamedTensor> torch_file() {
  std::vector<NamedTensor> tensors;
  for (const WantedTensor& wanted : wanted_resnet()) {
    std::vector<int> shape = wanted.shape;
    if (shape.size() == 4) shape = {shape[3], shape[2], shape[0], shape[1]};
    if (shape.size() == 2) std::reverse(shape.begin(), shape.end());
    std::string name = torch_name(wanted.name);
    if (wanted.name == "dense/kernel") name = "fc.weight";
    if (wanted.name == "dense/bias") name = "fc.bias";
    if (!wanted.name.ends_with("conv/bias")) tensors.push_back(counted(name, shape));
    if (name.ends_with("running_var")) {
      tensors.push_back({name.substr(0, name.rfind('.')) + ".num_batches_tracked", {}, {7}});
    }
  }
  return tensors;
}

std::vector<NamedTensor> without(std::vector<NamedTensor> tensors, const std::string& part) {
  std::erase_if(tensors,
                [&](const NamedTensor& t) { return t.name.find(part) != std::string::npos; });
  return tensors;
}

const std::vector<float>& environment_value(const MappedWeights& mapped, const std::string& name) {
  const auto wanted = wanted_resnet();
  const auto at = std::find_if(wanted.begin(), wanted.end(),
                               [&](const WantedTensor& w) { return w.name == name; });
  return mapped.values.at(static_cast<std::size_t>(at - wanted.begin()));
}

TEST(WeightsMap, TorchNames) {
  EXPECT_EQ(torch_name("conv1_conv/kernel"), "conv1.weight");
  EXPECT_EQ(torch_name("conv1_bn/moving_variance"), "bn1.running_var");
  EXPECT_EQ(torch_name("conv2_block1_0_conv/kernel"), "layer1.0.downsample.0.weight");
  EXPECT_EQ(torch_name("conv2_block1_0_bn/beta"), "layer1.0.downsample.1.bias");
  EXPECT_EQ(torch_name("conv5_block3_2_conv/kernel"), "layer4.2.conv2.weight");
  EXPECT_EQ(torch_name("conv4_block10_3_bn/gamma"), "layer3.9.bn3.weight");
  EXPECT_EQ(torch_name("dense/kernel"), "");
}

TEST(WeightsMap, KerasFilesAreTakenAsTheyStand) {
  for (const char* prefix : {"", "model_weights/", "model_weights/resnet50/"}) {
    const auto file = keras_file(prefix);
    const MappedWeights mapped = map_weights(file, wanted_resnet(), "x.h5");
    ASSERT_EQ(mapped.values.size(), file.size());
    for (std::size_t i = 0; i < file.size(); ++i) EXPECT_EQ(mapped.values[i], file[i].values) << i;
    EXPECT_TRUE(mapped.notes.empty());
  }
}

TEST(WeightsMap, TorchKernelsAreTransposed) {
  const auto file = torch_file();
  const MappedWeights mapped = map_weights(file, wanted_resnet(), "x.safetensors");
  const NamedTensor& theirs = file[0];  // conv1.weight: out 4, in 3, rows 3, columns 2
  ASSERT_EQ(theirs.name, "conv1.weight");
  const std::vector<float> ours = environment_value(mapped, "conv1_conv/kernel");
  ASSERT_EQ(ours.size(), theirs.values.size());
  for (int out = 0; out < 4; ++out)
    for (int in = 0; in < 3; ++in)
      for (int y = 0; y < 3; ++y)
        for (int x = 0; x < 2; ++x) {
          EXPECT_EQ(ours[static_cast<std::size_t>(((y * 2 + x) * 3 + in) * 4 + out)],
                    theirs.values[static_cast<std::size_t>(((out * 3 + in) * 3 + y) * 2 + x)]);
        }
  const std::vector<float> dense = environment_value(mapped, "dense/kernel");  // in 5, out 3
  const NamedTensor fc = counted("fc.weight", {3, 5});
  for (std::size_t in = 0; in < 5; ++in)
    for (std::size_t out = 0; out < 3; ++out)
      EXPECT_EQ(dense[in * 3 + out], fc.values[out * 5 + in]);
}

TEST(WeightsMap, TorchHasNoBiasesOfConvolutions) {
  auto file = torch_file();
  for (NamedTensor& tensor : file) tensor.name.insert(0, "module.");
  const MappedWeights mapped = map_weights(file, wanted_resnet(), "x.safetensors");
  EXPECT_EQ(environment_value(mapped, "conv2_block1_0_conv/bias"), std::vector<float>(5, 0.0F));
  const auto mean = std::find_if(file.begin(), file.end(), [](const NamedTensor& tensor) {
    return tensor.name == "module.layer1.0.downsample.1.running_mean";
  });
  ASSERT_NE(mean, file.end());
  EXPECT_EQ(environment_value(mapped, "conv2_block1_0_bn/moving_mean"), mean->values);
  ASSERT_EQ(mapped.notes.size(), 3U);
  expect_parts(mapped.notes[0], {"module.", " is read as "});
  expect_parts(mapped.notes[1], {"3 biases"});
  expect_parts(mapped.notes[2], {"v1.5"});
}

// Of torch.compile and DistributedDataParallel, in whatever order.
TEST(WeightsMap, WrappersAreTakenOffInAnyNesting) {
  const auto plain = map_weights(torch_file(), wanted_resnet(), "x.safetensors").values;
  for (const char* prefix :
       {"_orig_mod.", "_orig_mod.module.", "module._orig_mod.", "module.module."}) {
    auto file = torch_file();
    for (NamedTensor& tensor : file) tensor.name.insert(0, prefix);
    EXPECT_EQ(map_weights(file, wanted_resnet(), "x.safetensors").values, plain) << prefix;
  }
  auto inner = torch_file();
  for (NamedTensor& tensor : inner) {
    if (tensor.name.starts_with("layer1.")) tensor.name.insert(7, "_orig_mod.");
  }
  EXPECT_EQ(map_weights(inner, wanted_resnet(), "x.safetensors").values, plain);
}

TEST(WeightsMap, AHeadMayBeMissingOrAnother) {
  const MappedWeights none = map_weights(without(keras_file(), "dense"), wanted_resnet(), "x.h5");
  EXPECT_TRUE(environment_value(none, "dense/kernel").empty() &&
              environment_value(none, "dense/bias").empty());
  ASSERT_EQ(none.notes.size(), 1U);
  expect_parts(none.notes[0], {"dense is initialised afresh"});

  auto file = without(torch_file(), "fc.");
  file.push_back(counted("fc.weight", {1000, 5}));
  file.push_back(counted("fc.bias", {1000}));
  const MappedWeights other = map_weights(file, wanted_resnet(), "x.safetensors");
  EXPECT_TRUE(environment_value(other, "dense/kernel").empty());
  expect_parts(other.notes[1], {"another shape, [1000, 5]"});

  auto keras = without(keras_file(), "dense");
  keras.push_back(counted("predictions/predictions/kernel:0", {5, 1000}));
  keras.push_back(counted("predictions/predictions/bias:0", {1000}));
  const MappedWeights unused = map_weights(keras, wanted_resnet(), "x.h5");
  expect_parts(unused.notes.back(), {"predictions of the file is not used"});
}

// A network of dense layers alone would take nothing of it and train from random values.
TEST(WeightsMap, AFileWithoutATensorOfTheNetworkIsRefused) {
  const std::vector<WantedTensor> wanted = {{"dense/kernel", {5, 3}}, {"dense/bias", {3}}};
  const auto refuse = [&](const std::vector<NamedTensor>& file, const char* fault) {
    expect_error(ErrorKind::input,
                 {"w.safetensors: weights do not fit the network: ", fault, "--weights none"},
                 [&] { map_weights(file, wanted, "w.safetensors"); });
  };
  refuse({}, "no tensor of it is there");
  refuse({counted("dense/kernel", {7, 3})}, "dense/kernel is [7, 3] where [5, 3] is wanted");
}

TEST(WeightsMap, WhatDoesNotFitIsNamed) {
  const auto map = [](const std::vector<NamedTensor>& file) {
    return [file] { map_weights(file, wanted_resnet(), "x.h5"); };
  };
  expect_error(ErrorKind::input, {"missing conv1_bn/gamma", "x.h5"},
               map(without(keras_file(), "conv1_bn/gamma")));
  expect_error(ErrorKind::input, {"missing conv1_conv/kernel", "and 3 more"},
               map(without(keras_file(), "conv1_")));
  auto extra = keras_file();
  extra.push_back(counted("conv9/conv9/kernel:0", {1, 1, 2, 2}));
  expect_error(ErrorKind::input, {"not wanted conv9/conv9/kernel:0"}, map(extra));
  auto misshapen = torch_file();
  misshapen[0] = counted("conv1.weight", {4, 3, 2, 3});
  expect_error(ErrorKind::input, {"conv1.weight is [4, 3, 2, 3] where [4, 3, 3, 2] is wanted"},
               map(misshapen));
  auto twice = keras_file();
  twice.push_back(twice.front());
  expect_error(ErrorKind::input, {"two tensors for conv1_conv/kernel"}, map(twice));
  expect_error(ErrorKind::input, {"missing"}, map({}));
}

}  // namespace
}  // namespace paceline
