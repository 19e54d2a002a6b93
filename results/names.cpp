#include "results/names.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "engine/core/backend_stack.h"
#include "engine/core/error.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

constexpr char kNames[] =
#include "names.inc"
    ;

std::vector<std::string> read_list(const nlohmann::json& row, const char* key) {
  const std::string text = row.value(key, "");
  return text.empty() ? std::vector<std::string>{} : split(text, '|');
}

std::vector<Name> read_names(const nlohmann::json& rows) {
  std::vector<Name> names;
  for (const auto& row : rows) {
    Name& name = names.emplace_back();
    name.name = row.at("name");
    name.built = row.at("built");
    name.reason = row.at("reason");
    name.about = row.value("about", "");
    name.tasks = row.value("tasks", "");
    name.mpirun = row.value("mpirun", false);
    name.inside = row.value("inside", false);
    name.bare = row.value("bare", false);
    name.needs_store = !name.mpirun;
    name.sums_node = row.value("sums_node", false);
    name.alone = row.value("alone", false);
    name.drifts = row.value("drifts", false);
    name.gpu_each = row.value("gpu_each", false);
    name.stand_in = row.value("stand_in", "");
    name.gpus = row.value("gpus", false);
    name.serial = row.value("serial", false);
    name.precisions = read_list(row, "precisions");
    name.backends = read_list(row, "backends");
  }
  return names;
}

const Name* find_in(const std::vector<Name>& list, std::string_view kind, std::string_view name,
                    const std::string& where) {
  const std::string ours = our_name(kind, name);
  for (const Name& candidate : list) {
    if (candidate.name == ours) return &candidate;
  }
  std::vector<std::string> known = mapped(list, &Name::name);
  const auto instead = find_replacement(kind, name);
  throw usage_error(fmt::format("unknown {} \"{}\"", kind, name), where,
                    instead ? *instead : suggestion(name, known));
}

// A stack is built where all of its parts are.
void add_part(Name& whole, const Name& part) {
  if (!whole.built || part.built) return;
  whole.built = false;
  whole.reason = part.reason;
}

// Threads of a task stand inside any backend of one task a replica. Ranks of a node stand inside
// one that does not sum the node by itself, and that sums in the same memory.
void check_inside(const Name& inside, const Name& between, const std::string& where) {
  const bool threads = inside.tasks == "node";
  const bool fits = threads || (!between.sums_node && !between.gpu_each);
  if (inside.inside && between.tasks == "replica" && !between.bare && fits) return;
  throw usage_error(
      fmt::format("{}/{} cannot be stacked", inside.name, between.name), where,
      "put mirrored inside tasks, or ring inside nodes, and a backend with one task per "
      "replica between them, such as mirrored/ring or ring/mpi");
}

enum class Parts { known, recorded };  // recorded: some may be gone

Name find_stack(std::string_view text, const std::string& where, Parts parts) {
  const BackendStack stack = split_stack(text, where);
  const Names& names = known_names();
  const auto find = [&](const std::vector<Name>& list, const char* kind, const std::string& name) {
    const bool is_known = std::ranges::find(list, name, &Name::name) != list.end();
    if (parts == Parts::known || is_known) return *find_in(list, kind, name, where);
    Name gone;
    gone.name = name;
    gone.tasks = "replica";
    return gone;
  };
  Name whole = find(names.backends, "backend", stack.between);
  if (!stack.inside.empty()) {
    const Name inside = find(names.backends, "backend", stack.inside);
    if (parts == Parts::known) check_inside(inside, whole, where);
    add_part(whole, inside);
    whole.tasks = inside.tasks;
    whole.needs_store = whole.needs_store || inside.tasks == "replica";
    whole.inside = false;
  }
  whole.one_task = stack.inside.empty() && whole.tasks == "node";
  for (const std::string& wrapper : stack.wrappers) {
    add_part(whole, find(names.wrappers, "wrapper", wrapper));
  }
  whole.name = text;
  return whole;
}

struct Synonym {
  std::string_view kind, theirs, ours;
};

// Taken as ours without a word.
constexpr std::array kSame = {
    Synonym{"device", "gpu", "cuda"},
};

