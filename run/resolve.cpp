#include "run/resolve.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/core/backend_stack.h"
#include "engine/core/text.h"
#include "results/names.h"
#include "run/config.h"
#include "run/gpus.h"
#include "run/version.h"
#include "sweeps/inventory.h"

namespace paceline {

Workload make_workload(const std::string& name) {
  if (const auto* row = find_factory(workload_table(), name)) return row->make();
  const Name known = find_name("workload", name);
  if (name == kCommandWorkload) {
    throw usage_error("workload command is a program of your own, which only a study runs", "",
                      "write a spec (sweeps/README.md) and give it to paceline sweep");
  }
  throw usage_error(fmt::format("workload {} is not built here", name), "", known.reason);
}

namespace {

constexpr std::int64_t kDefaultEpochs = 5;

// What becomes of a run whose device or backend is not built here: it can be planned all the same.
enum class NotBuilt { refused, kept };

void check_built(const char* kind, const std::string& name) {
  const Name known = find_name(kind, name);
  if (!known.built) {
    throw usage_error(fmt::format("{} {} is not built here", kind, name), "", known.reason);
  }
}

bool is_built(std::string_view backend) {
  const auto& backends = known_names().backends;
  return std::any_of(backends.begin(), backends.end(),
                     [&](const Name& name) { return name.name == backend && name.built; });
}

std::string default_backend(std::int64_t gpus, const std::string& device) {
  if (gpus == 1) return lone_backend();
  const std::vector<std::string> wanted = find_name("device", device).backends;
  const auto found = std::find_if(wanted.begin(), wanted.end(), is_built);
  return found != wanted.end() ? *found : wanted.back();
}

void set_initial(Point& p, const Parameter& parameter) {
  if (parameter.initial.empty() || parameter.is_assumed || p.find(parameter.name)) return;
  p.set(parameter.name, parsed_value(parameter.name, parameter.initial, ""));
}

void set_initial(Point& p, std::string_view name) {
  set_initial(p, *find_parameter(name));
}

// Asking takes a millisecond, and a study may have 100,000 points.
int cores_here() {
  static const int cores = topology_of_machine().usable_cores();
  return cores;
}

void check_precision(const std::string& precision, const std::string& device_name) {
  const Name device = find_name("device", device_name);
  const std::vector<std::string>& known = device.precisions;
  if (std::find(known.begin(), known.end(), precision) != known.end()) return;
  throw usage_error(
      fmt::format("device {} computes in {}, not in {}", device.name, join(known, ", "), precision),
      "", "give --precision " + known.front() + ", or another --device");
}

// +bf16 rounds what is fp32; other gradients would pass it as they are, silently.
void check_cast(const std::string& precision, const std::string& backend) {
  const std::vector<std::string> wrappers = split_stack(backend).wrappers;
  if (precision != "fp64" || std::ranges::find(wrappers, "bf16") == wrappers.end()) return;
  throw usage_error(
      fmt::format("backend {} casts fp32 gradients, but the precision is {}", backend, precision),
      "", "leave +bf16 out, or use precision fp32");
}

void default_place(Point& p, NotBuilt not_built) {
  set_initial(p, "gpus");
  set_initial(p, "nodes");
  set_initial(p, "device");
  const std::int64_t gpus = *p.integer("gpus");
  const std::string device = *p.text("device");
  p.set_default("backend", default_backend(gpus, device));
  const std::string backend = *p.text("backend");
  if (not_built == NotBuilt::refused) {
    check_built("backend", backend);
    check_built("device", device);
  }
  p.set_default("precision", find_name("device", device).precisions.front());
  check_precision(*p.text("precision"), device);
  check_cast(*p.text("precision"), backend);
  if (!p.find("cpus_per_task") && !p.find("cpus_per_replica") &&
      !find_name("device", device).serial) {
    const std::int64_t here = gpus / *p.integer("nodes");
    p.set("cpus_per_replica",
          std::max<std::int64_t>(1, cores_here() / std::max<std::int64_t>(1, here)));
  }
  const Layout layout = make_layout(p);
  p.erase("cpus_per_replica");
  p.set("cpus_per_task", std::int64_t{layout.cpus_per_task});
}

bool has_batch_norm(const Workload& workload) {
  const std::vector<Layer>& layers = workload.network.layers();
  return std::ranges::count(layers, LayerKind::batch_norm, &Layer::kind) > 0;
}

// What a run has, of what parameters may need; encoded images are known once data are read.
struct Offered {
  bool gpu = false, batch_norm = false;

