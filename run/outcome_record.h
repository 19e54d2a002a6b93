// Converts an outcome to a record and its sidecar of step samples.
#pragma once

#include <optional>
#include <string>

#include "engine/train/cache_sharing.h"
#include "engine/train/outcome.h"
#include "results/run_record.h"
#include "run/gpu_record.h"
#include "run/training_run.h"

namespace paceline {

// Facts that the outcome lacks: where and how it ran.
struct RunFacts {
  Layout layout;
  ThreadPlan threads;
  std::string data_set, data_hash, weights_hash;
  std::string backend_used;
  std::vector<std::string> hosts, affinity;  // one per rank
  std::string cpu_model;
  int machine_cpus = 0;           // per node, usable or not
  std::int64_t memory_bytes = 0;  // per node
  std::string started_at;
  bool oversubscribed = false, synthetic = false;
  int other_jobs = -1;  // maximum per node at the start, or here at the end; -1: unknown
  LoadFacts machine_load;
  GpuUse gpus;
  EnergyFacts energy;
  InputOptions input;
  CacheSharing cache;
  std::vector<LostRecords> lost;  // of both splits
  bool decodes = false;           // samples are encoded images, so `input` applies
  // Share of the files in the page cache before the first read.
  std::optional<double> resident_share;
  double stage_seconds = 0;  // 0: not staged
  std::size_t staged_bytes = 0;
  bool staged_before = false;  // by another job
};

RunRecord make_record(const RunRequest& request, const RunFacts& facts,
                      const TrainingOutcome& outcome);

// Gzipped JSON lines {"rank":0,"step":0,"input":..,...}, in seconds.
std::string compressed_samples(const TrainingOutcome& outcome);

}  // namespace paceline
