#include "cli/resolve.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/gpus.h"
#include "cli/input_setup.h"
#include "cli/recipe.h"
#include "cli/run.h"
#include "cli/run_events.h"
#include "cli/run_state.h"
#include "cli/version.h"
#include "engine/core/backend_stack.h"
#include "engine/core/error.h"
#include "engine/core/text.h"
#include "results/names.h"
#include "workloads/table.h"

namespace paceline {

Workload make_workload(const std::string& name) {
  for (const auto& row : workload_table()) {
    if (name == row.name) return row.make();
  }
  const Name known = find_name("workload", name);
  throw Error(ErrorKind::usage, fmt::format("workload {} is not built here", name), "",
              known.reason);
}

namespace {

constexpr std::int64_t kDefaultEpochs = 5;
constexpr std::int64_t kDefaultKeep = 5;

std::string default_backend(std::int64_t gpus, const std::string& device) {
  if (gpus == 1) return "self";
  const auto& backends = known_names().backends;
  const auto built = [&](std::string_view name) {
    return std::any_of(backends.begin(), backends.end(),
                       [&](const Name& n) { return n.name == name && n.built; });
  };
  if (is_gpu_device(device) && built("nccl")) return "nccl";
  return built("mpi") ? "mpi" : "mirrored";
}

// What becomes of a run whose device or backend is not built here: it can be planned all the same.
enum class NotBuilt { refused, kept };

void check_built(const char* kind, const std::string& name) {
  const Name known = find_name(kind, name);
  if (!known.built) {
    throw Error(ErrorKind::usage, fmt::format("{} {} is not built here", kind, name), "",
                known.reason);
  }
}

void check_precision(const Point& p) {
  const Name device = find_name("device", *p.text("device"));
  const std::string precision = *p.text("precision");
  const std::vector<std::string>& known = device.precisions;
  if (std::find(known.begin(), known.end(), precision) != known.end()) return;
  throw Error(
      ErrorKind::usage,
      fmt::format("device {} computes in {}, not in {}", device.name, join(known, ", "), precision),
      "", "give --precision " + known.front() + ", or another --device");
}

// 16-bit wrappers round what is fp32; other gradients would pass them as they are, silently.
void check_cast(const Point& p) {
  if (*p.text("precision") != "fp64") return;
  const std::string backend = *p.text("backend");
  for (const std::string& wrapper : split_stack(backend).wrappers) {
    if (wrapper != "bf16" && wrapper != "fp16") continue;
    throw Error(ErrorKind::usage,
                fmt::format("backend {} casts fp32 gradients, and precision is {}", backend,
                            *p.text("precision")),
                "", "leave +" + wrapper + " out, or use precision fp32");
  }
}

bool lets_replicas_drift(const Point& p) {
  return split_stack(*p.text("backend")).between == "null";
}

void check_consistency_check(const Point& p) {
  if (p.integer("check_every").value_or(0) == 0 || !lets_replicas_drift(p)) return;
  throw Error(ErrorKind::usage,
              fmt::format("check_every compares replicas, and backend {} lets them drift apart",
                          *p.text("backend")),
              "", "leave check_every out, or choose another backend");
}

// Asking takes a millisecond, and a study may have 100,000 points.
int cores_here() {
  static const int cores = topology_of_machine().usable_cores();
  return cores;
}

void default_place(Point& p, NotBuilt not_built) {
  p.set_default("gpus", std::int64_t{1});
  p.set_default("nodes", std::int64_t{1});
  const std::int64_t gpus = *p.integer("gpus");
  p.set_default("device", std::string("cpu"));
  p.set_default("backend", default_backend(gpus, *p.text("device")));
  if (not_built == NotBuilt::refused) {
    check_built("backend", *p.text("backend"));
    check_built("device", *p.text("device"));
  }
  const std::string device = *p.text("device");
  p.set_default("precision", std::string(device == "reference" ? "fp64" : "fp32"));
  check_precision(p);
  check_cast(p);
  check_consistency_check(p);
  if (!p.find("cpus_per_task") && !p.find("cpus_per_replica") && device != "reference") {
    const std::int64_t cores = cores_here();
    const std::int64_t here = gpus / *p.integer("nodes");
    p.set("cpus_per_replica", std::max<std::int64_t>(1, cores / std::max<std::int64_t>(1, here)));
  }
  const Layout layout = layout_of(p);
  p.erase("cpus_per_replica");
  p.set("cpus_per_task", std::int64_t{layout.cpus_per_task});
}

void check_fused_sums(const Point& p) {
  if (p.find("fused_sums") == nullptr || !std::get<bool>(*p.find("fused_sums"))) return;
  const std::string precision = *p.text("precision");
  if (precision != "bf16" && precision != "fp16") {
    throw Error(ErrorKind::usage, fmt::format("fused_sums is for 16 bits, not {}", precision), "",
                "leave it out, or give --precision bf16 or fp16");
  }
  if (std::get<bool>(*p.find("deterministic"))) {
    throw Error(ErrorKind::usage, "fused sums may differ from run to run",
                "fused_sums, deterministic", "leave one of them out");
  }
}

// What only devices of GPUs know.
void default_gpu(Point& p) {
  if (is_gpu_device(*p.text("device"))) {
    p.set_default("graph", true);
    const bool graph = std::get<bool>(*p.find("graph"));
    const Layout layout = layout_of(p);
    // NVIDIA advises against sums in the graphs of several GPUs of a process: a launch may block.
    p.set_default("step_graph", graph && layout.gpus == layout.ntasks);
    p.set_default("deterministic", false);
    if (p.find("bn_stats")) p.set_default("fused_sums", false);
    check_fused_sums(p);
    constexpr std::int64_t kMostParts = 512;  // whose markers a stream remembers
    if (const auto parts = p.integer("accumulate"); parts > kMostParts) {
      throw Error(ErrorKind::usage, fmt::format("a step of {} batches on a GPU", *parts),
                  "accumulate", fmt::format("use at most {}", kMostParts));
    }
    if (graph || !std::get<bool>(*p.find("step_graph"))) return;
    throw Error(ErrorKind::usage, "a step cannot be a graph without graphs", "step_graph, graph",
                "leave one of --step-graph and --no-graph out");
  }
  for (const char* name : {"graph", "step_graph", "fused_sums", "deterministic"}) {
    if (!p.find(name)) continue;
    throw Error(ErrorKind::usage,
                fmt::format("{} is for GPUs, and the device is {}", name, *p.text("device")), "",
                fmt::format("leave {} out, or give --device cuda", name));
  }
}

void check_batch(const Point& p) {
  constexpr std::int64_t kMost = 1 << 20, kMostOfAll = 1 << 30;
  const std::int64_t batch = *p.integer("batch_per_replica");
  const std::int64_t parts = p.integer("accumulate").value_or(1);
  if (batch > kMost) {
    throw Error(ErrorKind::usage, fmt::format("a batch of {} samples a replica", batch), "",
                "use at most 1048576");
  }
  if (parts > kMost || batch * parts > kMostOfAll / *p.integer("gpus")) {
    throw Error(ErrorKind::usage,
                fmt::format("a step of {} replicas times {} batches of {} samples",
                            *p.integer("gpus"), parts, batch),
                "", "use at most 2^30 samples in a step");
  }
}

// global_batch = gpus x batch_per_replica x accumulate: given it, the one that is missing follows.
void default_batch(Point& p, const Workload& workload) {
  const auto global = p.integer("global_batch"), each = p.integer("batch_per_replica"),
             parts = p.integer("accumulate");
  if (!global) {
    p.set_default("batch_per_replica", *workload.defaults.find("batch_per_replica"));
    return check_batch(p);
  }
  const std::int64_t gpus = *p.integer("gpus");
  std::int64_t rest = *global;
  for (const std::int64_t factor : {gpus, each.value_or(1), parts.value_or(1)}) {
    if (rest % factor != 0) rest = 0;
    rest /= factor;
  }
  if (!each && !parts && rest == 0) {
    throw Error(
        ErrorKind::usage,
        fmt::format("global batch {} cannot be shared evenly by {} replicas", *global, gpus), "",
        "make it a multiple");
  }
  if (rest == 0 || (each && parts && rest != 1)) {
    throw Error(ErrorKind::usage,
                fmt::format("global_batch {} is not gpus {}{}{}{}", *global, gpus,
                            each ? fmt::format(" x batch_per_replica {}", *each) : "",
                            parts ? fmt::format(" x accumulate {}", *parts) : "",
                            each && parts ? "" : " x a whole number"),
                "", "leave one of them out, or make it a multiple");
  }
  if (!each) p.set("batch_per_replica", rest);
  if (each && !parts && rest > 1) p.set("accumulate", rest);
  check_batch(p);
}

void default_training(Point& p) {
  if (!p.find("epochs") && !p.find("steps")) p.set("epochs", kDefaultEpochs);
  p.set_default("optimizer", std::string("adam"));
  p.set_default("learning_rate", 0.001);
  p.set_default("learning_rate_rule", std::string("none"));
  if (p.text("optimizer") == "momentum") {
    p.set_default("momentum", 0.9);
  } else if (p.find("momentum")) {
    throw Error(ErrorKind::usage, "momentum is of optimizer momentum", "",
                "leave it out, or give --optimizer momentum");
  }
  p.set_default("seed", std::int64_t{1});
  p.set_default("last_batch", std::string("keep"));
  p.set_default("shuffle_buffer", std::int64_t{0});
  const bool by_epoch = p.find("until") || p.find("evaluate_every");
  p.set_default("evaluate", std::string(by_epoch ? "epoch" : "end"));
  p.set_default("input", std::string("data"));
  p.set_default("bucket_mb", 8.0);
  p.set_default("last_bucket_mb", 1.0);
  p.set_default("overlap", true);
  p.set_default("update", true);
  p.set_default("oversubscribe", false);
  if (keeps_checkpoints(p)) p.set_default("keep", kDefaultKeep);
}

// Pretrained weights say nothing about random images, so there they are left out unless asked for.
void default_workload(Point& p, const Workload& workload) {
  if (p.text("input") == "synthetic") p.set_default("weights", std::string("none"));
  for (const auto& [name, value] : workload.defaults.values()) {
    if (name != "batch_per_replica") p.set_default(name, value);
  }
  if (p.text("weights") == "imagenet" && !workload.defaults.find("weights")) {
    throw Error(ErrorKind::usage, "there are no ImageNet weights for workload " + workload.name, "",
                "leave --weights out, or give a file of its own");
  }
  if (!workload.load && p.text("input") != "synthetic") {
    throw Error(ErrorKind::usage, "workload " + workload.name + " has no data set", "",
                "give --input synthetic or leave it out");
  }
}

void default_statistics(Point& p, const Workload& workload) {
  const std::vector<Layer>& layers = workload.network.layers();
  const bool norm = std::any_of(layers.begin(), layers.end(), [](const Layer& layer) {
    return layer.kind == LayerKind::batch_norm;
  });
  if (norm) {
    p.set_default("bn_stats", std::string("averaged"));
    return;
  }
  for (const std::string name : {"bn_stats", "fused_sums"}) {
    if (!p.find(name)) continue;
    throw Error(ErrorKind::usage, "workload " + workload.name + " has no batch normalisation", "",
                "leave " + name + " out");
  }
}

// "K" or "K/replicas".
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
  const auto replicas = static_cast<std::size_t>(shared ? *p.integer("gpus") : 1);
  return std::max<std::size_t>(1, static_cast<std::size_t>(*steps) / replicas);
}

Point with_defaults(const Workload& workload, const Point& given, NotBuilt not_built) {
  Point p = given;
  default_workload(p, workload);
  network_of(workload, p);  // refuses a variant that there is not
  default_statistics(p, workload);
  default_place(p, not_built);
  default_gpu(p);
  default_batch(p, workload);
  default_training(p);
  default_recipe(p, workload.network.sample());
  const ThreadPlan threads = threads_of(p, layout_of(p));
  p.set("compute_threads", std::int64_t{threads.compute});
  p.set("input_threads", std::int64_t{threads.input});
  p.set("comm_threads", std::int64_t{threads.comm});
  steps_per_epoch_of(p);
  check_input(p, threads);
  check_checkpoints(p);
  check_events(p);
  return p;
}

}  // namespace

