// One side of a gate: what was measured, point by point and run by run.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "analysis/gate/quantity.h"
#include "results/parameters.h"
#include "results/store.h"

namespace paceline {

// One run's value. Runs of one session and round went side by side.
struct Sample {
  double value = 0;
  std::string session;
  int round = 0;  // 0: of none
};

// A point of a study, or a benchmark of Google Benchmark's JSON.
struct Subject {
  std::string name;      // "mnist-cnn gpus=2,backend=mpi"
  std::string workload;  // empty for a benchmark
  Point parameters;
  std::map<Quantity, std::vector<Sample>> samples;
  // Its time is seconds a sample, since not all of its runs have fit seconds. Of runs that all have
  // a rate, `rated` is their seconds a sample in any case: points are compared in one unit.
  bool is_rated = false;
  std::vector<Sample> rated;
  std::size_t runs = 0;       // that count
  std::size_t left_out = 0;   // resumed, throttled or oversubscribed beside them, or in error
  std::size_t not_ended = 0;  // attempts that failed, timed out, diverged or missed their goal
  std::size_t lost = 0;       // runs of which no attempt ended well; preempted ones are none
  std::size_t busy = 0;       // of `runs`, made while others kept their CPUs busy
  std::string busy_why;       // "18 % of the time of its CPUs went to other processes"
  std::string why;            // of the last that did not end well
  double work = 0;  // samples that a run trains on, mean; 0: not known, or as a goal takes
  std::set<std::string> data;  // hashes of what they trained on
  std::string base;            // the subject of one replica that its serial fraction rests on
};

struct Side {
  std::string name;  // "baseline"
  std::vector<Subject> subjects;
  std::set<std::string> machines, builds, sessions, hosts;
  std::set<std::string> runs;  // a text each by which the very same run is known
  std::size_t shared = 0;      // runs, or files, left out because the other side has them
  std::string started_at;      // of its last run that counts, where known
  std::vector<std::string> notes;

  const Subject* find(const std::string& subject) const;
};

// Runs that are resumed, throttled or traced never count; oversubscribed ones only where a point
// has no others, with a note. A run whose loss is no number, or that did not reach its goal, counts
// as one that did not end.
Side side_of(const std::string& name, const StoreContent& content, const Side& other = {});

// Studies, records, or files of Google Benchmark's JSON (google_benchmark.h). Throws input where
// nothing is there to compare. What `other` has, too, is left out with a note: a folder of all
// nights has the last one in it; throws usage where nothing else is there.
Side read_side(const std::string& name, const std::vector<std::filesystem::path>& places,
               const Side& other = {});

// "mnist-cnn gpus=2,backend=mpi": what a gate calls the point of a record.
std::string subject_name(const Record& record);

}  // namespace paceline