  bool has(Requirement need) const {
    switch (need) {
      case Requirement::gpu:
        return gpu;
      case Requirement::batch_norm:
        return batch_norm;
      case Requirement::own_program:
        return false;
      case Requirement::nothing:
      case Requirement::encoded_images:
        break;
    }
    return true;
  }
};

void check_needs(const Point& p, const Offered& offered, const std::string& workload) {
  for (const auto& [name, value] : p.values()) {
    const Requirement need = find_parameter(name)->need;
    if (offered.has(need)) continue;
    if (need == Requirement::own_program) {
      throw usage_error(fmt::format("{} is for workload command, not {}", name, workload), "",
                        fmt::format("leave {} out", name));
    }
    if (!offered.gpu && need != Requirement::batch_norm) {
      throw usage_error(
          fmt::format("{} is for GPUs, but the device is {}", name, *p.text("device")), "",
          fmt::format("leave {} out, or give --device cuda", name));
    }
    throw usage_error("workload " + workload + " has no batch normalisation", "",
                      "leave " + name + " out");
  }
}

// The schedule needs a metric after each epoch that only an evaluation gives.
bool watches_test_set(const Point& p) {
  const Settings given(p);
  return given.text("schedule") == "plateau" &&
         is_of_test(find_metric(given.text("plateau_metric")).value());
}

// The workload's, then what others decide, then the table's.
void set_defaults(Point& p, const Offered& offered) {
  if (!p.find("epochs") && !p.find("steps")) p.set("epochs", kDefaultEpochs);
  const bool by_epoch = p.find("until") || p.find("evaluate_every") || watches_test_set(p);
  p.set_default("evaluate", std::string(by_epoch ? "epoch" : "end"));
  for (const Parameter& parameter : parameters()) {
    if (offered.has(parameter.need) && is_with(p, parameter)) set_initial(p, parameter);
  }
  if (!offered.gpu) return;
  // NVIDIA advises against sums in the graphs of several GPUs of a process: a launch may block.
  const Layout layout = make_layout(p);
  p.set_default("step_graph", Settings(p).flag("graph") && layout.gpus == layout.ntasks);
}

// Values that are good by themselves, and not together. Names in braces are replaced by the values.
struct Conflict {
  bool (*applies)(const Point& p, const Settings& given);
  const char *what, *where, *cure;
};

constexpr std::int64_t kMostParts = 512;  // whose markers a stream of a GPU remembers

const Conflict kConflicts[] = {
    {[](const Point&, const Settings& given) {
       return given.text("schedule") == "step" && !given.given("decay_epochs");
     },
     "schedule step needs the epochs at which the rate drops", "",
     "give --decay-epochs, such as 30,60,80"},
    {[](const Point& p, const Settings& given) {
       return watches_test_set(p) && given.text("evaluate") != "epoch";
     },
     "schedule plateau watches {plateau_metric}, but evaluate is {evaluate}", "",
     "give --evaluate epoch, or --plateau-metric train_loss"},
    {[](const Point&, const Settings& given) {
       return given.given("epochs") &&
              given.real("warmup_epochs") > static_cast<double>(given.integer("epochs"));
     },
     "a warm-up of {warmup_epochs} epochs is longer than the training of {epochs}", "",
     "warm up for fewer epochs, or train longer"},
    {[](const Point&, const Settings& given) {
       return given.flag("double_softmax") && given.real("label_smoothing") > 0;
     },
     "label_smoothing cannot be combined with double_softmax", "", "leave one of them out"},
    {[](const Point&, const Settings& given) {
       return given.integer("check_every") > 0 && lets_replicas_drift(given.text("backend"));
     },
     "check_every compares replicas, and backend {backend} lets them drift apart", "",
     "leave check_every out, or choose another backend"},
    {[](const Point&, const Settings& given) {
       return given.text("cache") == "off" && given.given("cache_mb");
     },
     "cache_mb is given, but cache is off", "", "leave one of them out"},
    {[](const Point&, const Settings& given) {
       return is_gpu_device(given.text("device")) &&
              given.integer("gradient_accumulation_steps") > kMostParts;
     },
     "{gradient_accumulation_steps} batches per step are too many on a GPU",
     "gradient_accumulation_steps", "use at most 512"},
    {[](const Point&, const Settings& given) {
       return is_gpu_device(given.text("device")) && given.flag("step_graph") &&
              !given.flag("graph");
     },
     "step_graph needs graph", "step_graph, graph",
     "leave one of --step-graph and --no-graph out"}};

void check_conflicts(const Point& p) {
  const Settings given(p);
  for (const Conflict& conflict : kConflicts) {
    if (!conflict.applies(p, given)) continue;
    std::string what = conflict.what;
    for (auto begin = what.find('{'); begin != std::string::npos; begin = what.find('{')) {
      const auto end = what.find('}', begin);
      what.replace(begin, end - begin + 1, given.text(what.substr(begin + 1, end - begin - 1)));
    }
    throw usage_error(what, conflict.where, conflict.cure);
  }
}

void check_batch(const Point& p) {
  constexpr std::int64_t kMost = 1 << 20, kMostOfAll = 1 << 30;
  const Settings given(p);
  const std::int64_t gpus = given.integer("gpus"), batch = given.integer("batch_per_replica"),
                     parts = given.integer("gradient_accumulation_steps");
  if (batch > kMost) {
    throw usage_error(fmt::format("a batch of {} samples per replica is too large", batch), "",
                      "use at most 1048576");
  }
  if (parts > kMost || batch * parts > kMostOfAll / gpus) {
    throw usage_error(
        fmt::format("a step of {} replicas times {} batches of {} samples", gpus, parts, batch), "",
        "use at most 2^30 samples in a step");
  }
}

// global_batch = gpus x batch_per_replica x accumulate: given it, the one that is missing follows.
void default_batch(Point& p, const Workload& workload) {
  const auto global = p.integer("global_batch"), each = p.integer("batch_per_replica"),
             parts = p.integer("gradient_accumulation_steps");
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
    throw usage_error(
        fmt::format("global batch {} cannot be divided evenly among {} replicas", *global, gpus),
        "", "make it a multiple");
  }
  if (rest == 0 || (each && parts && rest != 1)) {
    throw usage_error(
        fmt::format("global_batch {} is not gpus {}{}{}{}", *global, gpus,
                    each ? fmt::format(" x batch_per_replica {}", *each) : "",
                    parts ? fmt::format(" x gradient_accumulation_steps {}", *parts) : "",
                    each && parts ? "" : " x a whole number"),
        "", "leave one of them out, or make it a multiple");
  }
  if (!each) p.set("batch_per_replica", rest);
  if (each && !parts && rest > 1) p.set("gradient_accumulation_steps", rest);
  check_batch(p);
}

// Pretrained weights say nothing about random images, so there they are left out unless asked for.
void default_workload(Point& p, const Workload& workload) {
  if (p.text("input") == "synthetic") p.set_default("weights", std::string("none"));
  for (const bool depends : {false, true}) {  // what others depend on comes first
    for (const auto& [name, value] : workload.defaults.values()) {
      const Parameter& parameter = *find_parameter(name);
      if (name == "batch_per_replica" || depends == parameter.with.parameter.empty()) continue;
      if (is_with(p, parameter)) p.set_default(name, value);
    }
  }
  if (p.text("weights") == "imagenet" && !workload.defaults.find("weights")) {
    throw usage_error("there are no ImageNet weights for workload " + workload.name, "",
                      "leave --weights out, or give a file of its own");
  }
  if (!workload.load && !workload.network.reads_tokens() && p.text("input") != "synthetic") {
    throw usage_error("workload " + workload.name + " has no data set", "",
                      "give --input synthetic or leave it out");
  }
}

// One spelling, as it is part of a point's identity.
void default_augmentation(Point& p, const Shape& sample) {
  const std::string text = Settings(p).text("augment");
  if (text == "none") return p.erase("augment");
  const Augmentation augmentation = parse_augmentation(text);
  check_augmentation(augmentation, sample.height, sample.width);
  p.set("augment", to_text(augmentation));
}

void check_input(const InputConfig& input, const ThreadPlan& threads) {
  const int most = std::max(1, threads.input);
  if (input.parallel_reads > most) {
    throw usage_error(fmt::format("{} parallel reads with {}", input.parallel_reads,
                                  counted(threads.input, "input thread")),
                      "", fmt::format("read {} at once, or give more --input-threads", most));
  }
}

void set_threads(Point& p) {
  const ThreadPlan threads = assign_threads(p, make_layout(p));
  p.set("compute_threads", std::int64_t{threads.compute});
  p.set("input_threads", std::int64_t{threads.input});
  p.set("comm_threads", std::int64_t{threads.comm});
}

Point with_defaults(const Workload& workload, const Point& given, NotBuilt not_built) {
  Point p = given;
  default_workload(p, workload);
  make_network(workload, make_network_config(p));  // refuses a variant that there is not
  default_place(p, not_built);
  const Offered offered{is_gpu_device(*p.text("device")), has_batch_norm(workload)};
  check_needs(p, offered, workload.name);
  default_batch(p, workload);
  default_augmentation(p, workload.network.sample());
  set_defaults(p, offered);
  check_with(p);
  check_conflicts(p);
  set_threads(p);
  const RunConfig config = make_config(p);  // refuses texts that it cannot read
  check_input(config.input, config.threads);
  return p;
}

}  // namespace

