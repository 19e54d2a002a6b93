// How the loss changes as replicas are added, as far as the runs can tell.
//
// For N replicas with speed-up S, e = (N / S - 1) / (N - 1) is Karp and Flatt's fraction. Its
// meaning depends on the scaling type (docs/explain.md derives this):
//   strong         T(N) = T(1) (e + (1 - e) / N): e of the base's time is not divided
//   fixed epochs,  the number of steps falls as 1 / N, or stays while the work grows: the time per
//   weak           step is that of the base times 1 + e (N - 1)
// So a constant e is a cost that does not grow in strong scaling, but grows with every replica in
// the other two.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/study/contrast.h"
#include "analysis/study/loss_parts.h"
#include "analysis/study/scaling_series.h"

namespace paceline {

// What a sentence of `report` and `explain` says: its name in JSON, and the condition under which
// it is printed, which tests/laboratory/explain_test.cpp checks against data of known laws.
// docs/findings.md is made of these rows.

enum class FindingKind {
#define FINDING(name, ...) name,
#include "analysis/findings/finding_kinds.def"
#undef FINDING
};

std::string_view to_string(FindingKind kind);

// docs/findings.md
std::string findings_markdown();

// N: the replicas over the base's.
struct SizeOfTrend {
  int gpus = 2;
  std::optional<int> nodes;
  double efficiency = 0;  // S / N
  Judged fraction;        // e
  Judged added;           // N / S - 1
  Judged lost;            // 1 - S / N
  // From the sums in the records. Empty without phases, or if they do not cover the rates' steps.
  std::optional<LossParts> parts;
};

// Rows with the same base; one row for each size with more replicas.
struct Trend {
  // From slower_than_one to unjudged, or this.
  FindingKind kind = FindingKind::too_few_sizes;
  WeakEvidence doubt;  // empty: the noise of every row is known
  int base_gpus = 1;
  std::string cpus;                // "1 CPU per replica"; empty: unknown
  std::vector<SizeOfTrend> sizes;  // ascending; not empty
  Judged change;                   // of e, from the smallest size to the largest
  double tolerance = 0;            // by which a steady e may change
  bool has_phases = false;         // every row has
  bool looks_steady = false;       // by the means alone

  bool is_steady() const { return kind == FindingKind::steady || looks_steady; }
};

// One for each base of the series. Empty if the sizes do different or unknown amounts of work: runs
// that end at a goal, unknown scaling types.
std::vector<Trend> fit_trends(const Study& study, const Comparison& comparison,
                              const ScalingSeries& series);

}  // namespace paceline
