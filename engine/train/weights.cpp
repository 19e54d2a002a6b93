#include "engine/train/weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <map>
#include <numeric>
#include <set>
#include <string_view>
#include <utility>

#include "engine/core/child.h"
#include "engine/core/error.h"
#include "engine/core/hash.h"
#include "engine/core/pattern.h"
#include "engine/core/random.h"
#include "engine/core/text.h"

namespace paceline {

void initialise_parameters(Program& program, const Plan& plan, std::uint64_t seed) {
  for (std::size_t i = 0; i < plan.parameters.size(); ++i) {
    const ParameterInfo& info = plan.parameters[i];
    std::vector<double> values(info.elements, info.initial);
    if (info.is_matrix()) {
      const double limit = std::sqrt(6.0 / (info.fan_in + info.fan_out));
      RandomSequence random(seed, Stream::weights,
                            static_cast<std::uint32_t>(hash_value(info.name)));
      for (double& value : values) {
        value = info.deviation > 0 ? random.normal() * info.deviation
                                   : (2 * random.uniform() - 1) * limit;
      }
    }
    program.write_parameter(static_cast<int>(i), values);
  }
}

std::uint64_t parameter_checksum(const Program& program, const Plan& plan) {
  std::vector<std::size_t> order(plan.parameters.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, [&](std::size_t a, std::size_t b) {
    return plan.parameters[a].name < plan.parameters[b].name;
  });
  Hash hash;
  for (const std::size_t index : order) {
    const std::vector<double> values = program.read_parameter(static_cast<int>(index));
    const std::vector<float> rounded(values.begin(), values.end());
    hash.add(rounded.data(), rounded.size() * sizeof(float));
  }
  return hash.value();
}

std::string not_finite(const std::string& name, std::span<const double> values) {
  const auto count =
      std::ranges::count_if(values, [](double value) { return !std::isfinite(value); });
  if (count == 0) return "";
  return fmt::format("{} holds {} value{} not {} (NaN or infinite)", name, count,
                     count == 1 ? " that is" : "s that are", count == 1 ? "a number" : "numbers");
}

std::string find_not_finite(const Program& program, const Plan& plan) {
  for (const auto* arrays : {&plan.parameters, &plan.statistics}) {
    for (std::size_t i = 0; i < arrays->size(); ++i) {
      const int index = static_cast<int>(i);
      const std::vector<double> values = arrays == &plan.parameters ? program.read_parameter(index)
                                                                    : program.read_statistic(index);
      std::string found = not_finite((*arrays)[i].name, values);
      if (!found.empty()) return found;
    }
  }
  return "";
}

namespace {

// What people give instead of weights, by its first bytes.
struct Disguise {
  std::string_view begin;
  const char* what;
  const char* fix;
};

constexpr std::string_view kHdf5 = "\x89HDF\r\n\x1a\n";
constexpr Disguise kDisguises[] = {
    {"version https://git-lfs", "is a git-lfs pointer, not the file", "run git lfs pull"},
    {"<", "is a web page, not weights", "download the file again"},
    {"PK\x03\x04", "is a zip archive: PyTorch's .pth, a .keras or an .npz file",
     "save it as safetensors, or as Keras' .h5"},
    {"\x80", "is a Python pickle (.pth)", "save it as safetensors"},
};

std::string first_bytes(const std::filesystem::path& file) {
  std::error_code code;
  if (std::filesystem::is_directory(file, code)) {
    throw input_error("this is a folder, not a weights file", file.string(), "name a file");
  }
  std::ifstream stream(file, std::ios::binary);
  if (!stream) {
    throw input_error(std::string("weights cannot be read: ") + std::strerror(errno), file.string(),
                      "check the path and its permissions");
  }
  std::array<char, 32> bytes{};
  stream.read(bytes.data(), bytes.size());
  return {bytes.data(), static_cast<std::size_t>(stream.gcount())};
}

constexpr std::size_t kNamed = 3;  // of each kind in an error, the others are counted

std::string layer_name(const std::string& name) {
  return name.substr(0, name.rfind('/'));
}
std::string variable_name(const std::string& name) {
  return name.substr(name.rfind('/') + 1);
}

// Calls visit(canonical position, position in a file that has the outputs first) of each value:
// (out, in, rows, columns) for (rows, columns, in, out), and (out, in) for (in, out).
template <typename Visit>
void for_each_value(const std::vector<int>& canonical, std::size_t values, Visit visit) {
  const auto extent = [&](std::size_t from_back) {
    return static_cast<std::size_t>(canonical[canonical.size() - 1 - from_back]);
  };
  const std::size_t outs = extent(0), ins = extent(1);
  const std::size_t places = values / std::max<std::size_t>(outs * ins, 1);
  for (std::size_t out = 0; out < outs; ++out) {
    for (std::size_t in = 0; in < ins; ++in) {
      for (std::size_t place = 0; place < places; ++place) {
        visit((place * ins + in) * outs + out, (out * ins + in) * places + place);
      }
    }
  }
}

std::vector<float> from_torch(const NamedTensor& tensor, const std::vector<int>& canonical) {
  if (canonical.size() < 2) return tensor.values;
  std::vector<float> values(tensor.values.size());
  for_each_value(canonical, values.size(), [&](std::size_t ours, std::size_t theirs) {
    values[ours] = tensor.values[theirs];
  });
  return values;
}

std::vector<int> torch_shape(const std::vector<int>& shape) {
  if (shape.size() == 4) return {shape[3], shape[2], shape[0], shape[1]};
  if (shape.size() == 2) return {shape[1], shape[0]};
  return shape;
}

// "weight" of "kernel"; empty where there is none.
std::string torch_variable(const std::string& variable) {
  static const std::map<std::string, std::string> kVariables = {{"kernel", "weight"},
                                                                {"bias", "bias"},
                                                                {"gamma", "weight"},
                                                                {"beta", "bias"},
                                                                {"moving_mean", "running_mean"},
                                                                {"moving_variance", "running_var"}};
  const auto found = kVariables.find(variable);
  return found == kVariables.end() ? "" : found->second;
}

class Mapping {
 public:
  Mapping(std::vector<NamedTensor> tensors, const std::vector<WantedTensor>& wanted,
          const std::string& where)
      : tensors_(std::move(tensors)),
        wanted_(wanted),
        where_(where),
        used_(tensors_.size(), false) {
    torch_ = std::ranges::none_of(tensors_, [](const NamedTensor& tensor) {
      return tensor.name.find('/') != std::string::npos;
    });
    mapped_.values.resize(wanted_.size());
    for (const WantedTensor& tensor : wanted_) {
      wanted_names_.insert(tensor.name);
      if (variable_name(tensor.name) == "kernel" && tensor.shape.size() == 2) {
        head_.insert(layer_name(tensor.name));
      }
    }
    if (wanted_names_.contains("wte/tokens")) head_.clear();  // its head is the table of tokens
    name_tensors();
  }