Point resolve_parameters(const Workload& workload, const Point& given) {
  return with_defaults(workload, given, NotBuilt::refused);
}

Point resolve_place(const Point& given) {
  Point p = given;
  default_place(p, NotBuilt::refused);
  set_initial(p, "oversubscribe");
  return p;
}

Point resolve_program(const Point& given) {
  Point p = given;
  set_initial(p, "gpus");
  set_initial(p, "nodes");
  set_initial(p, "device");
  const Layout layout = make_layout(p);
  p.erase("cpus_per_replica");
  p.set("cpus_per_task", std::int64_t{layout.cpus_per_task});
  return p;
}

const std::string& RunResolver::hash_of_data(const Workload& workload) {
  if (!data_hash_.empty()) return data_hash_;
  try {
    data_hash_ = workload.hash(workload.data_set.empty()
                                   ? std::filesystem::path()
                                   : find_data_folder(workload.data_set, {}, data_fix_));
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::input || !data_is_absent_) throw;
    data_is_absent_(error);
    data_hash_ = "absent";
  }
  return data_hash_;
}

Resolved RunResolver::resolve(const Point& given) {
  if (workload_ == kCommandWorkload) {  // its data are its own
    const Point parameters = resolve_program(given);
    if (!data_is_absent_) check_built("device", *parameters.text("device"));
    return {parameters, identity_hash(workload_, parameters), "", build_id()};
  }
  if (!made_) made_ = std::make_shared<const Workload>(make_workload(workload_));
  const Workload& workload = *made_;
  Resolved run;
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
