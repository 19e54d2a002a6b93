#include "run/config.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/core/backend_stack.h"
#include "engine/core/error.h"
#include "engine/core/text.h"
#include "results/names.h"
#include "run/gpus.h"

namespace paceline {

namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20, kKiB = 1 << 10;

std::size_t count_of(const Settings& given, std::string_view name) {
  return given.given(name) ? static_cast<std::size_t>(given.integer(name)) : 0;
}

CacheKind cache_kind_of(const std::string& name) {
  return name == "off" ? CacheKind::off : name == "raw" ? CacheKind::raw : CacheKind::decoded;
}

std::vector<std::string> given_for_encoded_images(const Point& p) {
  std::vector<std::string> names;
  for (const auto& [name, value] : p.values()) {
    if (find_parameter(name)->need == Requirement::encoded_images) names.push_back(name);
  }
  return names;
}

InputConfig input_config_of(const Point& p, const ThreadPlan& threads) {
  const Settings given(p);
  InputConfig input;
  input.synthetic = given.text("input") == "synthetic";
  input.cache = cache_kind_of(given.text("cache"));
  input.cache_type = given.text("cache_type") == "fp32" ? DType::f32 : DType::u8;
  if (given.given("cache_mb")) input.cache_bytes = count_of(given, "cache_mb") * kMiB;
  input.parallel_reads = given.given("parallel_reads")
                             ? static_cast<int>(given.integer("parallel_reads"))
                             : std::max(1, threads.input);
  input.read_buffer_bytes = count_of(given, "read_buffer_kb") * kKiB;
  input.skip_bad_samples = given.text("on_bad_sample") == "skip";
  input.train_limit = count_of(given, "train_limit");
  input.test_limit = count_of(given, "test_limit");
  input.for_encoded_images = given_for_encoded_images(p);
  return input;
}

CheckpointConfig checkpoint_config_of(const Settings& given) {
  CheckpointConfig checkpoints;
  if (!given.given("checkpoint_every")) return checkpoints;
  checkpoints.schedule = checkpoint_schedule_of(given.text("checkpoint_every"), "");
  checkpoints.keep = static_cast<int>(given.integer("keep_checkpoints"));
  checkpoints.weights_only = given.flag("save_weights_only");
  return checkpoints;
}

EventConfig event_config_of(const Settings& given) {
  if (!given.given("tensorboard")) return {};
  return {given.text("tensorboard"), static_cast<int>(given.integer("histogram_freq"))};
}

DeviceOptions device_options_of(const Point& p) {
  const auto flag = [&](std::string_view name, bool otherwise) {
    const Value* value = p.find(name);
    return value != nullptr ? std::get<bool>(*value) : otherwise;
  };
  DeviceOptions options;
  options.precision = Settings(p).text("precision");
  options.graphs = flag("graph", true);
  options.step_graphs = flag("step_graph", true);
  options.fused_sums = flag("fused_sums", false);
  options.compiled_convolutions = flag("compiled_convolutions", false);
  options.deterministic = flag("deterministic", false);
  return options;
}

ScheduleSpec schedule_spec_of(const Settings& given) {
  ScheduleSpec spec;
  spec.decay = decay_of(given.text("schedule"));
  spec.warmup_epochs = given.real("warmup_epochs");
  if (given.given("decay_epochs")) spec.decay_epochs = decay_epochs_of(given.text("decay_epochs"));
  spec.decay_factor = given.real("decay_factor");
  spec.end_rate = given.real("end_rate");
  spec.power = given.real("power");
  spec.metric = find_metric(given.text("plateau_metric")).value();
  spec.patience = static_cast<int>(std::min<std::int64_t>(given.integer("patience"), kManyEpochs));
  spec.min_delta = given.real("min_delta");
  spec.cooldown = static_cast<int>(std::min<std::int64_t>(given.integer("cooldown"), kManyEpochs));
  return spec;
}

Evaluate evaluate_of(const std::string& name) {
  return name == "none" ? Evaluate::none : name == "epoch" ? Evaluate::epoch : Evaluate::end;
}

void set_length(TrainConfig& config, const Point& p, const Settings& given) {
  config.epochs =
      given.given("epochs")
          ? static_cast<int>(std::min<std::int64_t>(given.integer("epochs"), kManyEpochs))
          : kManyEpochs;
  config.step_limit = count_of(given, "steps");
  config.steps_per_epoch = steps_per_epoch_of(p);
  config.batch_per_replica = static_cast<int>(given.integer("batch_per_replica"));
  config.accumulate = static_cast<int>(given.integer("gradient_accumulation_steps"));
  config.seed = static_cast<std::uint64_t>(given.integer("seed"));
  config.drop_last = given.text("last_batch") == "drop";
  config.shuffle_buffer = count_of(given, "shuffle_buffer");
}

void set_optimizer(TrainConfig& config, const Settings& given) {
  config.optimizer = optimizer_of(given.text("optimizer"));
  config.learning_rate = given.real("learning_rate");
  config.rate_rule = rate_rule_of(given.text("learning_rate_rule"));
  config.momentum = given.real("momentum");
  config.schedule = schedule_spec_of(given);
  config.weight_decay = given.real("weight_decay");
  config.decoupled_decay = given.text("weight_decay_form") != "l2";
  config.clip_norm = given.real("clip_norm");
  config.clip_value = given.real("clip_value");
  config.update = given.flag("update");
}

void set_evaluation(TrainConfig& config, const Settings& given) {
  config.evaluate = evaluate_of(given.text("evaluate"));
  config.evaluate_every = static_cast<int>(given.integer("evaluate_every"));
  if (given.given("until")) config.until = goal_of(given.text("until"));
  config.norm_statistics =
      given.text("bn_stats") == "local" ? NormStatistics::local : NormStatistics::averaged;
}

TrainConfig train_config_of(const Point& p, const PlaceConfig& place) {
  const Settings given(p);
  TrainConfig config;
  config.replicas = place.layout.gpus;
  set_length(config, p, given);
  set_optimizer(config, given);
  set_evaluation(config, given);
  if (given.given("augment")) config.augment = augmentation_of(given.text("augment"));
  config.bucket_mb = given.real("bucket_mb");
  config.last_bucket_mb = given.real("last_bucket_mb");
  config.overlap = given.flag("overlap");
  config.log_every = count_of(given, "log_every");
  config.check_replicas = !lets_replicas_drift(place.backend);
  config.check_every = count_of(given, "check_every");
  return config;
}

}  // namespace

