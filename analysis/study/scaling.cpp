#include "analysis/study/scaling.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/core/error.h"

namespace paceline {

namespace {

using Runs = std::vector<const Run*>;

bool known(const Runs& runs, const RunFact& fact) {
  return std::all_of(runs.begin(), runs.end(),
                     [&](const Run* run) { return fact(*run).has_value(); });
}

// The first run whose value differs from the first run's by more than `tolerance`.
const Run* odd_one(const Runs& runs, const RunFact& fact, double tolerance = 1e-6) {
  const double first = *fact(*runs[0]);
  const auto it = std::find_if(runs.begin(), runs.end(), [&](const Run* run) {
    return std::abs(*fact(*run) - first) > tolerance;
  });
  return it == runs.end() ? nullptr : *it;
}

bool fixed(const Runs& runs, const RunFact& fact) {
  return known(runs, fact) && !odd_one(runs, fact);
}

double samples_tolerance(const Runs& runs) {
  double tolerance = 0;
  for (const Run* run : runs) {
    const double epochs = run->parameters.real("epochs").value_or(1);
    tolerance = std::max(tolerance, run->global_batch.value_or(0) * epochs);
  }
  return tolerance;
}

// Each replica did the same work: what weak scaling means.
bool samples_per_replica_fixed(const Runs& runs) {
  const double first = *runs[0]->samples / runs[0]->gpus;
  const double tolerance = samples_tolerance(runs);
  return std::all_of(runs.begin(), runs.end(), [&](const Run* run) {
    return std::abs(*run->samples / run->gpus - first) <= tolerance / run->gpus;
  });
}

std::string described(const Run& run) {
  std::string text = fmt::format("{} replica{}", run.gpus, run.gpus == 1 ? "" : "s");
  const auto add = [&](const char* what, std::optional<double> value) {
    if (value) text += fmt::format(", {} {:.0f}", what, *value);
  };
  add("samples", run.samples);
  add("steps", run.steps);
  add("batch per replica", run.batch_per_replica);
  return text;
}

// A type, or two runs that have none together, and why.
struct Judged {
  std::optional<Scaling> type;
  const Run *a = nullptr, *b = nullptr;
  const char* why = "";

  Judged(Scaling scaling) : type(scaling) {}
  Judged(const Run* first, const Run* odd, const char* what) : a(first), b(odd), why(what) {}
};

[[noreturn]] void refuse(const Judged& judged) {
  const Run &a = *judged.a, &b = *judged.b;
  throw Error(ErrorKind::usage,
              fmt::format("records of different studies are mixed: {} ({}; {})", judged.why,
                          described(a), described(b)),
              a.where + " and " + b.where,
              a.batch_per_replica && a.batch_per_replica != b.batch_per_replica
                  ? fmt::format("report them apart, or choose with --only batch_per_replica={:g}",
                                *a.batch_per_replica)
                  : "report them apart, or choose with --only");
}

constexpr char kNoBatch[] = "neither the batch per replica nor the global batch is the same";
constexpr char kNoTotal[] = "neither the total of samples nor steps and batch are the same";

// Of runs that give times and rates but no total. Pages round both.
Scaling of_fixed_batch(const Runs& runs) {
  if (!known(runs, &Run::samples_per_second) || !known(runs, &Run::fit_seconds)) {
    return Scaling::weak;
  }
  constexpr double kRounded = 0.05;
  const auto total = [](const Run& run) { return *run.samples_per_second * *run.fit_seconds; };
  const auto stays = [&](auto quantity) {
    const double first = quantity(*runs[0]);
    return std::all_of(runs.begin(), runs.end(), [&](const Run* run) {
      return std::abs(quantity(*run) / first - 1) <= kRounded;
    });
  };
  if (stays(total)) return Scaling::fixed_epochs;
  return stays([&](const Run& run) { return total(run) / run.gpus; }) ? Scaling::weak
                                                                      : Scaling::unknown;
}

Judged of_unknown_total(const Runs& runs) {
  if (!known(runs, &Run::batch_per_replica)) return Scaling::unknown;
  const Run* odd = odd_one(runs, &Run::batch_per_replica);
  if (!odd) return of_fixed_batch(runs);
  if (fixed(runs, &Run::global_batch)) return Scaling::strong;
  return {runs[0], odd, kNoBatch};
}

// Runs that end when the same goal is reached: how many samples that takes is a result.
bool share_a_goal(const Runs& runs) {
  return !runs[0]->goal.empty() && std::all_of(runs.begin(), runs.end(), [&](const Run* run) {
    return run->goal == runs[0]->goal;
  });
}

Judged judge(const Runs& runs) {
  const bool one_size = std::all_of(runs.begin(), runs.end(),
                                    [&](const Run* run) { return run->gpus == runs[0]->gpus; });
  if (!known(runs, &Run::samples))
    return one_size ? Judged(Scaling::one_size) : of_unknown_total(runs);
  const Run* odd_samples =
      share_a_goal(runs) ? nullptr : odd_one(runs, &Run::samples, samples_tolerance(runs));
  const bool per_replica_fixed = fixed(runs, &Run::batch_per_replica);
  if (odd_samples) {
    if (!one_size && per_replica_fixed && fixed(runs, &Run::steps) &&
        samples_per_replica_fixed(runs)) {
      return Scaling::weak;
    }
    return {runs[0], odd_samples, kNoTotal};
  }
  if (one_size) return Scaling::one_size;
  if (!known(runs, &Run::batch_per_replica)) return Scaling::unknown;
  if (fixed(runs, &Run::global_batch)) return Scaling::strong;
  if (per_replica_fixed) return share_a_goal(runs) ? Scaling::to_goal : Scaling::fixed_epochs;
  return {runs[0], odd_one(runs, &Run::batch_per_replica), kNoBatch};
}

}  // namespace

std::string_view name_of(Scaling scaling) {
  switch (scaling) {
    case Scaling::strong:
      return "strong";
    case Scaling::fixed_epochs:
      return "fixed-epochs";
    case Scaling::to_goal:
      return "time-to-goal";
    case Scaling::weak:
      return "weak";
    case Scaling::one_size:
      return "one size";
    case Scaling::unknown:
      return "unknown";
  }
  return "?";
}

std::string_view explanation_of(Scaling scaling) {
  switch (scaling) {
    case Scaling::strong:
      return "total samples and global batch are fixed";
    case Scaling::fixed_epochs:
      return "total samples and batch per replica are fixed, so the global batch grows";
    case Scaling::to_goal:
      return "runs end with their goal and batch per replica is fixed, so the global batch grows, "
             "and "
             "how many samples the goal takes is part of the result";
    case Scaling::weak:
      return "batch per replica is fixed and the work grows with the replicas";
    case Scaling::one_size:
      return "every run has the same number of replicas: there is no scaling to see";
    case Scaling::unknown:
      return "what the runs hold fixed is not stated, so it cannot be derived";
  }
  return "";
}

bool compares_rates(Scaling scaling) {
  return scaling == Scaling::weak || scaling == Scaling::unknown;
}

Scaling scaling_of(const Runs& runs) {
  const Judged judged = judge(runs);
  if (!judged.type) refuse(judged);
  return *judged.type;
}

std::optional<Scaling> scaling_if_any(const Runs& runs) {
  return judge(runs).type;
}

}  // namespace paceline