  MappedWeights run() {
    take_backbone();
    for (const std::string& layer : head_) take_head(layer);
    refuse_the_rest();
    if (torch_ && index_.count("conv2_block1_1_conv/kernel")) {
      mapped_.notes.push_back(
          "torchvision trains its ResNet-50 with the stride in the 3x3 convolution: these weights "
          "are for --variant v1.5");
    }
    return std::move(mapped_);
  }

 private:
  // Canonical names to indices of tensors.
  void name_tensors() {
    std::map<std::string, std::string> canonical_of;  // by torch name
    for (const WantedTensor& tensor : wanted_) {
      const std::string torch = torch_name(tensor.name);
      if (!torch.empty()) canonical_of[torch] = tensor.name;
    }
    // The last layer of torchvision's is "fc"; ours, if it has but one, has a name of its own.
    if (head_.size() == 1) {
      canonical_of["fc.weight"] = *head_.begin() + "/kernel";
      canonical_of["fc.bias"] = *head_.begin() + "/bias";
    }
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      std::string name = tensors_[i].name;
      if (torch_) {
        if (name.ends_with("num_batches_tracked")) used_[i] = true;  // no weight
        const auto found = canonical_of.find(name);
        name = found == canonical_of.end() ? name : found->second;
      } else {
        name = from_keras(name);
      }
      if (!index_.emplace(name, i).second) {
        throw input_error("the file has two tensors for " + name + ": " +
                              tensors_[index_[name]].shown_name() + " and " +
                              tensors_[i].shown_name(),
                          where_, "keep one of them");
      }
    }
  }

  // The variable's layer is the last group, but for layers that were renamed when saved: then the
  // first.
  std::string from_keras(std::string name) const {
    if (name.starts_with("model_weights/")) name.erase(0, std::string("model_weights/").size());
    if (const auto colon = name.rfind(':'); colon != std::string::npos) name.erase(colon);
    const std::vector<std::string> parts = split(name, '/');
    if (parts.size() < 2) return name;
    const std::string last = parts[parts.size() - 2] + "/" + parts.back();
    const std::string first = parts[0] + "/" + parts.back();
    return wanted_names_.count(last) || !wanted_names_.count(first) ? last : first;
  }

  bool fits(const WantedTensor& wanted, const NamedTensor& found) const {
    return found.shape == (torch_ ? torch_shape(wanted.shape) : wanted.shape);
  }

  void take(std::size_t wanted, std::size_t found) {
    used_[found] = true;
    NamedTensor& tensor = tensors_[found];
    mapped_.values[wanted] =
        torch_ ? from_torch(tensor, wanted_[wanted].shape) : std::move(tensor.values);
  }

