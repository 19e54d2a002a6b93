#include "run/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <type_traits>

#include "engine/core/backend_stack.h"
#include "engine/core/error.h"
#include "engine/core/memory.h"
#include "engine/core/text.h"
#include "results/names.h"

namespace paceline {

namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20, kKiB = 1 << 10;

std::size_t read_count(const Settings& given, std::string_view name) {
  return given.given(name) ? static_cast<std::size_t>(given.integer(name)) : 0;
}

// Settings whose parameters have neither a value nor a default stay as they are.
template <HasFacts Config>
void set_by_name(Config& config, const Settings& given) {
  visit_facts(config, [&]<typename T>(const FactInfo& setting, T& member) {
    if (!given.given(setting.name) && find_parameter(setting.name)->initial.empty()) return;
    if constexpr (std::is_same_v<T, bool>) {
      member = given.flag(setting.name);
    } else if constexpr (std::is_integral_v<T>) {
      constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
      const std::int64_t value = given.integer(setting.name);
      member = static_cast<T>(sizeof(T) < sizeof value ? std::min(value, most) : value);
    } else {
      member = given.real(setting.name);
    }
  });
}

std::vector<std::string> given_for_encoded_images(const Point& p) {
  std::vector<std::string> names;
  for (const auto& [name, value] : p.values()) {
    if (find_parameter(name)->need == Requirement::encoded_images) names.push_back(name);
  }
  return names;
}

InputConfig make_input_config(const Point& p, const ThreadPlan& threads) {
  const Settings given(p);
  InputConfig input;
  set_by_name(input, given);
  input.synthetic = given.text("input") == "synthetic";
  const std::string cache = given.text("cache");
  input.cache = cache == "off"   ? CacheKind::off
                : cache == "raw" ? CacheKind::raw
                                 : CacheKind::decoded;
  input.cache_type = given.text("cache_type") == "fp32" ? DType::f32 : DType::u8;
  if (given.given("cache_mb")) input.cache_bytes = read_count(given, "cache_mb") * kMiB;
  input.parallel_reads = given.given("parallel_reads")
                             ? static_cast<int>(given.integer("parallel_reads"))
                             : std::max(1, threads.input);
  input.read_buffer_bytes = read_count(given, "read_buffer_kb") * kKiB;
  input.skip_bad_samples = given.text("on_bad_sample") == "skip";
  input.for_encoded_images = given_for_encoded_images(p);
  return input;
}

CheckpointConfig make_checkpoint_config(const Settings& given) {
  CheckpointConfig checkpoints;
  if (!given.given("checkpoint_every")) return checkpoints;
  checkpoints.schedule = parse_checkpoint_schedule(given.text("checkpoint_every"), "");
  checkpoints.keep = static_cast<int>(given.integer("keep_checkpoints"));
  checkpoints.weights_only = given.flag("save_weights_only");
  return checkpoints;
}

DeviceOptions make_device_options(const Point& p) {
  DeviceOptions options;
  options.precision = Settings(p).text("precision");
  for (const auto& [name, value] : p.values()) {
    if (find_parameter(name)->need == Requirement::gpu) options.settings[name] = to_text(value);
  }
  return options;
}

ScheduleSpec make_schedule_spec(const Settings& given) {
  ScheduleSpec spec;
  set_by_name(spec, given);
  spec.decay = parse_decay(given.text("schedule"));
  if (given.given("decay_epochs"))
    spec.decay_epochs = parse_decay_epochs(given.text("decay_epochs"));
  spec.metric = find_metric(given.text("plateau_metric")).value();
  return spec;
}

// Parses "K" or "K/replicas". 0: not given.
std::size_t count_steps_per_epoch(const Point& p) {
  const auto text = p.text("steps_per_epoch");
  if (!text) return 0;
  const auto parts = split(*text, '/');
  const auto steps = to_integer(parts[0]);
  const bool shared = parts.size() == 2 && parts[1] == "replicas";
  if (!steps || *steps < 1 || *steps > (1 << 30) || (parts.size() > 1 && !shared)) {
    throw usage_error(fmt::format("steps_per_epoch cannot be \"{}\"", *text), "",
                      "give a number K, or K/replicas");
  }
  const auto replicas = static_cast<std::size_t>(shared ? Settings(p).integer("gpus") : 1);
  return std::max<std::size_t>(1, static_cast<std::size_t>(*steps) / replicas);
}

void set_length(TrainConfig& config, const Point& p, const Settings& given) {
  config.epochs =
      given.given("epochs")
          ? static_cast<int>(std::min<std::int64_t>(given.integer("epochs"), kManyEpochs))
          : kManyEpochs;
  config.step_limit = read_count(given, "steps");
  config.steps_per_epoch = count_steps_per_epoch(p);
  config.accumulate = static_cast<int>(given.integer("gradient_accumulation_steps"));
  config.drop_last = given.text("last_batch") == "drop";
}

void set_optimizer(TrainConfig& config, const Settings& given) {
  config.optimizer = parse_optimizer(given.text("optimizer"));
  config.rate_rule = parse_rate_rule(given.text("learning_rate_rule"));
  config.schedule = make_schedule_spec(given);
  config.decoupled_decay = given.text("weight_decay_form") != "l2";
}

void set_evaluation(TrainConfig& config, const Settings& given) {
  const std::string when = given.text("evaluate");
  config.evaluate = when == "none"    ? Evaluate::none
                    : when == "epoch" ? Evaluate::epoch
                                      : Evaluate::end;
  if (given.given("until")) config.until = parse_goal(given.text("until"));
  config.norm_statistics =
      given.text("bn_stats") == "local" ? NormStatistics::local : NormStatistics::averaged;
}

TrainConfig make_train_config(const Point& p, const PlaceConfig& place) {
  const Settings given(p);
  TrainConfig config;
  set_by_name(config, given);
  config.replicas = place.layout.gpus;
  set_length(config, p, given);
  set_optimizer(config, given);
  set_evaluation(config, given);
  if (given.given("augment")) config.augment = parse_augmentation(given.text("augment"));
  config.check_replicas = !lets_replicas_drift(place.backend);
  return config;
}

std::size_t cache_bytes_of_node(const InputConfig& config) {
  const auto available = available_memory();
  if (!config.cache_bytes) return available.value_or(0) / 2;
  if (available && *config.cache_bytes > *available) {
    throw usage_error(fmt::format("the caches need {}, but the node has {} free",
                                  format_bytes(static_cast<double>(*config.cache_bytes)),
                                  format_bytes(static_cast<double>(*available))),
                      "cache_mb", "lower --cache-mb; --cache-type uint8 and --cache raw need less");
  }
  return *config.cache_bytes;
}

}  // namespace

