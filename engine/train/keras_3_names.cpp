#include <algorithm>
#include <cctype>
#include <map>
#include <utility>

#include "engine/core/pattern.h"
#include "engine/core/text.h"
#include "engine/train/weights.h"

namespace paceline {

namespace {

constexpr std::string_view kVariables = "/vars/";

// Sorts "dense_2" before "dense_10".
using SortKey = std::vector<std::pair<std::string, std::int64_t>>;

bool is_digit(char c) {
  return std::isdigit(static_cast<unsigned char>(c)) != 0;
}

SortKey natural_key(const std::string& name) {
  SortKey key;
  for (std::size_t at = 0; at < name.size();) {
    std::size_t digits = at;
    while (digits < name.size() && !is_digit(name[digits])) ++digits;
    std::size_t end = digits;
    while (end < name.size() && is_digit(name[end])) ++end;
    key.emplace_back(name.substr(at, digits - at),
                     to_integer(name.substr(digits, end - digits)).value_or(-1));
    at = end;
  }
  return key;
}

// Keras lists the shortcut of a residual block behind its second convolution.
SortKey order_in_keras(const std::string& layer) {
  thread_local const Pattern shortcut(R"((conv\d_block\d+)_0_)");
  return natural_key(shortcut.replace(layer, "${1}_2x_"));
}

// A layer of the file, its tensors by the number of the variable.
struct StoredLayer {
  std::string path;
  std::map<std::int64_t, NamedTensor*> variables;
};

// The canonical names of a kind's variables, in Keras' order. Empty: another kind.
std::vector<std::string> list_variables(const StoredLayer& layer) {
  const auto rank = [&](std::int64_t variable) {
    const auto found = layer.variables.find(variable);
    return found == layer.variables.end() ? -1 : static_cast<int>(found->second->shape.size());
  };
  const std::size_t count = layer.variables.size();
  const bool has_kernel = rank(0) == 4 || rank(0) == 2;
  if (has_kernel && (count == 1 || (count == 2 && rank(1) == 1))) return {"kernel", "bias"};
  if (count == 4 && rank(0) == 1 && rank(1) == 1 && rank(2) == 1 && rank(3) == 1) {
    return {"gamma", "beta", "moving_mean", "moving_variance"};
  }
  return {};
}

// "conv", "dense", "norm": of a layer's first variable and its shape.
std::string layer_kind(const std::string& first, std::size_t rank) {
  if (first == "gamma") return "norm";
  return rank == 4 ? "conv" : "dense";
}

std::map<std::string, std::vector<std::string>> layers_by_kind(
    const std::vector<WantedTensor>& wanted) {
  std::map<std::string, std::vector<std::string>> layers;
  for (const WantedTensor& tensor : wanted) {
    const auto slash = tensor.name.rfind('/');
    const std::string variable = tensor.name.substr(slash + 1);
    if (variable != "kernel" && variable != "gamma") continue;
    layers[layer_kind(variable, tensor.shape.size())].push_back(tensor.name.substr(0, slash));
  }
  for (auto& [kind, names] : layers) {
    std::ranges::sort(names, [](const std::string& a, const std::string& b) {
      return order_in_keras(a) < order_in_keras(b);
    });
  }
  return layers;
}

// "functional.dense_1" of "layers/functional/layers/dense_1".
std::string own_name(const std::string& path) {
  std::vector<std::string> parts = split(path, '/');
  std::erase(parts, "layers");
  return join(parts, ".");
}

// Whether it belongs to the optimizer, a random generator or a metric.
bool is_training_state(const NamedTensor& tensor) {
  return tensor.shape.empty() || tensor.name.starts_with("optimizer/") ||
         tensor.name.find("seed_generator/") != std::string::npos;
}

}  // namespace

bool has_keras_3_names(const std::vector<NamedTensor>& tensors) {
  const auto has_number = [](const NamedTensor& tensor) {
    const auto at = tensor.name.rfind(kVariables);
    return at != std::string::npos && to_integer(tensor.name.substr(at + kVariables.size()));
  };
  return !tensors.empty() && std::all_of(tensors.begin(), tensors.end(), has_number);
}

std::string take_canonical_names(std::vector<NamedTensor>& tensors,
                                 const std::vector<WantedTensor>& wanted) {
  std::erase_if(tensors, is_training_state);
  std::map<SortKey, StoredLayer> stored;
  for (NamedTensor& tensor : tensors) {
    const auto at = tensor.name.rfind(kVariables);
    StoredLayer& layer = stored[natural_key(tensor.name.substr(0, at))];
    layer.path = tensor.name.substr(0, at);
    layer.variables[*to_integer(tensor.name.substr(at + kVariables.size()))] = &tensor;
  }
  const auto layers = layers_by_kind(wanted);
  std::map<std::string, std::size_t> taken;  // by kind
  bool is_by_order = false;
  for (const auto& [key, layer] : stored) {
    const std::vector<std::string> variables = list_variables(layer);
    std::string name = own_name(layer.path);
    if (!variables.empty()) {
      const std::string kind =
          layer_kind(variables.front(), layer.variables.begin()->second->shape.size());
      const auto known = layers.find(kind);
      const std::size_t number = taken[kind]++;
      if (known != layers.end() && number < known->second.size()) {
        is_by_order = is_by_order || name != known->second[number];
        name = known->second[number];
      }
    }
    for (const auto& [number, tensor] : layer.variables) {
      const auto index = static_cast<std::size_t>(number);
      tensor->name =
          name + "/" + (index < variables.size() ? variables[index] : std::to_string(number));
    }
  }
  return is_by_order
             ? "Keras 3 stores no names of layers: each kind of layer was taken in the order "
               "of Keras' own models"
             : "";
}

}  // namespace paceline