Point resolve_parameters(const Workload& workload, const Point& given) {
  return with_defaults(workload, given, NotBuilt::refused);
}

ThreadPlan threads_of(const Point& p, const Layout& layout) {
  const auto asked = [&](std::string_view name) -> std::optional<int> {
    const auto value = p.integer(name);
    return value ? std::optional<int>(static_cast<int>(*value)) : std::nullopt;
  };
  ThreadRequest request{asked("compute_threads"), asked("input_threads"), asked("comm_threads")};
  // One thread queues what a GPU computes; the others can only prepare its batches.
  if (is_gpu_device(p.text("device").value_or("cpu")) && !request.compute && !request.input) {
    request.compute = 1;
    request.input = std::max(0, layout.cpus_per_replica - 1 - request.comm.value_or(0));
  }
  return plan_threads(layout.cpus_per_replica, request);
}

Point resolve_place(const Point& given) {
  Point p = given;
  default_place(p, NotBuilt::refused);
  p.set_default("oversubscribe", false);
  return p;
}

Gathering gathering_of(const Point& parameters) {
  return {*parameters.text("backend"), *parameters.text("device"), layout_of(parameters),
          std::get<bool>(*parameters.find("oversubscribe")), keeps_checkpoints(parameters)};
}

TrainConfig config_of(const Point& p, const Layout& layout) {
  TrainConfig config;
  config.replicas = layout.gpus;
  config.batch_per_replica = static_cast<int>(*p.integer("batch_per_replica"));
  config.epochs = static_cast<int>(
      std::min<std::int64_t>(p.integer("epochs").value_or(kManyEpochs), kManyEpochs));
  config.step_limit = static_cast<std::size_t>(p.integer("steps").value_or(0));
  config.steps_per_epoch = steps_per_epoch_of(p);
  config.optimizer = optimizer_of(*p.text("optimizer"));
  config.learning_rate = *p.real("learning_rate");
  config.rate_rule = rate_rule_of(*p.text("learning_rate_rule"));
  config.momentum = p.real("momentum").value_or(0.9);
  config.seed = static_cast<std::uint64_t>(*p.integer("seed"));
  config.drop_last = p.text("last_batch") == "drop";
  config.shuffle_buffer = static_cast<std::size_t>(*p.integer("shuffle_buffer"));
  const std::string evaluate = *p.text("evaluate");
  config.evaluate = evaluate == "none"    ? Evaluate::none
                    : evaluate == "epoch" ? Evaluate::epoch
                                          : Evaluate::end;
  config.norm_statistics =
      p.text("bn_stats") == "local" ? NormStatistics::local : NormStatistics::averaged;
  config.bucket_mb = *p.real("bucket_mb");
  config.last_bucket_mb = *p.real("last_bucket_mb");
  config.overlap = std::get<bool>(*p.find("overlap"));
  config.update = std::get<bool>(*p.find("update"));
  config.log_every = static_cast<std::size_t>(p.integer("log_every").value_or(0));
  config.check_replicas = !lets_replicas_drift(p);
  config.check_every = static_cast<std::size_t>(p.integer("check_every").value_or(0));
  set_recipe(config, p);
  return config;
}

RunResolver::RunResolver(std::string workload, std::function<void(const Error&)> data_is_absent)
    : workload_(std::move(workload)), data_is_absent_(std::move(data_is_absent)) {}

const std::string& RunResolver::hash_of_data(const Workload& workload) {
  if (!data_hash_.empty()) return data_hash_;
  try {
    data_hash_ = workload.hash(workload.data_set.empty() ? std::filesystem::path()
                                                         : find_data_folder(workload.data_set, {}));
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::input || !data_is_absent_) throw;
    data_is_absent_(error);
    data_hash_ = "absent";
  }
  return data_hash_;
}

ResolvedRun RunResolver::resolve(const Point& given) {
  if (!made_) made_ = std::make_shared<const Workload>(make_workload(workload_));
  const Workload& workload = *made_;
  ResolvedRun run;
  run.parameters =
      with_defaults(workload, given, data_is_absent_ ? NotBuilt::kept : NotBuilt::refused);
  run.identity = identity_hash(workload_, run.parameters);
  run.build = build_id();
  if (run.parameters.text("input") == "synthetic") {
    run.data_hash = "synthetic";
    return run;
  }
  run.data_hash = hash_of_data(workload);
  return run;
}

}  // namespace paceline
