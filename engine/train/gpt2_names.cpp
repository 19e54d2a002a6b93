// Names of GPT-2's weights at Hugging Face ("h.0.attn.c_attn.weight", inputs first) and in
// nanoGPT's checkpoints (the same behind "transformer.", outputs first).
#include <algorithm>
#include <map>
#include <set>

#include "engine/core/text.h"
#include "engine/train/weights.h"

namespace paceline {

namespace {

std::string without_prefix(std::string name) {
  constexpr std::string_view kPrefix = "transformer.";
  if (name.starts_with(kPrefix)) name.erase(0, kPrefix.size());
  return name;
}

// The mask of attention, and the table of tokens once more.
bool is_no_weight(const std::string& name) {
  return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias") ||
         name == "lm_head.weight";
}

std::string canonical_name(const std::string& name, const std::set<std::string>& wanted) {
  if (name == "wte.weight") return "wte/tokens";
  if (name == "wpe.weight") return "wte/positions";
  const std::size_t dot = name.rfind('.');
  const std::string layer = name.substr(0, dot), variable = name.substr(dot + 1);
  for (const char* ours : {"kernel", "gamma", "bias", "beta"}) {
    const bool weight = std::string_view(ours) == "kernel" || std::string_view(ours) == "gamma";
    std::string candidate = layer + "/" + ours;
    if (weight == (variable == "weight") && wanted.contains(candidate)) return candidate;
  }
  return name;
}

void transpose(NamedTensor& tensor) {
  const auto rows = static_cast<std::size_t>(tensor.shape[0]);
  const auto columns = static_cast<std::size_t>(tensor.shape[1]);
  std::vector<float> values(tensor.values.size());
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t c = 0; c < columns; ++c) {
      values[c * rows + r] = tensor.values[r * columns + c];
    }
  }
  tensor.values = std::move(values);
  std::swap(tensor.shape[0], tensor.shape[1]);
}

}  // namespace

bool has_gpt2_names(const std::vector<NamedTensor>& tensors) {
  return std::ranges::any_of(tensors, [](const NamedTensor& tensor) {
    return without_prefix(tensor.name) == "wte.weight";
  });
}

std::string take_gpt2_names(std::vector<NamedTensor>& tensors,
                            const std::vector<WantedTensor>& wanted) {
  std::map<std::string, const WantedTensor*> by_name;
  std::set<std::string> names;
  for (const WantedTensor& tensor : wanted) {
    by_name[tensor.name] = &tensor;
    names.insert(tensor.name);
  }
  for (NamedTensor& tensor : tensors) {
    if (tensor.file_name.empty()) tensor.file_name = tensor.name;
    tensor.name = without_prefix(std::move(tensor.name));
  }
  std::erase_if(tensors, [](const NamedTensor& tensor) { return is_no_weight(tensor.name); });
  bool outputs_first = false;
  for (NamedTensor& tensor : tensors) {
    tensor.name = canonical_name(tensor.name, names);
    if (!tensor.name.ends_with(".c_attn/kernel") || tensor.shape.size() != 2) continue;
    outputs_first = tensor.shape[0] > tensor.shape[1];
  }
  std::string note;
  for (NamedTensor& tensor : tensors) {
    if (outputs_first && tensor.name.ends_with("/kernel") && tensor.shape.size() == 2) {
      transpose(tensor);
    }
    const auto found = by_name.find(tensor.name);
    const bool table = tensor.name == "wte/tokens" || tensor.name == "wte/positions";
    if (!table || found == by_name.end() || tensor.shape.size() != 2) continue;
    const std::vector<int>& shape = found->second->shape;
    const int missing = shape[0] - tensor.shape[0];
    const bool places = tensor.name == "wte/positions";
    if (missing == 0 || tensor.shape[1] != shape[1] || places == (missing > 0)) continue;
    // A shorter context uses the first places.
    if (!note.empty()) note += "; ";
    note += places ? "not used: " + counted(-missing, "place") + " of the file"
                   : "zero: " + counted(missing, "token") + " that the file does not have";
    tensor.shape = shape;
    tensor.values.resize(static_cast<std::size_t>(shape[0]) * static_cast<std::size_t>(shape[1]));
  }
  return note;
}

}  // namespace paceline
