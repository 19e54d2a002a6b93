// The smallest point that is nearly as fast as the fastest: what to ask a cluster for.
#pragma once

#include <string>
#include <vector>

#include "analysis/study/comparison.h"
#include "analysis/study/contrast.h"
#include "engine/core/json.h"

namespace paceline {

enum class Nearness {
  within,     // its time over the best's lies below the limit, with its whole interval
  beyond,     // above it, with its whole interval
  undecided,  // the interval holds the limit, or there are fewer than three runs
};

struct NearPoint {
  std::size_t row = 0;  // of the study
  std::string name;
  double cpus = 0;  // of all tasks; 0: not known
  Ratio over_best;  // its time over the best's; per sample where rates are compared
  Nearness nearness = Nearness::undecided;
};

// A row that is not compared.
struct LeftAside {
  std::string name;
  std::string why;  // "of only disturbed runs": what such points are
};

struct Best {
  double within = 0;                 // 0.05
  bool rates = false;                // times per sample are compared
  NearPoint by_mean;                 // the smallest whose mean is within, decided or not
  NearPoint best, smallest;          // smallest: of those within; the best itself if no other is
  std::vector<NearPoint> points;     // all, by replicas, CPUs and time
  std::vector<NearPoint> undecided;  // smaller than the smallest, and maybe within
  std::vector<NearPoint> alike;  // of three runs or more, and not slower than the best by a test
  std::vector<std::string> unjudged;  // of fewer than three runs, or of disturbed ones
  Doubt doubt;                        // why: theirs and the best's
  std::vector<LeftAside> left_aside;
};

// Fewer replicas are smaller, then fewer CPUs, then less time. Rows of measured runs only, of runs
// that do all the work, and of undisturbed ones, as far as there are any; the others are left
// aside. Which points are slower than the best is tested at 95 % for all of them together (Holm).
// The best was chosen for its time: any two points might have been compared, so the tests count as
// those of all pairs.
Best find_best(const Study& study, double within);

// "fastest: bucket_mb 4: 2.2 s", or which points cannot be told from it.
std::string fastest_sentence(const Study& study, const Best& best);

// The same of each system that has several rows: "A CPU: bucket_mb: fastest: ..."
std::vector<std::string> fastest_sentences(const Study& study);

// An answer in a sentence or two, and the points nearby.
std::string best_answer(const Study& study, const Best& best);
// The same below its title and what flaws the runs, in lines of at most `width` columns.
std::string best_text(const Study& study, const Best& best, std::size_t width = 300);
// {"schema": 1, "within", "compared", "decided", "best", "alike": [names], "smallest",
// "smallest_by_mean", "undecided": [..], "warnings": [..],
// "unjudged": [names], "left_aside": [{"name", "why"}], "points": [{"name", "nodes", "ntasks",
// "cpus_per_task", "gpus", "cpus", "backend", "runs", "fit_seconds", "samples_per_second",
// "over_best", "over_best_low", "over_best_high", "interval", "verdict"}]}
Json best_json(const Study& study, const Best& best);

}  // namespace paceline