// Named in the error, behind "use". [Brackets] hold an axis, which on the command line is an
// option.
constexpr std::array kSimilar = {
    Synonym{"device", "nvidia", "cuda"},
    Synonym{"device", "host", "cpu"},
    Synonym{"backend", "horovod", "mpi between CPUs or nccl between GPUs, as Horovod does"},
    Synonym{"backend", "ddp",
            "nccl between GPUs or gloo between CPUs, as DistributedDataParallel does"},
    Synonym{"backend", "multiworkermirroredstrategy", "gloo for its RING, nccl for its NCCL"},
    Synonym{"backend", "multiworkermirrored", "gloo for its RING, nccl for its NCCL"},
    Synonym{"backend", "mirroredstrategy", "mirrored"},
    Synonym{"backend", "openmpi", "mpi"},
    Synonym{"backend", "mpich", "mpi"},
    Synonym{"backend", "tcp", "gloo, or ring for our own sums"},
    Synonym{"backend", "none", "self for one replica, null for several that do not communicate"},
    Synonym{"axis", "lr", "[learning_rate]"},
    Synonym{"axis", "batch_size", "[batch_per_replica], or [global_batch]"},
    Synonym{"axis", "batch", "[batch_per_replica], or [global_batch]"},
    Synonym{"axis", "world_size", "[gpus]"},
    Synonym{"axis", "replicas", "[gpus]"},
    Synonym{"axis", "ranks", "[gpus]"},
    Synonym{"axis", "np", "[gpus]"},
    Synonym{"axis", "num_gpus", "[gpus]"},
    Synonym{"axis", "nproc_per_node", "[gpus] and [nodes]"},
    Synonym{"axis", "nnodes", "[nodes]"},
    Synonym{"axis", "ntasks", "[gpus], and [gpus_per_task] where a task has several"},
    Synonym{"axis", "tasks_per_node", "[gpus_per_task]: tasks are gpus / gpus_per_task"},
    Synonym{"axis", "ntasks_per_node", "[gpus_per_task]: tasks are gpus / gpus_per_task"},
    Synonym{"axis", "cpus", "[cpus_per_task] or [cpus_per_replica]"},
    Synonym{"axis", "threads", "[cpus_per_task], or [compute_threads] and [input_threads]"},
    Synonym{"axis", "num_workers", "[input_threads]"},
    Synonym{"axis", "workers", "[input_threads]"},
    Synonym{"axis", "num_epochs", "[epochs]"},
    Synonym{"axis", "max_steps", "[steps]"},
    Synonym{"axis", "dtype", "[precision]"},
    Synonym{"axis", "amp", "[precision] bf16 or fp16"},
    Synonym{"axis", "mixed_precision", "[precision] bf16 or fp16"},
    Synonym{"axis", "fusion_threshold_mb", "[bucket_mb]"},
    Synonym{"axis", "bucket_cap_mb", "[bucket_mb]"},
    Synonym{"axis", "model", "the workload: paceline list workloads"},
    Synonym{"command", "run", "train for one run, sweep for a study"},
    Synonym{"command", "compare", "report A B for two studies, gate for a verdict"},
    Synonym{"command", "diff", "report A B for two studies, gate for a verdict"},
    Synonym{"command", "plot", "report STUDY --out FOLDER, which makes the plots"},
    Synonym{"command", "plots", "report STUDY --out FOLDER, which makes the plots"},
    Synonym{"command", "table", "report"},
    Synonym{"command", "analyze", "report, or explain"},
    Synonym{"command", "analyse", "report, or explain"},
    Synonym{"command", "benchmark", "bench, or sweep for a study"},
    Synonym{"command", "check", "doctor"},
    Synonym{"command", "info", "doctor, or describe for a workload"},
    Synonym{"command", "ls", "list"},
    Synonym{"command", "download", "data fetch"},
};

// "[batch_per_replica] of ..." as "batch_per_replica of ..." or "--batch-per-replica of ...".
std::string spelled(std::string_view ours, bool as_option) {
  std::string text;
  bool inside = false;
  for (const char c : ours) {
    if (c == '[' || c == ']') {
      inside = c == '[';
      if (inside && as_option) text += "--";
    } else {
      text += inside && as_option && c == '_' ? '-' : c;
    }
  }
  return text;
}

}  // namespace

const Names& known_names() {
  static const Names names = [] {
    const auto json = nlohmann::json::parse(kNames);
    return Names{read_names(json.at("backends")), read_names(json.at("wrappers")),
                 read_names(json.at("devices")), read_names(json.at("workloads"))};
  }();
  return names;
}

const std::string& lone_backend() {
  const auto& backends = known_names().backends;
  static const std::string name =
      std::ranges::find_if(backends, [](const Name& each) { return each.alone; })->name;
  return name;
}

Name find_name(std::string_view kind, std::string_view name, const std::string& where) {
  const Names& names = known_names();
  if (kind == "backend") return find_stack(name, where, Parts::known);
  return *find_in(kind == "device" ? names.devices : names.workloads, kind, name, where);
}

Name recorded_backend(std::string_view name, const std::string& where) {
  return find_stack(name, where, Parts::recorded);
}

std::optional<std::string> find_replacement(std::string_view kind, std::string_view word) {
  const bool as_option = kind == "option";
  std::string theirs = to_lower(word);
  if (as_option) {
    theirs.erase(0, 2);
    std::ranges::replace(theirs, '-', '_');
    kind = "axis";
  }
  for (const Synonym& entry : kSimilar) {
    if (entry.kind == kind && entry.theirs == theirs)
      return "use " + spelled(entry.ours, as_option);
  }
  return std::nullopt;
}

std::string our_name(std::string_view kind, std::string_view word) {
  for (const Synonym& entry : kSame) {
    if (entry.kind == kind && entry.theirs == word) return std::string(entry.ours);
  }
  return std::string(word);
}

std::vector<std::string> accepted_names(std::string_view kind) {
  const Names& names = known_names();
  std::vector<std::string> all;
  const auto& rows = kind == "backend"  ? names.backends
                     : kind == "device" ? names.devices
                                        : names.workloads;
  for (const Name& name : rows) all.push_back(name.name);
  for (const Name& inside : kind == "backend" ? rows : std::vector<Name>{}) {
    for (const Name& between : rows) {
      try {
        all.push_back(find_name(kind, inside.name + "/" + between.name).name);
      } catch (const Error&) {  // they cannot be stacked
      }
    }
  }
  for (const Synonym& entry : kSame) {
    if (entry.kind == kind) all.emplace_back(entry.theirs);
  }
  return all;
}

}  // namespace paceline
