// From records to runs and points: which runs count, and why the others do not. Every verb asks
// here; where two verbs differ, a reason has another effect in one of them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "analysis/evidence/run.h"
#include "engine/core/text.h"
#include "results/expected_runs.h"
#include "results/match.h"
#include "results/store.h"

namespace paceline {

// Selects records by a parameter, or by kind, study, session, build, system or workload.
struct Selection {
  std::string key;
  std::vector<std::string> values;  // as given: one of these, or of their parts between commas

  bool allows(const std::optional<std::string>& value) const;
};

// Parses "backend=mpi" or "backend=mpi,ring", the values of an option; several of one key are one
// selection. Throws usage with an example.
std::vector<Selection> parsed_selections(const std::vector<std::string>& texts,
                                         const std::string& option = "--only",
                                         const std::string& example = "backend=mpi");

// Why a run may not count: a row of reasons().
struct Reason {
  const char* name;  // "resumed"
  bool (*holds)(const Run&);
  // What it means in tables and all that is made of them, in a history, and at a gate and a plan.
  Effect in_tables, in_history, at_gate;
  std::string (*text)(const Run&);  // of failures: "its loss is not a number"
};

// Of several that hold, the strongest effect decides.
const std::vector<Reason>& reasons();
// "resumed, throttled, oversubscribed or traced": what makes runs of a table yield to others.
std::string yielding_names();

struct EvidencePolicy;
// Sets the effects of runs, with their reasons, and which are lost.
void judge(std::vector<Run>& runs, const EvidencePolicy& policy);
void judge(Run& run, const EvidencePolicy& policy);

// What a verb asks of the evidence.
struct EvidencePolicy {
  Effect Reason::*effect = &Reason::in_tables;
  // A history compares builds, so it keeps runs that `sweep --new-build` made again.
  bool keeps_older_builds = false;
  // Only tables show what was predicted.
  bool keeps_predictions = false;
  // A gate compares points of any machine, and says so; tables tell machines apart.
  MatchRule point = MatchRule::row();

  static EvidencePolicy tables();
  static EvidencePolicy history();
  static EvidencePolicy gate();
};

struct Evidence {
  std::vector<Run> runs;                         // all but these, each with its effect
  std::vector<Run> controls;                     // A/A controls that count
  std::size_t superseded = 0, older_builds = 0;  // left out; see below
};

// Runs of training. With `plans`, without those of before a spec was edited once there are results
// of what it says now. Throws usage if a selection selects nothing.
Evidence collect(const StoreContent& content, const EvidencePolicy& policy,
                 const std::vector<Selection>& selections = {},
                 const std::vector<ExpectedRuns>& plans = {});

// "without 3 runs of earlier builds, which --new-build made again"
std::string older_builds_note(std::size_t older);

// The runs of one point.
struct EvidencePoint {
  std::vector<Run> runs;    // that count; never empty in a table
  std::vector<Run> aside;   // that ended and do not count
  std::vector<Run> failed;  // attempts without a result
  bool tainted = false;     // `runs` yield, and count because there are no others: no interval
  std::size_t lost = 0;     // runs of which no attempt ended well
  std::string why_lost;     // why the first one failed, may be empty
  std::string work;         // "unequal work: 101770 parameters", beside other programs' points

  const Run& first() const {
    return !runs.empty() ? runs.front() : !aside.empty() ? aside.front() : failed.front();
  }
};

// In the order in which the points appear.
std::vector<EvidencePoint> group_points(std::vector<Run> runs, const MatchRule& rule);

// Runs that later ones replace. Both return how many they removed.

std::size_t drop_superseded(std::vector<Run>& runs, const std::vector<ExpectedRuns>& plans);

// Runs that `sweep --new-build` made again: the same repeat of the same point on a like machine, by
// another build.
std::size_t drop_older_builds(std::vector<Run>& runs);

template <typename Which>
std::vector<Run> chosen(const std::vector<Run>& runs, Which which) {
  return mapped_if(runs, which, std::identity());
}

// Moves them out of `runs`.
template <typename Which>
std::vector<Run> taken(std::vector<Run>& runs, Which which) {
  const auto first =
      std::stable_partition(runs.begin(), runs.end(), [&](const Run& run) { return !which(run); });
  std::vector<Run> result(std::make_move_iterator(first), std::make_move_iterator(runs.end()));
  runs.erase(first, runs.end());
  return result;
}

// Splits "gpus=2,decay_epochs=30,60" into names and values.
std::vector<std::pair<std::string, std::string>> named_values(std::string_view point);

}  // namespace paceline
