// The run record, schema 2, as plain structs, used by all writers and readers. README.md in this
// folder shows the JSON.
//
// Names include units. Seconds cover the whole run unless stated otherwise. Empty members are
// unknown or do not apply.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "engine/core/json.h"
#include "results/parameters.h"
#include "results/record/collective.h"
#include "results/record/energy.h"
#include "results/record/input.h"
#include "results/record/plan.h"
#include "results/record/provenance.h"
#include "results/record/quality.h"
#include "results/record/ranks.h"
#include "results/record/timing.h"

namespace paceline {

constexpr int kRecordSchema = 3;

struct LayoutFacts {
  std::optional<int> nodes, ntasks, cpus_per_task;
  int gpus = 1;  // number of replicas
  std::optional<int> cpus_per_replica;
  std::string replicas_are = "cores";  // or "gpus"
  std::optional<int> compute_threads, input_threads, comm_threads;

  template <typename Each>
  void fields(Each& each) {
    each("nodes", nodes, kCount);
    each("ntasks", ntasks, kCount);
    each("cpus_per_task", cpus_per_task, kCount);
    each("gpus", gpus, kRequiredCount);
    each("cpus_per_replica", cpus_per_replica);
    each("replicas_are", replicas_are);
    each("compute_threads", compute_threads);
    each("input_threads", input_threads);
    each("comm_threads", comm_threads);
  }
};

struct RunFlags {
  bool resumed = false, oversubscribed = false, throttled = false, traced = false;
  bool synthetic = false;
  // The number of runs of its point depends on their results (sweep --until-precision, gate
  // --until-decided), so intervals have to hold however often somebody looks.
  bool sequential = false;

  template <typename Each>
  void fields(Each& each) {
    each("resumed", resumed);
    each("oversubscribed", oversubscribed);
    each("throttled", throttled);
    each("traced", traced);
    each("synthetic", synthetic);
    each("sequential", sequential);
  }
};

// The file with step samples next to the record.
struct SamplesFile {
  std::string file, xxh3;
  std::int64_t bytes = 0;

  template <typename Each>
  void fields(Each& each) {
    each("file", file);
    each("xxh3", xxh3);
    each("bytes", bytes);
  }
};

struct RunRecord {
  std::string kind = "measured";  // published, predicted, imported, collective
  std::string study, point;       // Point::text() of the axes that vary
  int repeat = 1, attempt = 1;
  std::string session;
  int round = 0;
  std::string status = "completed";  // failed, timeout, preempted
  std::string reason;
  std::string workload;
  Point parameters;      // all known parameters in the record
  bool control = false;  // an A/A control, never a result
  std::string identity;
  std::string renamed_backend;  // its backend's name in a file of schema 1, if that is another
  LayoutFacts layout;
  Provenance provenance;
  Timing timing;
  Throughput throughput;
  std::vector<PhaseSeconds> phases;  // one per rank
  // Of many ranks: replaces phases, timing.step_seconds, input.ready_batches and provenance's
  // hosts and affinity.
  std::optional<RanksFacts> ranks;
  std::optional<StragglerFacts> straggler;
  InputFacts input;
  std::optional<CheckpointFacts> checkpoints;
  std::optional<TraceFacts> trace;
  PlanFacts plan;
  std::optional<double> utilization;  // GPU utilization: mean over time and GPUs, 0 to 1
  std::vector<GpuFacts> gpus;
  EnergyFacts energy;
  ProbeFacts probe;  // the machine's speed, measured beside the run
  QualityFacts quality;
  std::optional<CollectiveFacts> collective;
  RunFlags flags;
  std::optional<SamplesFile> samples;

  bool completed() const { return status == "completed"; }
  // Measurements of a collective, no training run: of `bench`, or imported.
  bool is_collective() const;
  // Version, commit and dirty flag of Paceline; of an own program its commit, dirty flag and files.
  std::string build() const;
  std::string hosts() const;  // "n1, n2", of many ranks "512 hosts"; empty: not known
  Layout task_layout() const;

  // Schema, workload and parameters are written between these two.
  template <typename Each>
  void beginning(Each& each) {
    each.always("kind", kind);
    each.always("study", study);
    each.always("point", point);
    each("repeat", repeat, kRequiredCount);
    each("attempt", attempt, kRequiredCount);
    each.always("session", session);
    each("round", round);
    each.always("status", status);
    each.always("reason", reason);
  }
  template <typename Each>
  void sections(Each& each) {
    each.always("identity", identity);
    each("renamed_backend", renamed_backend);
    each("layout", layout, kRequired);
    each("provenance", provenance);
    each("timing", timing);
    each("throughput", throughput);
    each("phases", phases);
    each("ranks", ranks);
    each("straggler", straggler);
    each("input", input);
    each("checkpoints", checkpoints);
    each("trace", trace);
    each("plan", plan);
    each("utilization", utilization, kShare);
    each("gpus", gpus);
    each("energy", energy);
    each("probe", probe);
    each("quality", quality);
    each("collective", collective);
    each("flags", flags);
    each("samples", samples);
  }
};

LayoutFacts layout_facts(const Layout& layout);

// Non-integer numbers have seven significant digits; more would be noise.
Json to_json(const RunRecord& record);
Json to_json(const GpuFacts& gpu);
Json to_json(const EnergyFacts& energy);

// Throws input with `where` and the key: a newer schema, a missing member, a wrong type, a value
// out of range. Ignores unknown keys.
RunRecord parse_run_record(const Json& json, const std::string& where);
GpuFacts parse_gpu_facts(const Json& json, const std::string& where);
EnergyFacts parse_energy_facts(const Json& json, const std::string& where);

// Moves the facts of many ranks from the record to its sidecar.

// Size in bytes, by `size_of`, of the record's lists with one entry per rank. 0 if there are none,
// or so few ranks that the lists stay.
std::size_t size_of_rank_lists(const Json& record, std::size_t (*size_of)(const Json&));

// Replaces the lists by "ranks" (record/ranks.h). Returns them as lines for the sidecar, one JSON
// object per rank.
std::string fold_rank_lists(Json& record);

// The beginning of a rank's line; other lines hold steps.
inline constexpr char kRankLine[] = "{\"facts_of_rank\":";

// A record of schema 1 or 2 as one of today's. Schema 3 has other names for five keys. Until schema
// 1, backends `mpi` and `gloo` were Paceline's own sums: such a record gets the name of what ran,
// and "renamed_backend", the name in the file.
Json upgrade_record(Json record);

}  // namespace paceline
