#include "analysis/study/scaling.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/core/error.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

using Runs = std::vector<const Run*>;

bool known(const Runs& runs, const RunFact& fact) {
  return std::ranges::all_of(runs, [&](const Run* run) { return fact(*run).has_value(); });
}

// False if a run's value differs from the first run's by more than `tolerance`.
bool are_alike(const Runs& runs, const RunFact& fact, double tolerance = 1e-6) {
  const double first = *fact(*runs[0]);
  return std::ranges::all_of(
      runs, [&](const Run* run) { return std::abs(*fact(*run) - first) <= tolerance; });
}

bool fixed(const Runs& runs, const RunFact& fact) {
  return known(runs, fact) && are_alike(runs, fact);
}

// A run with the value that most runs have (of equally many the first's), and one with another.
struct Oddity {
  const Run *usual = nullptr, *odd = nullptr;
  std::size_t runs = 0;  // that have another
};

Oddity find_odd(const Runs& runs, const RunFact& fact, double tolerance = 1e-6) {
  std::vector<std::pair<double, const Run*>> values;
  for (const Run* run : runs) values.emplace_back(*fact(*run), run);
  std::ranges::stable_sort(values, {}, &std::pair<double, const Run*>::first);
  std::size_t usual = 0, most = 0;
  for (std::size_t begin = 0, end = 0; begin < values.size(); begin = end) {
    while (end < values.size() && values[end].first <= values[begin].first + tolerance) ++end;
    const double first = *fact(*runs[0]);
    const bool is_of_first = first >= values[begin].first && first <= values[end - 1].first;
    if (end - begin < most || (end - begin == most && !is_of_first)) continue;
    usual = begin;
    most = end - begin;
  }
  const double value = values[usual].first;
  Oddity result{nullptr, nullptr, runs.size() - most};
  for (const Run* run : runs) {
    const double here = *fact(*run);
    const bool is_usual = here >= value && here <= value + tolerance;
    const Run*& one = is_usual ? result.usual : result.odd;
    if (!one) one = run;
  }
  return result;
}

double samples_tolerance(const Runs& runs) {
  double tolerance = 0;
  for (const Run* run : runs) {
    const double epochs = run->record->parameters.real("epochs").value_or(1);
    const auto tokens = static_cast<double>((*run)->plan.tokens_per_sample.value_or(1));
    tolerance = std::max(tolerance, run->global_batch.value_or(0) * tokens * epochs);
  }
  return tolerance;
}

// Each replica did the same work: what weak scaling means.
bool samples_per_replica_fixed(const Runs& runs) {
  const double first = *runs[0]->samples() / runs[0]->record->layout.gpus;
  const double tolerance = samples_tolerance(runs);
  return std::ranges::all_of(runs, [&](const Run* run) {
    return std::abs(*run->samples() / run->record->layout.gpus - first) <=
           tolerance / run->record->layout.gpus;
  });
}

std::string described(const Run& run) {
  std::string text = counted(run->layout.gpus, "replica");
  const auto add = [&](const char* what, std::optional<double> value) {
    if (value) text += fmt::format(", {} {:.0f}", what, *value);
  };
  add("samples", run.samples());
  add("steps", run.steps());
  add("batch per replica", run.batch_per_replica);
  return text;
}

// A type, or two runs that have none together, and why.
struct Derivation {
  std::optional<Scaling> type;
  const Run *a = nullptr, *b = nullptr;
  const char* why = "";

  Derivation(Scaling scaling) : type(scaling) {}
  Derivation(const Run* first, const Run* odd, const char* what) : a(first), b(odd), why(what) {}
};

[[noreturn]] void refuse(const Derivation& found) {
  const Run &a = *found.a, &b = *found.b;
  std::string fix = "report them apart, or choose with --only";
  if (!a.batch_per_replica) {
    constexpr char kCure[] = "in a spec under \"fixed\", on import by --set";
    fix = fmt::format("if each replica does the same work, state batch_per_replica ({}); else {}",
                      kCure, fix);
  } else if (a.batch_per_replica != b.batch_per_replica) {
    fix += fmt::format(" batch_per_replica={:g}", *a.batch_per_replica);
  }
  throw usage_error(fmt::format("records of different studies are mixed: {} ({}; {})", found.why,
                                described(a), described(b)),
                    a.where + " and " + b.where, fix);
}

