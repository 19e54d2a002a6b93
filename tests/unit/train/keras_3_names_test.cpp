// Weights files of Keras 3: layers by class and number, variables by number.
#include <gtest/gtest.h>

#include <algorithm>

#include "engine/train/weights.h"
#include "tests/support/expect_error.h"

namespace paceline {
namespace {

NamedTensor tensor(const std::string& name, std::vector<int> shape, float first) {
  std::size_t elements = 1;
  for (const int extent : shape) elements *= static_cast<std::size_t>(extent);
  return {name, std::move(shape), std::vector<float>(elements, first)};
}

// The value of each tensor is its number in the network: of the file and of the result.
float value_at(const MappedWeights& mapped, const std::vector<WantedTensor>& wanted,
               const std::string& name) {
  const auto at = std::find_if(wanted.begin(), wanted.end(),
                               [&](const WantedTensor& each) { return each.name == name; });
  const std::vector<float>& values =
      mapped.values.at(static_cast<std::size_t>(at - wanted.begin()));
  return values.empty() ? -1 : values.front();
}

const std::vector<WantedTensor> kMlp = {{"dense_1/kernel", {3, 2}},
                                        {"dense_1/bias", {2}},
                                        {"dense/kernel", {4, 3}},
                                        {"dense/bias", {3}}};

TEST(Keras3Names, ASequentialModelWithItsOptimizer) {
  const MappedWeights mapped = map_weights(
      {tensor("layers/dense/vars/0", {4, 3}, 1), tensor("layers/dense/vars/1", {3}, 2),
       tensor("layers/dense_1/vars/0", {3, 2}, 3), tensor("layers/dense_1/vars/1", {2}, 4),
       tensor("optimizer/vars/1", {}, 0.001F), tensor("optimizer/vars/2", {4, 3}, 9)},
      kMlp, "k3.weights.h5");
  EXPECT_EQ(value_at(mapped, kMlp, "dense/kernel"), 1);
  EXPECT_EQ(value_at(mapped, kMlp, "dense/bias"), 2);
  EXPECT_EQ(value_at(mapped, kMlp, "dense_1/kernel"), 3);
  EXPECT_EQ(value_at(mapped, kMlp, "dense_1/bias"), 4);
  EXPECT_TRUE(mapped.notes.empty());
}

// Twelve convolutions: "conv2d_10" stands behind "conv2d_9". The shortcut of a block is Keras'
// third.
TEST(Keras3Names, LayersAreTakenInKerasOrder) {
  std::vector<WantedTensor> wanted;
  std::vector<NamedTensor> file;
  std::vector<std::string> layers = {"conv1"};
  for (const int block : {1, 2, 3}) {
    for (const int part : {1, 2, 0, 3}) {
      if (part == 0 && block > 1) continue;
      layers.push_back("conv2_block" + std::to_string(block) + "_" + std::to_string(part));
    }
  }
  ASSERT_EQ(layers.size(), 11U);
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const std::string number = i == 0 ? "" : "_" + std::to_string(i);
    const auto value = static_cast<float>(10 * i);
    wanted.push_back({layers[i] + "_conv/kernel", {1, 1, 2, 2}});
    wanted.push_back({layers[i] + "_conv/bias", {2}});
    file.push_back(tensor("layers/conv2d" + number + "/vars/0", {1, 1, 2, 2}, value));
    file.push_back(tensor("layers/conv2d" + number + "/vars/1", {2}, value + 1));
    const char* const variables[] = {"gamma", "beta", "moving_mean", "moving_variance"};
    for (int v = 0; v < 4; ++v) {
      wanted.push_back({layers[i] + "_bn/" + variables[v], {2}});
      file.push_back(tensor("layers/batch_normalization" + number + "/vars/" + std::to_string(v),
                            {2}, value + 2 + static_cast<float>(v)));
    }
  }
  std::vector<WantedTensor> expected = wanted;
  std::sort(file.begin(), file.end(),
            [](const NamedTensor& a, const NamedTensor& b) { return a.name < b.name; });
  std::reverse(wanted.begin(), wanted.end());  // as gradients become ready
  const MappedWeights mapped = map_weights(file, wanted, "x.weights.h5");
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const auto value = static_cast<float>(10 * (i / 6) + i % 6);
    EXPECT_EQ(value_at(mapped, wanted, expected[i].name), value) << expected[i].name;
  }
  ASSERT_EQ(mapped.notes.size(), 1U);
  expect_parts(mapped.notes[0], {"in the order of Keras' own models"});
}

TEST(Keras3Names, NestedModelsAndAnotherHead) {
  const std::vector<WantedTensor> wanted = {{"stem_conv/kernel", {1, 1, 2, 2}},
                                            {"stem_conv/bias", {2}},
                                            {"dense/kernel", {2, 5}},
                                            {"dense/bias", {5}}};
  const MappedWeights mapped =
      map_weights({tensor("layers/functional/layers/conv2d/vars/0", {1, 1, 2, 2}, 1),
                   tensor("layers/functional/layers/conv2d/vars/1", {2}, 2),
                   tensor("layers/dense/vars/0", {2, 7}, 3), tensor("layers/dense/vars/1", {7}, 4)},
                  wanted, "x.weights.h5");
  EXPECT_EQ(value_at(mapped, wanted, "stem_conv/kernel"), 1);
  EXPECT_EQ(value_at(mapped, wanted, "dense/kernel"), -1) << "initialised afresh";
}

TEST(Keras3Names, WhatDoesNotFitIsNamed) {
  const auto refused = [](std::vector<NamedTensor> file, const std::vector<std::string>& parts) {
    expect_error(ErrorKind::input, parts,
                 [&] { map_weights(std::move(file), kMlp, "x.weights.h5"); });
  };
  refused({tensor("layers/dense/vars/0", {9, 3}, 1), tensor("layers/dense/vars/1", {3}, 2),
           tensor("layers/dense_1/vars/0", {3, 8}, 3), tensor("layers/dense_1/vars/1", {8}, 4)},
          {"x.weights.h5", "dense/kernel is [9, 3] where [4, 3] is wanted"});
  refused({tensor("layers/dense/vars/0", {4, 3}, 1), tensor("layers/dense/vars/1", {3}, 2),
           tensor("layers/conv2d/vars/0", {1, 1, 2, 2}, 3)},
          {"not wanted conv2d/kernel"});
  refused({tensor("layers/dense/vars/0", {4, 3}, 1), tensor("layers/dense/vars/1", {3}, 2),
           tensor("layers/layer_normalization/vars/0", {3}, 3),
           tensor("layers/layer_normalization/vars/1", {3}, 3)},
          {"not wanted layer_normalization/0"});
}

}  // namespace
}  // namespace paceline
