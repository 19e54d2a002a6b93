// The run record, schema 3: facts, the point, and the place in the study. docs/record.md lists its
// keys. Seconds cover the whole run unless stated otherwise.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/core/json.h"
#include "engine/facts/collective.h"
#include "engine/facts/fact.h"
#include "engine/facts/hardware.h"
#include "engine/facts/input.h"
#include "engine/facts/provenance.h"
#include "engine/facts/training.h"
#include "results/parameters.h"

namespace paceline {

struct RunPlace;  // results/store.h
struct UnfinishedRun;

constexpr int kRecordSchema = 3;

struct LayoutFacts {
  PACELINE_FACT(std::optional<int>, nodes, "", kCount);
  PACELINE_FACT(std::optional<int>, ntasks, "", kCount);
  PACELINE_FACT(std::optional<int>, cpus_per_task, "", kCount);
  PACELINE_FACT_FROM(1, int, gpus, "number of replicas", kRequiredCount);
  PACELINE_FACT(std::optional<int>, cpus_per_replica, "");
  PACELINE_FACT_FROM("cores", fact::Text, replicas_are, "cores or gpus");
  PACELINE_FACT(std::optional<int>, compute_threads, "of a replica");
  PACELINE_FACT(std::optional<int>, input_threads, "of a replica");
  PACELINE_FACT(std::optional<int>, comm_threads, "of a replica");
  PACELINE_END_FACTS
};

struct RunFlags {
  PACELINE_FACT(bool, resumed, "");
  PACELINE_FACT(bool, oversubscribed, "");
  PACELINE_FACT(bool, throttled, "");
  PACELINE_FACT(bool, traced, "");
  PACELINE_FACT(bool, synthetic, "");
  PACELINE_FACT(bool, sequential,
                "the number of runs of its point depends on their results (sweep "
                "--until-precision, gate --until-decided), so intervals have to hold however often "
                "somebody looks");
  PACELINE_END_FACTS
};

// The file with step samples next to the record.
struct SamplesFile {
  PACELINE_FACT(fact::Text, file, "\"1.1.steps.gz\"");
  PACELINE_FACT(fact::Text, xxh3, "hash of its bytes");
  PACELINE_FACT(std::int64_t, bytes, "");
  PACELINE_END_FACTS
};

// Whoever reads what is in boxes includes engine/facts/timing.h, or rank.h beside it.
struct RunRecord {
  PACELINE_FACT_FROM("measured", fact::Text, kind,
                     "measured, published, predicted, imported or collective", kWritten);
  PACELINE_FACT(fact::Text, study, "", kWritten);
  PACELINE_FACT(fact::Text, point, "the axes that vary: \"gpus=2,backend=mpi\"", kWritten);
  PACELINE_FACT_FROM(1, int, repeat, "from 1", kRequiredCount);
  PACELINE_FACT_FROM(1, int, attempt, "from 1", kRequiredCount);
  PACELINE_FACT(fact::Text, session, "one call of sweep, or one wave of submit", kWritten);
  PACELINE_FACT(int, round, "");
  PACELINE_FACT_FROM("completed", fact::Text, status, "completed, failed, timeout or preempted",
                     kWritten);
  PACELINE_FACT(fact::Text, reason, "of a status that is not completed", kWritten);
  PACELINE_FACT(Point, parameters, "all of the workload, with defaults", kRequired);
  PACELINE_FACT(fact::Text, identity, "hash of workload and identity parameters", kWritten);
  PACELINE_FACT(LayoutFacts, layout, "", kRequired);
  PACELINE_FACT(Provenance, provenance, "");
  PACELINE_FACT(fact::Box<struct Timing>, timing, "");
  PACELINE_FACT(fact::Box<struct Throughput>, throughput, "");
  PACELINE_FACT(fact::OfRanks<struct PhaseSeconds>, phases,
                "one per rank: seconds of the whole fit");
  PACELINE_FACT(fact::Box<std::optional<struct RanksFacts>>, ranks,
                "of many ranks, instead of the lists with one entry per rank: of numbers mean, "
                "min, p05, p50, p95 and max, of each key by itself, as ranks.phases.max.input");
  PACELINE_FACT(fact::Box<std::optional<struct StragglerFacts>>, straggler,
                "the rank that delayed the others");
  PACELINE_FACT(InputFacts, input, "reading, over all ranks; seconds are summed over threads");
  PACELINE_FACT(fact::Box<std::optional<struct CheckpointFacts>>, checkpoints,
                "if the run wrote checkpoints or resumed from one");
  PACELINE_FACT(fact::Box<std::optional<struct TraceFacts>>, trace, "of train --trace");
  PACELINE_FACT(fact::Box<std::optional<struct ProfileFacts>>, profile,
                "of traces of PyTorch's profiler");
  PACELINE_FACT(PlanFacts, plan, "what was trained");
  PACELINE_FACT(fact::Real, utilization, "of GPUs: mean over time and GPUs", kShare);
  PACELINE_FACT(std::vector<GpuFacts>, gpus, "one per GPU");
  PACELINE_FACT(EnergyFacts, energy, "the meters that cover most without counting twice");
  PACELINE_FACT(ProbeFacts, probe, "the machine's speed, measured beside the run");
  PACELINE_FACT(QualityFacts, quality, "loss and accuracy");
  PACELINE_FACT(std::optional<CollectiveFacts>, collective, "of bench, or imported");
  PACELINE_FACT(RunFlags, flags, "");
  PACELINE_FACT(std::optional<SamplesFile>, samples, "step samples, next to the record");
  PACELINE_END_FACTS