bool lets_replicas_drift(const std::string& backend) {
  return find_name("backend", split_stack(backend).between).drifts;
}

ThreadPlan assign_threads(const Point& p, const Layout& layout) {
  const auto asked = [&](std::string_view name) -> std::optional<int> {
    const auto value = p.integer(name);
    return value ? std::optional<int>(static_cast<int>(*value)) : std::nullopt;
  };
  ThreadRequest request{asked("compute_threads"), asked("input_threads"), asked("comm_threads")};
  // One thread queues what a GPU computes; the others can only prepare its batches.
  if (!layout.replicas_are_cores && !request.compute && !request.input) {
    request.compute = 1;
    request.input = std::max(0, layout.cpus_per_replica - 1 - request.comm.value_or(0));
  }
  return plan_threads(layout.cpus_per_replica, request);
}

PlaceConfig make_place_config(const Point& p) {
  const Settings given(p);
  return {given.text("backend"),       given.text("device"),
          given.text("precision"),     make_layout(p),
          given.flag("oversubscribe"), given.text("cpu_binding") != "in-order"};
}

NetworkConfig make_network_config(const Point& p) {
  const Value* twice = p.find("double_softmax");
  return {p.text("variant"),
          p.integer("context_length"),
          {.label_smoothing = p.real("label_smoothing").value_or(0),
           .double_softmax = twice && std::get<bool>(*twice)}};
}

RunConfig make_config(const Point& p) {
  const Settings given(p);
  RunConfig config;
  config.place = make_place_config(p);
  config.network = make_network_config(p);
  config.threads = assign_threads(p, config.place.layout);
  config.device = make_device_options(p);
  config.weights = given.given("weights") ? given.text("weights") : "none";
  config.input = make_input_config(p, config.threads);
  config.checkpoints = make_checkpoint_config(given);
  if (given.given("tensorboard")) {
    config.events = {given.text("tensorboard"), static_cast<int>(given.integer("histogram_freq"))};
  }
  config.train = make_train_config(p, config.place);
  return config;
}

void check_places(const InputConfig& config, const InputPlaces& places) {
  if (!places.stage.empty() && config.synthetic) {
    throw usage_error("synthetic input has no files to stage", "--stage", "leave it out");
  }
  if (!places.cache.empty() && config.cache == CacheKind::off) {
    throw usage_error("a folder for the cache is given, but the cache is off", "--cache-dir",
                      "leave one of them out");
  }
  if (!places.cache.empty() && config.synthetic) {
    throw usage_error("synthetic input has no cache", "--cache-dir", "leave it out");
  }
  if (!places.data.empty() && config.synthetic) {
    throw usage_error("the input is synthetic, so no data set is read", "--data",
                      "leave it out, or add --input data");
  }
}

InputOptions input_options(const InputConfig& config, const InputPlaces& places,
                           const Layout& layout) {
  InputOptions options{.cache = config.cache,
                       .type = config.cache_type,
                       .tasks_of_node = std::max(1, layout.ntasks / layout.nodes)};
  if (options.cache != CacheKind::off) options.cache_bytes = cache_bytes_of_node(config);
  options.cache_folder = places.cache;
  options.parallel_reads = config.parallel_reads * (layout.gpus / layout.ntasks);
  options.skip_bad = config.skip_bad_samples;
  options.reading.skip_damaged = options.skip_bad;
  options.reading.buffer_bytes = config.read_buffer_bytes;
  return options;
}

void check_samples_in_memory(const InputConfig& config, const InputPlaces& places) {
  std::string given = places.cache.empty() ? "" : "--cache-dir";
  if (!config.for_encoded_images.empty()) given = config.for_encoded_images.back();
  if (given.empty()) return;
  throw usage_error("this is for encoded images, and this data set has none", given,
                    "leave it out");
}

}  // namespace paceline
