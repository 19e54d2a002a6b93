#include "results/parameters.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <unordered_map>

#include "engine/core/error.h"
#include "engine/core/hash.h"
#include "engine/core/text.h"
#include "engine/core/utf8.h"
#include "results/synonyms.h"

namespace paceline {

const std::vector<Parameter>& parameters() {
  using enum ValueKind;
  static const std::vector<Parameter> table = {
      {"gpus", integer, "1..", "replicas in all; on the cpu device a replica is a set of cores"},
      {"nodes", integer, "1..", "nodes that the tasks are spread over"},
      {"cpus_per_task", integer, "1..", "CPUs of one task (process): its whole thread budget"},
      {"cpus_per_replica", integer, "1..", "CPUs of one replica, instead of cpus_per_task"},
      {"backend", text, "", "communication stack (see: paceline list backends)"},
      {"device", text, "", "what replicas compute on (see: paceline list devices)"},
      {"precision", text, "fp32|tf32|bf16|fp16|fp64",
       "arithmetic of forward and backward; tf32 and fp16 on GPUs"},
      {"graph", boolean, "", "queue the parts of a step as CUDA graphs (device cuda)"},
      {"step_graph", boolean, "",
       "queue whole steps as one graph where no host sums between (device cuda)"},
      {"fused_sums", boolean, "",
       "compute batch_norm's sums in convolutions where the card is faster so (bf16, fp16)"},
      {"deterministic", boolean, "",
       "only algorithms that give the same bits in every run (device cuda)"},
      {"variant", text, "v1|v1.5", "of ResNet-50: a stage strides in its first 1x1, or in the 3x3"},
      {"weights", text, "", "to start from: a file, imagenet (see: paceline data fetch) or none"},
      {"batch_per_replica", integer, "1..", "samples a replica computes at once"},
      {"accumulate", integer, "1..", "batches of a replica whose gradients make one step (1)"},
      {"global_batch", integer, "1..",
       "samples of one step: gpus x batch_per_replica x accumulate, one of which it can replace"},
      {"epochs", integer, "1..", "passes over the training set"},
      {"steps", integer, "1..", "stop after this many steps"},
      {"steps_per_epoch", text, "", "K or K/replicas steps an epoch, from an endless stream"},
      {"optimizer", text, "adam|sgd|momentum|adagrad", "update rule"},
      {"learning_rate", real, "0..", "rate for one replica"},
      {"learning_rate_rule", text, "none|linear|sqrt", "how the rate grows with replicas"},
      {"warmup_epochs", real, "0..", "epochs over which the rate grows to its full value"},
      {"schedule", text, "constant|step|cosine|polynomial",
       "how the rate falls after that (docs/training.md)"},
      {"decay_epochs", text, "", "of schedule step: where the rate falls, as 30,60,80"},
      {"decay_factor", real, "0..1", "of schedule step: what is left of the rate (0.1)"},
      {"end_rate", real, "0..", "of cosine and polynomial: the last rate, for one replica (0)"},
      {"power", real, "0..", "of schedule polynomial (1)"},
      {"literal_guide_loss", boolean, "",
       "softmax before a loss that takes logits, as some guides have it (see docs/guides.md)"},
      {"momentum", real, "0..1", "of optimizer momentum"},
      {"weight_decay", real, "0..",
       "what kernels lose in a step, times the rate (docs/training.md)"},
      {"weight_decay_form", text, "decoupled|l2", "from the weight, or through the gradient"},
      {"clip_norm", real, "0..", "largest norm of the reduced gradient; larger ones are scaled"},
      {"clip_value", real, "0..", "largest element of the reduced gradient"},
      {"label_smoothing", real, "0..1", "what the loss wants of all classes alike, in sum"},
      {"augment", text, "",
       "training samples, each time: hflip, vflip, transpose, cropN, with + between"},
      {"seed", integer, "0..", "seed of weights, order, dropout and augmentation"},
      {"last_batch", text, "keep|drop", "what becomes of an incomplete last batch"},
      {"shuffle_buffer", integer, "0..", "0 shuffles the whole set; N as a buffer of N samples"},
      {"train_limit", integer, "1..", "use only the first N training samples"},
      {"test_limit", integer, "1..", "use only the first N test samples"},
      {"evaluate", text, "end|epoch|none", "when test accuracy is measured (not in fit seconds)"},
      {"evaluate_every", integer, "1..", "epochs between evaluations, of evaluate epoch (1)"},
      {"until", text, "",
       "end training at the first evaluation with test_accuracy=A, test_top5=A or test_loss=L"},
      {"bn_stats", text, "averaged|local",
       "batch_norm's running averages in evaluation: mean over replicas, or each its own"},
      {"checkpoint_every", text, "",
       "Nsteps, Nepochs or Nminutes: write the state that --resume goes on from"},
      {"keep", integer, "0..", "newest checkpoints that are kept (5); 0 keeps all", false},
      {"input", text, "data|synthetic", "real samples, or random ones made in memory"},
      {"cache", text, "off|raw|decoded",
       "what stays of an image once it was read: encoded, decoded"},
      {"cache_type", text, "uint8|fp32", "pixels: rounded, or as resized (4 times the memory)"},
      {"cache_mb", integer, "1..",
       "memory of a node for the cache of its ranks, MiB (half of what is free)"},
      {"parallel_reads", integer, "1..",
       "samples a replica reads at once, within its input threads"},
      {"read_buffer_kb", integer, "1..", "most that one read call asks for, KiB (a whole sample)"},
      {"on_bad_sample", text, "fail|skip",
       "end the run, or take the next good one and count; the rest of a damaged shard is lost"},
      {"compute_threads", integer, "1..", "threads that compute, in each replica"},
      {"input_threads", integer, "0..", "threads that prepare batches, in each replica"},
      {"comm_threads", integer, "0..1",
       "1 overlaps all-reduce with backward on a thread of its own"},
      {"oversubscribe", boolean, "", "let replicas share cores where there are too few"},
      {"bucket_mb", real, "0..", "largest gradient bucket, MiB (a lone replica has one)"},
      {"last_bucket_mb", real, "0..", "largest last bucket, MiB (it is never hidden)"},
      {"overlap", boolean, "", "reduce buckets while backward runs (false: after it)"},
      {"update", boolean, "", "run the optimizer (false only to measure its cost)"},
      {"check_every", integer, "0..",
       "compare all replicas' parameters every N steps (not in fit seconds); 0: only at the end"},
      {"tensorboard", text, "",
       "event files for TensorBoard, in a folder for this run below this one (not in fit seconds)",
       false},
      {"histogram_freq", integer, "0..",
       "epochs between histograms of all parameters in them; 0: none", false},
      {"log_every", integer, "0..", "steps between progress lines", false},
      {kControl, boolean, "",
       "the run is a point's A/A control, never a result (see: paceline sweep --control)", false},
  };
  return table;
}

const Parameter* find_parameter(std::string_view name) {
  static const auto index = [] {
    std::unordered_map<std::string_view, const Parameter*> rows;
    for (const Parameter& parameter : parameters()) rows.emplace(parameter.name, &parameter);
    return rows;
  }();
  const auto found = index.find(name);
  return found == index.end() ? nullptr : found->second;
}

std::string to_text(const Value& value) {
  struct Visitor {
    std::string operator()(bool v) const { return v ? "true" : "false"; }
    std::string operator()(std::int64_t v) const { return std::to_string(v); }
    std::string operator()(double v) const { return fmt::format("{}", v); }
    std::string operator()(const std::string& v) const { return v; }
  };
  return std::visit(Visitor{}, value);
}

namespace {

const Parameter& known_parameter(std::string_view name, const std::string& where) {
  if (const Parameter* parameter = find_parameter(name)) return *parameter;
  std::vector<std::string> names;
  for (const Parameter& parameter : parameters()) names.emplace_back(parameter.name);
  const auto instead = instead_of("axis", name);
  throw Error(ErrorKind::usage, fmt::format("unknown axis \"{}\"", name), where,
              instead ? *instead : suggestion(name, names));
}

[[noreturn]] void refuse(const Parameter& parameter, std::string_view text, std::string_view wanted,
                         const std::string& where) {
  throw Error(ErrorKind::usage, fmt::format("{} cannot be \"{}\"", parameter.name, text), where,
              fmt::format("give {}", wanted));
}

void check_range(const Parameter& parameter, double number, std::string_view text,
                 const std::string& where) {
  const auto dots = parameter.values.find("..");
  if (dots == std::string_view::npos) return;
  const auto low = to_real(parameter.values.substr(0, dots));
  const auto high = to_real(parameter.values.substr(dots + 2));
  if (low && number < *low) refuse(parameter, text, fmt::format("at least {}", *low), where);
  if (high && number > *high) refuse(parameter, text, fmt::format("at most {}", *high), where);
}

void check_choice(const Parameter& parameter, const std::string& text, const std::string& where) {
  if (parameter.values.empty()) return;
  const auto choices = split(parameter.values, '|');
  if (std::find(choices.begin(), choices.end(), text) == choices.end()) {
    refuse(parameter, text, join(choices, ", "), where);
  }
}

}  // namespace

Value checked_value(std::string_view name, const Value& value, const std::string& where) {
  const Parameter& parameter = known_parameter(name, where);
  const std::string text = to_text(value);
  switch (parameter.kind) {
    case ValueKind::boolean:
      if (!std::holds_alternative<bool>(value)) refuse(parameter, text, "true or false", where);
      return value;
    case ValueKind::integer:
      if (!std::holds_alternative<std::int64_t>(value)) {
        refuse(parameter, text, "a whole number", where);
      }
      if (std::get<std::int64_t>(value) > (std::int64_t{1} << 40)) {
        refuse(parameter, text, "a number below 2^40", where);
      }
      check_range(parameter, static_cast<double>(std::get<std::int64_t>(value)), text, where);
      return value;
    case ValueKind::real: {
      double number = 0;
      if (const auto* integer = std::get_if<std::int64_t>(&value)) {
        number = static_cast<double>(*integer);
      } else if (const auto* real = std::get_if<double>(&value); real && std::isfinite(*real)) {
        number = *real;
      } else {
        refuse(parameter, text, "a number", where);
      }
      check_range(parameter, number, text, where);
      return number;
    }
    case ValueKind::text:
      if (const auto* integer = std::get_if<std::int64_t>(&value);
          integer && parameter.name == "steps_per_epoch") {
        return std::to_string(*integer);
      }
      if (!std::holds_alternative<std::string>(value) || text.empty()) {
        refuse(parameter, text, "a text", where);
      }
      if (const std::string fault = fault_of_text(text); !fault.empty()) {
        throw Error(ErrorKind::usage, fmt::format("the text of {} {}", name, fault), where,
                    "take it out");
      }
      check_choice(parameter, text, where);
      return our_name(parameter.name, text);
  }
  return value;
}

Value parsed_value(std::string_view name, std::string_view text, const std::string& where) {
  const Parameter& parameter = known_parameter(name, where);
  switch (parameter.kind) {
    case ValueKind::boolean:
      if (text == "true" || text == "false") return text == "true";
      refuse(parameter, text, "true or false", where);
    case ValueKind::integer:
      if (auto number = to_integer(text)) return checked_value(name, *number, where);
      refuse(parameter, text, "a whole number", where);
    case ValueKind::real:
      if (auto number = to_real(text)) return checked_value(name, *number, where);
      refuse(parameter, text, "a number", where);
    case ValueKind::text:
      return checked_value(name, std::string(text), where);
  }
  return std::string(text);
}

namespace {

std::size_t canonical_index(std::string_view name) {
  const Parameter* parameter = find_parameter(name);
  if (parameter) return static_cast<std::size_t>(parameter - parameters().data());
  throw Error(ErrorKind::internal, fmt::format("unknown parameter {}", name));
}

}  // namespace

void Point::set(std::string_view name, Value value) {
  const std::size_t index = canonical_index(name);
  const auto it = std::lower_bound(
      values_.begin(), values_.end(), index,
      [](const auto& entry, std::size_t wanted) { return canonical_index(entry.first) < wanted; });
  if (it != values_.end() && it->first == name) {
    it->second = std::move(value);
  } else {
    values_.emplace(it, std::string(name), std::move(value));
  }
}

void Point::set_default(std::string_view name, Value value) {
  if (!find(name)) set(name, std::move(value));
}

void Point::erase(std::string_view name) {
  std::erase_if(values_, [&](const auto& entry) { return entry.first == name; });
}

const Value* Point::find(std::string_view name) const {
  for (const auto& [key, value] : values_) {
    if (key == name) return &value;
  }
  return nullptr;
}

std::optional<std::int64_t> Point::integer(std::string_view name) const {
  const Value* value = find(name);
  if (!value || !std::holds_alternative<std::int64_t>(*value)) return std::nullopt;
  return std::get<std::int64_t>(*value);
}

std::optional<double> Point::real(std::string_view name) const {
  const Value* value = find(name);
  if (!value) return std::nullopt;
  if (const auto* number = std::get_if<double>(value)) return *number;
  if (const auto* number = std::get_if<std::int64_t>(value)) return static_cast<double>(*number);
  return std::nullopt;
}

std::optional<std::string> Point::text(std::string_view name) const {
  const Value* value = find(name);
  if (!value) return std::nullopt;
  return to_text(*value);
}

std::string Point::text() const {
  std::string text;
  for (const auto& [name, value] : values_) {
    if (!text.empty()) text += ',';
    text += name + '=' + to_text(value);
  }
  return text;
}

std::string Point::folder() const {
  std::string encoded;
  for (const char c : text()) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) ||
                       std::string_view("=,._+-").find(c) != std::string_view::npos;
    encoded += plain ? std::string(1, c)
                     : fmt::format("%{:02X}", static_cast<unsigned>(static_cast<unsigned char>(c)));
  }
  return encoded.empty() ? "point" : encoded;
}

std::string identity_hash(std::string_view workload, const Point& all_parameters) {
  Hash hash;
  hash.add(workload).add("\n");
  for (const auto& [name, value] : all_parameters.values()) {
    if (find_parameter(name)->identity) hash.add(name + '=' + to_text(value) + '\n');
  }
  return hash.hex();
}

}  // namespace paceline