  // Where what the boxes hold is known, so that who copies a record need not know it.
  RunRecord();
  RunRecord(const RunRecord& other);
  RunRecord(RunRecord&& other) noexcept;
  RunRecord& operator=(const RunRecord& other);
  RunRecord& operator=(RunRecord&& other) noexcept;
  ~RunRecord();

  fact::Box<std::vector<struct RankFacts>> each_rank;  // in the file a list of each fact

  // In the file these stand among the parameters.
  std::string workload;
  bool control = false;  // an A/A control, never a result

  bool completed() const { return status == "completed"; }
  fact::Real fit_seconds() const;
  double whole_seconds() const;  // the fit and everything around it, as far as known
  // Measurements of a collective, no training run: of `bench`, or imported.
  bool is_collective() const;
  // Version, commit and dirty flag of Paceline; of an own program its commit, dirty flag and files.
  std::string build() const;
  std::string hosts() const;  // "n1, n2", of many ranks "512 hosts"; empty: not known
  std::vector<std::string> host_names() const;  // of the ranks that are listed
  // The ranks that are listed, and of many ranks the mean one.
  std::vector<const RankFacts*> known_ranks() const;
  // The largest of what `read` finds of a rank.
  fact::Real max_over_ranks(const std::function<fact::Real(const RankFacts&)>& read) const;
  Layout task_layout() const;
};

LayoutFacts layout_facts(const Layout& layout);

// What every record of a run begins with.
RunRecord begin_record(const RunPlace& place, const std::string& workload, const Point& parameters);

RunRecord make_record(const UnfinishedRun& run);

Json to_json(const RunRecord& record);

// Whether a unit is what a rate counts, as "tokens".
bool is_plural(std::string_view unit);

// Throws input with `where` and the key: another schema, a missing member, a wrong type, a value
// out of range. Ignores unknown keys.
RunRecord parse_run_record(const Json& json, const std::string& where);

// docs/record.md: every key, with its values and meaning.
std::string record_markdown();

// The facts of ranks as JSON: lists with an entry per rank, or their spread.
struct FactPlace;
void add_rank_lists(Json& record, const std::vector<RankFacts>& ranks);
std::vector<RankFacts> read_rank_lists(const Json& record, const std::string& where);
Json fact_to_json(const struct RankSpread& spread);
void fact_from_json(const Json& ranks, RankSpread& spread, const FactPlace& place);

// Size in bytes, by `size_of`, of the record's lists with one entry per rank. 0 if there are none,
// or so few ranks that the lists stay.
std::size_t size_of_rank_lists(const Json& record, std::size_t (*size_of)(const Json&));

// Replaces the lists by "ranks" (RanksFacts). Returns them as lines for the sidecar, one JSON
// object per rank.
std::string fold_rank_lists(Json& record);

// The beginning of a rank's line; other lines hold steps.
inline constexpr char kRankLine[] = "{\"facts_of_rank\":";

}  // namespace paceline