constexpr char kNoBatch[] = "neither the batch per replica nor the global batch is the same";
constexpr char kNoTotal[] = "neither the total of samples nor steps and batch are the same";
constexpr char kOddBatch[] =
    "neither the total of samples nor the batch per replica is the same in all runs";
constexpr char kOddSteps[] =
    "neither the total of samples nor the number of steps is the same in all runs";

// What scales strongly but for some totals, or weakly but for some batches or steps, whichever
// fewer runs break.
Derivation refuse_totals(const Runs& runs, double tolerance) {
  Oddity fewest = find_odd(runs, &Run::samples, tolerance);
  const char* why = kNoTotal;
  const bool is_weak_but = known(runs, &Run::batch_per_replica) && known(runs, &Run::steps);
  if (is_weak_but) {
    const Oddity batch = find_odd(runs, &Run::batch_per_replica),
                 steps = find_odd(runs, &Run::steps);
    const bool by_batch = batch.runs >= steps.runs;
    const Oddity& worse = by_batch ? batch : steps;
    if (worse.odd && worse.runs < fewest.runs) {
      fewest = worse;
      why = by_batch ? kOddBatch : kOddSteps;
    }
  }
  return {fewest.usual, fewest.odd, why};
}

// Of runs that give times and rates but no total. Pages round both.
Scaling of_fixed_batch(const Runs& runs) {
  if (!known(runs, &Run::samples_per_second) || !known(runs, &Run::fit_seconds)) {
    return Scaling::weak;
  }
  constexpr double kRounded = 0.05;
  const auto total = [](const Run& run) { return *run.samples_per_second * *run.fit_seconds(); };
  const auto stays = [&](auto quantity) {
    const double first = quantity(*runs[0]);
    return std::ranges::all_of(
        runs, [&](const Run* run) { return std::abs(quantity(*run) / first - 1) <= kRounded; });
  };
  if (stays(total)) return Scaling::fixed_epochs;
  return stays([&](const Run& run) { return total(run) / run->layout.gpus; }) ? Scaling::weak
                                                                              : Scaling::unknown;
}

Derivation refuse_batches(const Runs& runs) {
  const Oddity batch = find_odd(runs, &Run::batch_per_replica);
  return {batch.usual, batch.odd, kNoBatch};
}

// A run whose work its parameters do not make the first one's; null: there is none.
const Run* find_other_work(const Runs& runs) {
  const auto differs = [&](const Run* run) {
    return std::ranges::any_of(parameters(), [&](const Parameter& parameter) {
      return parameter.role == Role::work && run->record->parameters.text(parameter.name) !=
                                                 (*runs[0])->parameters.text(parameter.name);
    });
  };
  const auto other = std::ranges::find_if(runs, differs);
  return other == runs.end() ? nullptr : *other;
}

// What a study states of its runs' work, or takes for granted of times alone.
std::optional<Derivation> of_stated_work(const Runs& runs) {
  const std::string work = stated_work(*runs[0]);
  const bool is_of_all =
      std::ranges::all_of(runs, [&](const Run* run) { return stated_work(*run) == work; });
  const bool has_times = known(runs, &Run::fit_seconds),
             has_rates = known(runs, &Run::samples_per_second);
  const bool grows = is_of_all && work == "grows", is_fixed = is_of_all && work == "fixed";
  if (grows && has_rates) return Scaling::weak;
  if (!has_times || (has_rates && !is_fixed)) return std::nullopt;
  const Run* other = fixed(runs, &Run::global_batch) ? nullptr : find_other_work(runs);
  if (other) return Derivation(runs[0], other, "they state only times, and other work");
  return grows ? Scaling::weak : Scaling::same_work;
}

Derivation of_unknown_total(const Runs& runs) {
  if (const auto stated = of_stated_work(runs)) return *stated;
  if (!known(runs, &Run::batch_per_replica)) return Scaling::unknown;
  if (are_alike(runs, &Run::batch_per_replica)) return of_fixed_batch(runs);
  if (fixed(runs, &Run::global_batch)) return Scaling::strong;
  return refuse_batches(runs);
}

// Runs that end when the same goal is reached: how many samples that takes is a result.
bool share_a_goal(const Runs& runs) {
  return !runs[0]->goal.empty() &&
         std::ranges::all_of(runs, [&](const Run* run) { return run->goal == runs[0]->goal; });
}