bool lets_replicas_drift(const std::string& backend) {
  return find_name("backend", split_stack(backend).between).drifts;
}

std::size_t steps_per_epoch_of(const Point& p) {
  const auto text = p.text("steps_per_epoch");
  if (!text) return 0;
  const auto parts = split(*text, '/');
  const auto steps = to_integer(parts[0]);
  const bool shared = parts.size() == 2 && parts[1] == "replicas";
  if (!steps || *steps < 1 || *steps > (1 << 30) || (parts.size() > 1 && !shared)) {
    throw Error(ErrorKind::usage, fmt::format("steps_per_epoch cannot be \"{}\"", *text), "",
                "give a number K, or K/replicas");
  }
  const auto replicas = static_cast<std::size_t>(shared ? Settings(p).integer("gpus") : 1);
  return std::max<std::size_t>(1, static_cast<std::size_t>(*steps) / replicas);
}

ThreadPlan threads_of(const Point& p, const Layout& layout) {
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

PlaceConfig place_config_of(const Point& p) {
  const Settings given(p);
  return {given.text("backend"), given.text("device"), given.text("precision"), layout_of(p),
          given.flag("oversubscribe")};
}

RunConfig config_of(const Point& p) {
  const Settings given(p);
  RunConfig config;
  config.place = place_config_of(p);
  config.threads = threads_of(p, config.place.layout);
  config.device = device_options_of(p);
  config.weights = given.given("weights") ? given.text("weights") : "none";
  config.input = input_config_of(p, config.threads);
  config.checkpoints = checkpoint_config_of(given);
  config.events = event_config_of(given);
  config.train = train_config_of(p, config.place);
  return config;
}

}  // namespace paceline
