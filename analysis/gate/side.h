// One side of a gate: its measurements by point and run.
#pragma once

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "analysis/evidence/evidence.h"
#include "analysis/gate/quantity.h"
#include "results/parameters.h"
#include "results/store.h"

namespace paceline {

constexpr std::size_t kFewestSessions = 3;  // fewer of a baseline decide nothing

// One run's value. Runs of the same session and round ran side by side.
struct Sample {
  double value = 0;
  std::string session;
  int round = 0;         // 0: none
  bool is_busy = false;  // made while other processes kept its CPUs busy
};

// A point of a study, or a benchmark in Google Benchmark's JSON.
struct Subject {
  std::string name;      // "mnist-cnn gpus=2,backend=mpi"
  std::string workload;  // empty for a benchmark
  std::set<std::string> studies;
  Point parameters;
  std::map<Quantity, std::vector<Sample>> samples;
  // Its time is seconds per sample, because some runs have no fit seconds, or they have a result in
  // a unit of its own. If all runs have a rate, `rated` holds their seconds per sample in any case,
  // so that points are compared in one unit.
  bool is_rated = false;
  std::vector<Sample> rated;
  Unit unit;                  // of such rates
  double run_seconds = 0;     // mean of a run's fit, or of the user's whole program; 0: not known
  std::vector<Run> members;   // that count; empty for a benchmark
  std::size_t runs = 0;       // how many count
  std::size_t left_out = 0;   // excluded: resumed, throttled, oversubscribed or with an error
  std::size_t not_ended = 0;  // attempts that failed, timed out, diverged or missed their goal
  bool sequential = false;    // the number of runs depends on their results, by a run's record
  std::size_t lost = 0;       // runs without any successful attempt; preempted ones do not count
  std::size_t busy = 0;       // of `runs`, made while other processes kept their CPUs busy
  std::string busy_why;       // "18 % of the time of its CPUs went to other processes"
  std::string why;            // why the last unsuccessful one failed
  double work = 0;   // mean number of training samples per run; 0: unknown, or runs end at a goal
  std::string base;  // the one-replica subject that is the base of its serial fraction
};

struct Side {
  std::string name;  // "baseline"
  std::vector<Subject> subjects;
  std::set<std::string> machines, builds;
  std::set<std::string> runs;  // a text for each that identifies the run
  std::size_t shared = 0;      // runs or files excluded because the other side has them too
  std::vector<std::string> notes;

  const Subject* find(const std::string& subject) const;
};

// The points of these records, by the evidence that a gate goes by.
Side load_side(const std::string& name, const StoreContent& content, const Side& other = {});
// The points of runs that were found for tables.
Side make_side(const std::string& name, std::vector<Run> runs, const Side& other = {});

// Reads studies, records, or Google Benchmark's JSON files (render.h). Excludes, with a
// note, what `other` contains too: a folder of all nights includes the last one. Throws input if
// nothing can be compared, usage if `other` contains everything. `content` gets the records, which
// the side has in common with it.
Side read_side(const std::string& name, const std::vector<std::filesystem::path>& places,
               const Side& other = {}, StoreContent* content = nullptr);

// "mnist-cnn gpus=2,backend=mpi": the gate's name for a point. Programs of the user's own stand
// under their study: "frameworks gpus=2,program=pytorch-ddp", or "nightly train gpus=2" where the
// point does not name the program and the study is not named after it.
std::string subject_name(const std::string& study, const std::string& workload,
                         const Point& parameters, const std::string& point);
std::string subject_name(const RunRecord& record);

// The values of a quantity on one side, by rounds and sessions.

using Samples = std::vector<Sample>;
using RoundKey = std::pair<std::string, int>;  // session, round

// On the scale on which values are compared, where more is worse: factors by their logarithms.
double scaled(double value, const QuantityInfo& info);

bool is_in_round(const Sample& sample);
RoundKey round_key(const Sample& sample);
std::set<RoundKey> list_rounds(const Samples& samples);
Samples samples_in(const Samples& samples, const std::set<RoundKey>& rounds);

// The rounds that both sides have. None if they are too few for a decision, unless they are all
// rounds of the smaller side.
std::set<RoundKey> shared_rounds(const Samples& baseline, const Samples& current);

std::size_t count_sessions(const Samples& samples);

// Means of scaled values.
std::map<RoundKey, double> means_of_rounds(const Samples& samples, const QuantityInfo& info);
std::map<std::string, double> means_of_sessions(const Samples& samples, const QuantityInfo& info);

template <typename Set>
bool have_common(const Set& a, const Set& b) {
  return std::ranges::any_of(a, [&](const auto& each) { return b.contains(each); });
}

// Matches the points of two sides.

struct Matches {
  std::vector<std::optional<std::size_t>> of_baseline;  // index of the current side's subject
  std::vector<std::string> notes;                       // unmatched, changed and new points
};

// Points match if they have the same workload and no identity parameter (except the seed) with
// different values on the two sides. Among several matches, the one with the fewest one-sided
// parameters wins. Where the sides have a study in common, the user's own programs match within a
// study, or if they are started alike. Benchmarks match by name. With `one_spec` both sides ran the
// same spec: points then match by name too, and differences are due to the builds' defaults.
Matches match_subjects(const Side& baseline, const Side& current, bool one_spec = false);

}  // namespace paceline