Derivation judge(const Runs& runs) {
  const bool one_size = std::ranges::all_of(runs, [&](const Run* run) {
    return run->record->layout.gpus == runs[0]->record->layout.gpus;
  });
  if (!known(runs, &Run::samples))
    return one_size ? Derivation(Scaling::one_size) : of_unknown_total(runs);
  const double tolerance = samples_tolerance(runs);
  const bool per_replica_fixed = fixed(runs, &Run::batch_per_replica);
  // Totals of a few steps may be alike within the tolerance, which is a step's samples.
  const bool is_weak = !one_size && per_replica_fixed && fixed(runs, &Run::steps) &&
                       !are_alike(runs, &Run::samples) && samples_per_replica_fixed(runs);
  if (!share_a_goal(runs)) {
    if (is_weak) return Scaling::weak;
    if (!are_alike(runs, &Run::samples, tolerance)) return refuse_totals(runs, tolerance);
  }
  if (one_size) return Scaling::one_size;
  if (!known(runs, &Run::batch_per_replica)) return Scaling::unknown;
  if (fixed(runs, &Run::global_batch)) return Scaling::strong;
  if (per_replica_fixed) return share_a_goal(runs) ? Scaling::to_goal : Scaling::fixed_epochs;
  return refuse_batches(runs);
}

}  // namespace

constexpr EnumName<Scaling> kScalingNames[] = {
    {Scaling::strong, "strong"},        {Scaling::fixed_epochs, "fixed-epochs"},
    {Scaling::to_goal, "time-to-goal"}, {Scaling::weak, "weak"},
    {Scaling::one_size, "one size"},    {Scaling::same_work, "same-work"},
    {Scaling::unknown, "unknown"}};

std::string_view to_string(Scaling scaling) {
  return name_in(kScalingNames, scaling);
}

std::string_view describe_scaling(Scaling scaling, const Run& run) {
  const std::string work = stated_work(run);
  switch (scaling) {
    case Scaling::strong:
      return "total samples and global batch are fixed";
    case Scaling::fixed_epochs:
      return "total samples and batch per replica are fixed, so the global batch grows";
    case Scaling::to_goal:
      return "runs end at their goal and batch per replica is fixed, so the global batch grows; "
             "the samples that the goal takes are part of the result";
    case Scaling::weak:
      if (work == "grows" && !run.samples()) {
        return "each replica does the same work, as the study states";
      }
      return "batch per replica is fixed and the work grows with the replicas";
    case Scaling::one_size:
      return "every run has the same number of replicas: there is no scaling to see";
    case Scaling::same_work:
      if (!work.empty()) return "every run does the same work, as the study states";
      return "the runs state only times; the same work is assumed at every size";
    case Scaling::unknown:
      return "state batch_per_replica or work (in a spec under \"fixed\", on import by --set), as "
             "the records do not say what the runs hold fixed";
  }
  return "";
}

std::string stated_work(const Run& run) {
  return run->parameters.text("work").value_or("");
}

bool compares_rates(Scaling scaling) {
  return scaling == Scaling::weak || scaling == Scaling::unknown;
}

Scaling classify_scaling(const Runs& runs) {
  const Derivation derived = judge(runs);
  if (!derived.type) refuse(derived);
  return *derived.type;
}

std::optional<Scaling> scaling_if_any(const Runs& runs) {
  return judge(runs).type;
}

double karp_flatt(double speed_up, double replicas) {
  const double share = (1 / speed_up - 1 / replicas) / (1 - 1 / replicas);
  return std::abs(share) < kRounding ? 0 : share;
}

Estimate karp_flatt(const Estimate& speed_up, double replicas) {
  return transformed(speed_up, [&](double value) { return karp_flatt(value, replicas); });
}

int fraction_digits(double fraction) {
  constexpr double kSmall = 1e-3;
  const double size = std::abs(fraction);
  return size < kSmall && size >= kRounding ? decimals_for(size, 3) : 3;
}

int fraction_digits(const Estimate& fraction) {
  const int digits = fraction_digits(fraction.value);
  if (!fraction.interval) return digits;
  const double side =
      std::max(fraction.interval->high - fraction.value, fraction.value - fraction.interval->low);
  if (side < kRounding) return digits;
  return std::clamp(decimals_for(side, 2), 2, std::max(2, digits));
}

}  // namespace paceline