  void take_backbone() {
    std::size_t zeros = 0;
    for (std::size_t w = 0; w < wanted_.size(); ++w) {
      const WantedTensor& wanted = wanted_[w];
      if (head_.count(layer_name(wanted.name))) continue;
      const auto found = index_.find(wanted.name);
      if (found == index_.end()) {
        const bool zero = torch_ && variable_name(wanted.name) == "bias" &&
                          index_.count(layer_name(wanted.name) + "/kernel");
        if (zero) {
          mapped_.values[w].assign(static_cast<std::size_t>(wanted.shape[0]), 0.0F);
          ++zeros;
        } else {
          missing_.push_back(wanted.name);
        }
      } else if (fits(wanted, tensors_[found->second])) {
        take(w, found->second);
      } else {
        used_[found->second] = true;
        misshapen_.push_back(misfit_text(wanted, found->second));
      }
    }
    if (zeros > 0) {
      mapped_.notes.push_back(
          fmt::format("{} biases of convolutions, which the file does not have, are zero", zeros));
    }
  }

  std::string misfit_text(const WantedTensor& wanted, std::size_t found) const {
    return fmt::format("{} is {} where {} is wanted", tensors_[found].shown_name(),
                       shape_text(tensors_[found].shape),
                       shape_text(torch_ ? torch_shape(wanted.shape) : wanted.shape));
  }

  // All of a layer, or nothing.
  void take_head(const std::string& layer) {
    std::vector<std::pair<std::size_t, std::size_t>> pairs;
    for (std::size_t w = 0; w < wanted_.size(); ++w) {
      if (layer_name(wanted_[w].name) != layer) continue;
      const auto found = index_.find(wanted_[w].name);
      if (found == index_.end() || !fits(wanted_[w], tensors_[found->second])) {
        if (found != index_.end()) head_misfits_.push_back(misfit_text(wanted_[w], found->second));
        mapped_.notes.push_back(
            "layer " + layer + " is initialised afresh: the file has " +
            (found == index_.end()
                 ? "no such layer"
                 : "one of another shape, " + shape_text(tensors_[found->second].shape)));
        return;
      }
      pairs.emplace_back(w, found->second);
    }
    for (const auto& [wanted, found] : pairs) take(wanted, found);
  }

  // A dense layer of the file that was not taken is a head for other classes.
  void refuse_the_rest() {
    std::vector<std::string> extra;
    std::set<std::string> other_head;
    for (const auto& [name, i] : index_) {
      const bool kernel = variable_name(name) == "kernel" || name.ends_with(".weight");
      if (!used_[i] && kernel && tensors_[i].shape.size() == 2) other_head.insert(name_stem(name));
    }
    for (const auto& [name, i] : index_) {
      if (!used_[i] && !other_head.count(name_stem(name)))
        extra.push_back(tensors_[i].shown_name());
    }
    for (const std::string& layer : other_head) {
      if (!head_.count(layer))
        mapped_.notes.push_back("layer " + layer + " of the file is not used");
    }
    std::vector<std::string> faults;
    if (!missing_.empty()) faults.push_back("missing " + join_first(kNamed, missing_));
    if (!misshapen_.empty()) faults.push_back(join_first(kNamed, misshapen_));
    if (!extra.empty()) faults.push_back("not wanted " + join_first(kNamed, extra));
    const bool some =
        std::ranges::any_of(mapped_.values, [](const auto& values) { return !values.empty(); });
    if (!some) {
      faults.push_back(head_misfits_.empty() ? "no tensor of it is there"
                                             : join_first(kNamed, head_misfits_));
    }
    if (faults.empty()) return;
    throw input_error("weights do not fit the network: " + join(faults, ", "), where_,
                      "give weights of this network, or --weights none");
  }

  static std::string name_stem(const std::string& name) {
    return name.substr(0, name.find_last_of("/."));
  }

  std::vector<NamedTensor> tensors_;
  const std::vector<WantedTensor>& wanted_;
  std::string where_;
  bool torch_ = false;
  std::vector<bool> used_;
  std::set<std::string> wanted_names_, head_;  // head_: layers
  std::map<std::string, std::size_t> index_;
  std::vector<std::string> missing_, misshapen_, head_misfits_;
  MappedWeights mapped_;
};

// DistributedDataParallel and torch.compile name what they wrap, also each other.
std::string drop_wrappers(std::vector<NamedTensor>& tensors) {
  const Replacements names = {{R"((?<![^.])(?:(?:module|_orig_mod)\.)+)", ""}};
  std::string example;
  for (NamedTensor& tensor : tensors) {
    if (tensor.name.find('/') != std::string::npos) continue;
    const std::string name = names(tensor.name);
    if (name == tensor.name) continue;
    example = fmt::format("{} is read as {}", tensor.name, name);
    tensor.file_name = std::exchange(tensor.name, name);
  }
  return example;
}

}  // namespace

