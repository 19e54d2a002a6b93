// Names and layouts of GPT-2's weights.
#include <gtest/gtest.h>

#include "engine/train/weights.h"
#include "tests/support/expect_error.h"

namespace paceline {
namespace {

const std::vector<WantedTensor>& wanted() {
  static const std::vector<WantedTensor> tensors = {
      {"ln_f/gamma", {2}},           {"ln_f/beta", {2}},
      {"h.0.attn.c_proj/bias", {2}}, {"h.0.attn.c_proj/kernel", {2, 2}},
      {"h.0.attn.c_attn/bias", {6}}, {"h.0.attn.c_attn/kernel", {2, 6}},
      {"wte/positions", {3, 2}},     {"wte/tokens", {4, 2}}};
  return tensors;
}

// Hugging Face's: inputs first, a table of three tokens, a mask.
std::vector<NamedTensor> hugging_face() {
  return {{"wte.weight", {3, 2}, {1, 2, 3, 4, 5, 6}},
          {"wpe.weight", {4, 2}, {10, 11, 12, 13, 14, 15, 16, 17}},
          {"h.0.attn.bias", {1, 1, 2, 2}, {1, 0, 1, 1}},
          {"h.0.attn.c_attn.weight", {2, 6}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}},
          {"h.0.attn.c_attn.bias", {6}, {0, 1, 2, 3, 4, 5}},
          {"h.0.attn.c_proj.weight", {2, 2}, {1, 2, 3, 4}},
          {"h.0.attn.c_proj.bias", {2}, {7, 8}},
          {"ln_f.weight", {2}, {1, 1}},
          {"ln_f.bias", {2}, {0, 9}}};
}

TEST(Gpt2Names, HuggingFaces) {
  const MappedWeights mapped = map_weights(hugging_face(), wanted(), "model.safetensors");
  EXPECT_EQ(mapped.values[1], (std::vector<float>{0, 9}));
  EXPECT_EQ(mapped.values[3], (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(mapped.values[5], (std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}));
  EXPECT_EQ(mapped.values[6], (std::vector<float>{10, 11, 12, 13, 14, 15}));
  EXPECT_EQ(mapped.values[7], (std::vector<float>{1, 2, 3, 4, 5, 6, 0, 0}));
  EXPECT_EQ(mapped.notes,
            std::vector<std::string>{
                "zero: 1 token that the file does not have; not used: 1 place of the file"});
}

TEST(Gpt2Names, OutputsFirstAreTransposed) {
  std::vector<NamedTensor> tensors = hugging_face();
  for (NamedTensor& tensor : tensors) tensor.name = "transformer." + tensor.name;
  tensors[3].shape = {6, 2};
  tensors.push_back({"lm_head.weight", {3, 2}, {1, 2, 3, 4, 5, 6}});
  const MappedWeights mapped = map_weights(tensors, wanted(), "ckpt.safetensors");
  EXPECT_EQ(mapped.values[3], (std::vector<float>{1, 3, 2, 4}));
  EXPECT_EQ(mapped.values[5], (std::vector<float>{0, 2, 4, 6, 8, 10, 1, 3, 5, 7, 9, 11}));
}

TEST(Gpt2Names, WhatIsExportedIsReadAgain) {
  const MappedWeights mapped = map_weights(hugging_face(), wanted(), "model.safetensors");
  std::vector<NamedTensor> exported;
  for (std::size_t i = 0; i < wanted().size(); ++i) {
    exported.push_back(in_torch_form({wanted()[i].name, wanted()[i].shape, mapped.values[i]}));
  }
  EXPECT_EQ(exported[7].name, "wte.weight");
  EXPECT_EQ(exported[5].name, "h.0.attn.c_attn.weight");
  EXPECT_EQ(exported[5].shape, (std::vector<int>{6, 2}));
  EXPECT_EQ(map_weights(exported, wanted(), "exported").values, mapped.values);
}

TEST(Gpt2Names, TwoOfATensorAreNamedAsInTheFile) {
  std::vector<NamedTensor> tensors = hugging_face();
  tensors.push_back({"transformer.wte.weight", {3, 2}, {1, 2, 3, 4, 5, 6}});
  expect_error(ErrorKind::input,
               {"two tensors for wte/tokens: wte.weight and transformer.wte.weight"},
               [&] { map_weights(tensors, wanted(), "model.safetensors"); });
  tensors.back().name = "module._orig_mod.wte.weight";
  expect_error(ErrorKind::input,
               {"two tensors for wte/tokens: wte.weight and module._orig_mod.wte.weight"},
               [&] { map_weights(tensors, wanted(), "model.safetensors"); });
}

TEST(Gpt2Names, AMissingTensorIsNamed) {
  std::vector<NamedTensor> tensors = hugging_face();
  tensors.pop_back();
  expect_error(ErrorKind::input, {"missing ln_f/beta", "model.safetensors"},
               [&] { map_weights(tensors, wanted(), "model.safetensors"); });
}

}  // namespace
}  // namespace paceline
