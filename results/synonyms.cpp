#include "results/synonyms.h"

#include <algorithm>
#include <array>

#include "engine/core/text.h"

namespace paceline {

namespace {

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
    Synonym{"wrapper", "flat", "mpi or gloo alone: both are the library's own all-reduce"},
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

std::optional<std::string> find_replacement(std::string_view kind, std::string_view word) {
  const bool as_option = kind == "option";
  std::string theirs = to_lower(word);
  if (as_option) {
    theirs.erase(0, 2);
    std::replace(theirs.begin(), theirs.end(), '-', '_');
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

}  // namespace paceline