void try_weights(const std::filesystem::path& file) {
  constexpr double kSeconds = 300;  // a large file on a slow file system
  if (!first_bytes(file).starts_with(kHdf5)) return;
  run_isolated([&] { read_keras_h5(file); }, kSeconds, "HDF5", file.string());
}

std::vector<NamedTensor> read_weights(const std::filesystem::path& file) {
  const std::string begin = first_bytes(file);
  if (begin.empty()) {
    throw input_error("the file is empty", file.string(), "get the file again");
  }
  if (begin.starts_with(kHdf5)) return read_keras_h5(file);
  // A safetensors header follows its length; the length may begin with any byte.
  if (begin.size() <= 8 || begin[8] != '{') {
    for (const Disguise& disguise : kDisguises) {
      if (!begin.starts_with(disguise.begin)) continue;
      throw input_error(disguise.what, file.string(), disguise.fix);
    }
  }
  return read_safetensors(file);
}

void load_weights(Program& program, const Plan& plan, const std::filesystem::path& file,
                  std::vector<std::string>& notes) {
  std::vector<WantedTensor> wanted;
  for (const auto* arrays : {&plan.parameters, &plan.statistics}) {
    for (const ParameterInfo& info : *arrays) wanted.push_back({info.name, info.shape});
  }
  MappedWeights mapped = map_weights(read_weights(file), wanted, file.string());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const std::vector<double> values(mapped.values[i].begin(), mapped.values[i].end());
    const std::string bad = not_finite("tensor " + wanted[i].name, values);
    if (!bad.empty()) {
      throw input_error(bad, file.string(), "use weights of a training that converged");
    }
  }
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (mapped.values[i].empty()) continue;
    const std::vector<double> values(mapped.values[i].begin(), mapped.values[i].end());
    if (i < plan.parameters.size()) {
      program.write_parameter(static_cast<int>(i), values);
    } else {
      program.write_statistic(static_cast<int>(i - plan.parameters.size()), values);
    }
  }
  notes.insert(notes.end(), mapped.notes.begin(), mapped.notes.end());
}

std::string torch_name(const std::string& canonical) {
  thread_local const Pattern block(R"(conv(\d)_block(\d+)_([0-3])_(conv|bn)/\w+)");
  thread_local const Pattern stem(R"(conv1_(conv|bn)/\w+)");
  std::string layer;
  if (const auto of_stem = stem.match(canonical)) {
    layer = of_stem->at(1) + "1";
  } else if (const auto match = block.match(canonical)) {
    const std::string &stage = match->at(1), &index = match->at(2), &part = match->at(3),
                      &kind = match->at(4);
    layer = fmt::format("layer{}.{}.", std::stoi(stage) - 1, std::stoi(index) - 1);
    layer += part != "0" ? kind + part : kind == "conv" ? "downsample.0" : "downsample.1";
  }
  const std::string variable = torch_variable(variable_name(canonical));
  return layer.empty() || variable.empty() ? "" : layer + "." + variable;
}

NamedTensor in_torch_form(NamedTensor tensor) {
  if (variable_name(tensor.name) == "tokens" || variable_name(tensor.name) == "positions") {
    tensor.name = variable_name(tensor.name) == "tokens" ? "wte.weight" : "wpe.weight";
    return tensor;  // rows are tokens and places there, too
  }
  const std::string variable = torch_variable(variable_name(tensor.name));
  const std::string name = torch_name(tensor.name);
  if (!name.empty()) {
    tensor.name = name;
  } else if (!variable.empty()) {
    tensor.name = layer_name(tensor.name) + "." + variable;
  }
  if (tensor.shape.size() < 2) return tensor;
  std::vector<float> values(tensor.values.size());
  for_each_value(tensor.shape, values.size(), [&](std::size_t ours, std::size_t theirs) {
    values[theirs] = tensor.values[ours];
  });
  tensor.values = std::move(values);
  tensor.shape = torch_shape(tensor.shape);
  return tensor;
}

MappedWeights map_weights(std::vector<NamedTensor> tensors, const std::vector<WantedTensor>& wanted,
                          const std::string& where) {
  const std::string wrappers = drop_wrappers(tensors);
  const std::string note = has_keras_3_names(tensors) ? take_canonical_names(tensors, wanted)
                           : has_gpt2_names(tensors)  ? take_gpt2_names(tensors, wanted)
                                                      : "";
  MappedWeights mapped = Mapping(std::move(tensors), wanted, where).run();
  for (const std::string& first : {note, wrappers}) {
    if (!first.empty()) mapped.notes.insert(mapped.notes.begin(), first);
  }
  return mapped;
}

}  // namespace paceline
