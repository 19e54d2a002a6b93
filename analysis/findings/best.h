// Finds the smallest point that is nearly as fast as the fastest, i.e. what to request from a
// cluster.
#pragma once

#include <string>
#include <vector>

#include "analysis/document/document.h"
#include "analysis/study/comparison.h"
#include "analysis/study/contrast.h"

namespace paceline {

enum class LimitVerdict {
  within,     // the whole interval of its time over the best's lies below the limit
  beyond,     // the whole interval lies above the limit
  undecided,  // the interval contains the limit, or there are fewer than three runs
};

// What `smallest` is least in, if not in replicas and CPUs.
struct CostMetric {
  std::string name;  // "energy", as --least takes it
  std::string unit;  // "Wh"
  double scale = 1;  // of the fact's unit
  RunFact of;
  bool is_metered = false;  // rows are only comparable where the same meters cover them
};
const std::vector<CostMetric>& expenses();

struct NearPoint {
  std::size_t row = 0;  // index into the study's rows
  std::string name;
  double cpus = 0;    // of all tasks; 0: not known
  std::string doubt;  // "cannot tell whether it trained as well: ..."; empty: it can
  Ratio over_best;    // its time over the best's; per sample where rates are compared
  // The same of trimmed means, where only they tell on which side of the limit it is.
  std::optional<Estimate> trimmed_over_best;
  bool faster_but_for_outliers = false;  // than the best, by trimmed means
  std::optional<Estimate> amount;        // of Best::least
  Ratio amount_over_best;
  LimitVerdict limit_verdict = LimitVerdict::undecided;
};

// A row that is excluded from the comparison.
struct LeftAside {
  std::string name;
  std::string why;            // why it was excluded: "of only disturbed runs"
  std::string detail;         // "lower accuracy, 89.96 % beside 96.99 %"; may be empty
  bool lacks_amount = false;  // it has no comparable figure of Best::least, and that is all
  // Its mean cost, if it lacks the amount or trained worse, and is below the best's.
  std::optional<double> faster;
};

struct Best {
  double within = 0;                  // 0.05
  const CostMetric* least = nullptr;  // null: replicas, then CPUs
  bool rates = false;                 // compares times per sample
  NearPoint by_mean;                  // the smallest whose mean is within the limit, decided or not
  NearPoint best, smallest;  // smallest: among those within; the best itself if there is no other
  std::vector<NearPoint> points;     // all, by replicas, CPUs and time
  std::vector<NearPoint> undecided;  // smaller than the smallest, and possibly within the limit
  std::vector<NearPoint> alike;  // three runs or more, and not significantly slower than the best
  std::vector<std::string> unjudged;  // fewer than three runs, or disturbed ones
  WeakEvidence doubt;                 // why some cannot be judged, theirs and the best's
  std::vector<LeftAside> left_aside;
};

// Fewer replicas count as smaller, then fewer CPUs, then less time; with `least`, less of it.
// Compares rows of measured, undisturbed runs that do all the work and train as well as their base
// and as the one that trained best; excludes the others if such rows exist. Tests at 95 %, for all
// points together (Holm), which points are slower than the best, by means and by trimmed means
// together (robust.h). The best was selected by its time, so the tests are corrected as if all
// pairs had been compared. Where the interval of the means leaves open whether a point is within
// the limit, that of the trimmed means at 99 % may tell: near the limit, each verdict errs in at
// most 3 %. Throws input if no row has that amount.
Best find_best(const Study& study, double within, const CostMetric* least = nullptr);

// "fastest: bucket_mb 4: 2.2 s", or which points cannot be distinguished from it.
std::string fastest_sentence(const Study& study, const Best& best);

// The same for each system that has several rows: "A CPU: bucket_mb: fastest: ..."
std::vector<std::string> fastest_sentences(const Study& study);

// The answer in one or two sentences, and the points nearby. `notes`: about the records. JSON:
// {"schema": 1, "within", "least", "compared", "decided", "best", "alike": [names], "smallest",
// "smallest_by_mean", "undecided": [..], "warnings": [..],
// "unjudged": [names], "left_aside": [{"name", "why", "detail"}], "points": [{"name", "nodes",
// "ntasks", "cpus_per_task", "gpus", "cpus", "backend", "runs", "fit_seconds",
// "samples_per_second", "over_best", "over_best_low", "over_best_high", "interval",
// "trimmed_over_best", "verdict", "label", "doubt", and with "least" "amount", "amount_over_best",
// "amount_over_best_low", "amount_over_best_high"}]}
Document best_document(const Study& study, const Best& best,
                       const std::vector<std::string>& notes = {});

}  // namespace paceline
