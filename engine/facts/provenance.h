// Where a run comes from: program, machine, data.
#pragma once

#include "engine/facts/hardware.h"

namespace paceline {

// From Slurm's environment variables, in a job.
struct Allocation {
  PACELINE_FACT(fact::Text, job, "");
  PACELINE_FACT(fact::Text, array_job, "");
  PACELINE_FACT(fact::Text, array_task, "");
  PACELINE_FACT(fact::Text, restarts, "");
  PACELINE_FACT(fact::Text, cluster, "");
  PACELINE_FACT(fact::Text, partition, "");
  PACELINE_FACT(fact::Text, nodes, "the list of nodes");
  PACELINE_FACT(fact::Text, node, "of the writing rank");
  PACELINE_FACT(fact::Text, tasks_per_node, "");
  PACELINE_FACT(fact::Text, cpus_per_node, "");
  PACELINE_FACT(fact::Text, cpus_per_task, "");
  PACELINE_FACT(fact::Text, memory_mb_per_node, "");
  PACELINE_FACT(fact::Text, memory_mb_per_cpu, "");
  PACELINE_FACT(fact::Text, gpus, "");
  PACELINE_FACT(fact::Text, modules, "that are loaded");
  PACELINE_FACT(std::optional<int>, other_jobs, "maximum per node, at the start or end");
  PACELINE_END_FACTS
};

// What a screen of the job's devices and links said before the run.
struct ScreenedFacts {
  PACELINE_FACT(fact::Text, started_at, "UTC");
  PACELINE_FACT(fact::Texts, slow, "parts that are slower than those like it; empty: none");
  PACELINE_FACT(fact::Texts, sizes, "of each: \"8.0 % slower in sums of 4 MB\"");
  PACELINE_FACT(fact::Texts, hosts, "of the slow parts");
  PACELINE_END_FACTS
};

// Of workload command: the user's own program.
struct ProgramFacts {
  PACELINE_FACT(fact::Text, name, "");
  PACELINE_FACT(fact::Text, directory, "");
  PACELINE_FACT(fact::Text, commit, "of the directory");
  PACELINE_FACT(fact::Flag, dirty, "the directory has changes that are not committed");
  PACELINE_FACT(fact::Text, files_hash,
                "of the files that its command names, and of what git has as changed");
  PACELINE_FACT(fact::Text, python_environment, "");
  PACELINE_FACT(fact::Text, packages, "\"torch 2.9.0, numpy 2.3.4\"");
  PACELINE_FACT(fact::Text, precision, "\"fp32\", as it reports it");
  PACELINE_FACT(fact::Real, seconds, "from its start to its end");
  PACELINE_END_FACTS

  // Its commit, dirty flag and files; empty if none is known.
  std::string build() const;
  // Whether `other` is the same program before or after a change. What one of them does not know
  // does not distinguish them.
  bool differs_from(const ProgramFacts& other) const;
};

// Of kind imported: the file of another tool that the numbers are from.
struct ImportFacts {
  PACELINE_FACT(fact::Text, format, "\"nccl-tests\"");
  PACELINE_FACT(fact::Text, tool, "\"nccl-tests 2.16.0\"");
  PACELINE_FACT(fact::Text, file, "its name without folders");
  PACELINE_FACT(fact::Text, xxh3, "hash of its bytes");
  PACELINE_FACT(fact::Count, line, "where the record begins in it, from 1", kCount);
  PACELINE_FACT(fact::Text, imported_at, "UTC");
  PACELINE_FACT(fact::Text, imported_by, "version of Paceline");
  PACELINE_FACT(fact::Count, generation,
                "how often the file was imported into the study; earlier ones are superseded",
                kCount);
  PACELINE_END_FACTS
};

struct Provenance {
  PACELINE_FACT(fact::Text, version, "of Paceline");
  PACELINE_FACT(fact::Text, commit, "");
  PACELINE_FACT(fact::Flag, dirty, "built with changes that are not committed");
  PACELINE_FACT(fact::Text, compiler, "");
  PACELINE_FACT(fact::Text, compiler_flags, "");
  PACELINE_FACT(fact::Text, command, "as a shell takes it");
  PACELINE_FACT(std::optional<Allocation>, allocation, "what Slurm gave, in a job");
  PACELINE_FACT(std::optional<ScreenedFacts>, screened, "with submit --screen");
  PACELINE_FACT(fact::Text, libraries, "\"oneDNN 2.6.3, ...\"");
  PACELINE_FACT(fact::OfRanks<fact::Text>, hosts, "one per rank");
  PACELINE_FACT(fact::Text, cpu_model, "");
  PACELINE_FACT(NodeFacts, machine, "a node: hardware threads, usable or not");
  PACELINE_FACT(fact::OfRanks<fact::Text>, affinity, "one per rank: \"0-3\"");
  PACELINE_FACT(fact::Text, data_set, "");
  PACELINE_FACT(fact::Text, data_hash, "");
  PACELINE_FACT(fact::Text, weights_hash, "");
  PACELINE_FACT(fact::Text, backend_requested, "");
  PACELINE_FACT(fact::Text, backend_used, "with its transport");
  PACELINE_FACT(fact::Texts, implementations, "\"dense: brg:avx512_core\"");
  PACELINE_FACT(fact::Text, started_at, "UTC");
  PACELINE_FACT(LoadFacts, machine_load, "empty if the kernel does not tell");
  PACELINE_FACT(fact::Flag, fell_back, "a job whose backend failed ran with --fallback");
  PACELINE_FACT(std::optional<ProgramFacts>, program, "of workload command");
  PACELINE_FACT(std::optional<ImportFacts>, imported, "of kind imported");
  PACELINE_FACT(fact::Text, source, "of published and imported numbers");
  PACELINE_FACT(fact::Text, stack, "published: the software");
  PACELINE_FACT(fact::Text, hardware, "published");
  PACELINE_FACT(fact::Text, time_is, "published: what its time is");
  PACELINE_FACT(fact::Text, rate_is, "published: what its rate is");
  PACELINE_FACT(fact::Text, same_work_as, "published: the row that it is compared with");
  PACELINE_END_FACTS
};

}  // namespace paceline
