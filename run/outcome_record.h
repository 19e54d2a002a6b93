// Converts an outcome to a record and its sidecar of step samples.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "engine/launch/process_rank.h"
#include "engine/launch/topology.h"
#include "engine/train/outcome.h"
#include "engine/train/session.h"
#include "results/run_record.h"
#include "run/meter_record.h"
#include "run/resolve.h"
#include "run/training_run.h"

namespace paceline {

// Facts that the outcome lacks: where and how it ran.
struct RunFacts {
  Layout layout;
  ThreadPlan threads;
  Provenance provenance;        // without what the outcome knows
  std::vector<RankCard> cards;  // one per rank
  bool oversubscribed = false, synthetic = false;
  int other_jobs = -1;  // maximum per node at the start, or here at the end; -1: unknown
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

// Shared parts of records of runs and of collectives.

LayoutFacts layout_facts(const Layout& layout, const ThreadPlan& threads);

// Version, commit, compiler and command; Slurm's allocation, and the loaded modules.
Provenance build_facts(const std::vector<std::string>& command);

// Of the screen that the job made before the run, by PACELINE_SCREEN. Empty: none, or one that
// cannot be read, which is a warning.
std::optional<ScreenedFacts> find_screened();

// Finds, stages, reads and limits the samples of a run, and collects facts for the record.

// Throws as the readers do, naming the file. Fills in the facts about data and input.
DatasetPair load_run_data(const RunRequest& request, const Workload& workload,
                          const Network& network, const ProcessRank& process, RunFacts& facts);

// Records failed training runs: what was requested, and why it ended.

// With --record, writes a record of status failed with `line` as reason. Not for wrong usage or
// runs stopped by request (`code` 64, 75, 128 and above), nor if a record could not have been
// written there. A failure to write it is only a warning, because the original error matters more.
void write_failed_record(const RunRequest& request, int code, const std::string& line) noexcept;

}  // namespace paceline
