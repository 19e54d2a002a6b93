#include "run/why/variants.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "engine/core/json.h"
#include "engine/core/text.h"
#include "engine/facts/timing.h"
#include "sweeps/program.h"

namespace paceline {

namespace {

// A cost below this share of the time is not taken away to see what it makes.
constexpr double kSeen = 0.01;
constexpr double kDefaultBucketMb = 25;  // PyTorch's
constexpr int kFewestWarmSteps = 5;
// A turn's steps and seconds; all turns' of a program; and a turn's first steps, which the one
// before changes: batches that workers have at hand then, ranks that were apart.
constexpr int kFewestOfTurn = 6, kMostOfTurn = 60, kFewestSettling = 3;
constexpr double kTurnSeconds = 1, kTurnsSeconds = 2;
constexpr int kMostTurns = 20;                     // of a program
constexpr int kPrefetched = 2, kMostSettling = 8;  // batches of a worker, workers
constexpr double kAlike = 0.3;                     // of a cost that one short run measured
// Of the time: what comes once an epoch, which a run in turns sees a few times.
constexpr double kMostEpochs = 0.1;

// Whether a step of one replica alone is that of a replica among several, but for sums. What own
// collectives cost one alone, too, no turn would have.
bool does_as(const MeasuredRun& alone, const MeasuredRun& seen) {
  return alone.batch == seen.batch && alone.ratio == seen.ratio && alone.workers == seen.workers &&
         alone.threads == seen.threads && alone.why_no_sums == seen.why_no_sums &&
         alone.own_seconds <= kSeen * alone.seconds && is_as_large_as(alone, seen);
}

}  // namespace

std::vector<Variant> choose_variants(const MeasuredRun& seen,
                                     const std::optional<MeasuredRun>& alone, int cpus,
                                     std::vector<std::string>& notes) {
  std::vector<Variant> all = {{kAsItIs, "{}", seen.ranks}};
  const auto take = [&](const char* name, const char* what) {
    all.push_back({name, json_text({{"take", {what}}}), seen.ranks});
  };
  const auto add_try = [&](const char* name, const Json& change, const char* cause,
                           std::string text) {
    all.push_back({name, json_text(change), seen.ranks, cause, std::move(text)});
  };
  if (alone) {
    all.push_back({kAlone, "{}", 1});
    const bool is_known = seen.batch > 0 && alone->batch > 0;
    const bool falls = is_known && seen.falls_below(*alone);
    if (falls && seen.batches > 0 && seen.batch < kFalls * alone->batch) {
      const auto batch = std::lround(seen.batch);
      all.push_back({kAloneBatch, json_text({{"batch", batch}}), 1});
      const auto kept = std::lround(alone->batch);
      // Of no more samples, so that the program does not end before.
      const double steps =
          std::floor(seen.steps_in_all * static_cast<double>(batch) / static_cast<double>(kept));
      if (steps >= kWarmSteps + kFewestCounted) {
        all.push_back({kKeptBatch,
                       json_text({{"batch", kept}, {"steps", std::lround(steps)}}),
                       seen.ranks,
                       {},
                       fmt::format("batches of {} a replica instead of {}", kept, batch)});
      } else {
        notes.push_back(fmt::format(
            "Batches of {} a replica instead of {} were not tried: too few steps are left.", kept,
            batch));
      }
    } else if (falls) {
      notes.emplace_back(
          "What the smaller batch of a replica costs is not measured by itself; it is in the sums "
          "and in sharing the node.");
    }
  }
  if (seen.why_no_sums.empty()) {
    take(kNoSums, "sums");
  } else {
    notes.push_back(
        fmt::format("Sums of gradients cannot be taken away, as {}.", seen.why_no_sums));
  }
  if (seen.has_foreign_hook) {
    notes.emplace_back("The program's own communication hook is taken away with the sums.");
  }
  if (seen.has_sync_norm) {
    notes.emplace_back(
        "SyncBatchNorm sums within the forward pass, also without sums of gradients, so ranks wait "
        "for each other in every run.");
  }
  if (!seen.staying.empty()) {
    notes.push_back(
        fmt::format("Calls of {} stay in every run, so ranks wait for each other in them.",
                    join(seen.staying, ", ")));
  }
  if (seen.batches == 0) {
    notes.emplace_back(
        "No batch comes from torch's DataLoader, so waiting for data is not measured.");
  } else if (seen.wait > kSeen * seen.seconds || seen.workers > 0) {
    take(kNoWait, "data");
  }
  const bool has_own = seen.own_calls >= seen.steps;  // which may take no time at their start
  if (seen.own_seconds > kSeen * seen.seconds || has_own) take(kNoOwn, "own");
  if (seen.save_seconds > kSeen * seen.seconds) take(kNoSaves, "saves");
  if (seen.sync_seconds > kSeen * seen.seconds) take(kNoSyncs, "syncs");
  const int budget = cpus / seen.local_ranks;
  const bool is_narrow = seen.all_cpus < std::min(cpus, budget * seen.local_ranks);
  if (budget > 0 && !seen.is_on_gpu && (seen.threads != budget || is_narrow)) {
    take(kThreads, "threads");
  }
  if (seen.batches > 0) {
    const int workers = std::max(2, 2 * seen.workers);
    add_try(kWorkers, {{"workers", workers}}, "data",
            fmt::format("{} loader workers instead of {}", workers, seen.workers));
    if (seen.workers > 0) {
      add_try(kDropped, {{"take", {"data", "output"}}}, "data",
              "recorded batches, the loader working");
    }
  }
  if (seen.bucket_mb > 0 && seen.bucket_mb < kDefaultBucketMb) {
    add_try(kBuckets, {{"bucket_mb", kDefaultBucketMb}}, "sums",
            fmt::format("buckets of {:g} MiB instead of {:g}", kDefaultBucketMb, seen.bucket_mb));
  }
  return all;
}

std::vector<Variant> take_turns(const std::vector<Variant>& variants, const MeasuredRun& seen,
                                const std::optional<MeasuredRun>& alone) {
  const bool saves_each_step = seen.saves >= seen.steps, saves_some = seen.saves > 0,
             calls_each_step = seen.own_calls >= seen.steps;
  const bool has_long_epochs = seen.epoch_seconds > kMostEpochs * seen.seconds;
  const bool is_even = (saves_each_step || !saves_some) && !has_long_epochs &&
                       (calls_each_step || seen.own_seconds <= kSeen * seen.seconds);
  if (seen.is_on_gpu || !seen.goes_on || !is_even) return variants;
  // Python's hook, which such sums need, takes time for each bucket; and what was used without sums
  // is summed with the next.
  const bool is_sums = seen.why_no_sums.empty() && !seen.finds_unused &&
                       (seen.bucket_mb >= kDefaultBucketMb || seen.has_foreign_hook);
  const bool is_alone =
      is_sums && alone && !seen.has_sync_norm && seen.staying.empty() && does_as(*alone, seen);
  std::vector<Variant> kept;
  Json programs = Json::array({Json::array({kAsItIs, Json::array()})});
  int settle = kFewestSettling;
  for (const Variant& each : variants) {
    const bool is_data = each.name == kNoWait;
    const bool takes_turns = (each.name == kAlone && is_alone) ||
                             (each.name == kNoSums && is_sums) ||
                             (is_data && seen.workers <= kMostSettling) || each.name == kNoOwn ||
                             each.name == kNoSaves || each.name == kThreads;
    if (!takes_turns) {
      kept.push_back(each);
      continue;
    }
    if (is_data) settle += kPrefetched * seen.workers;
    Json taken = {"sums", "others"};
    if (each.name != kAlone) taken = parse_json(each.changes).at("take");
    programs.push_back(Json::array({each.name, taken}));
    if (each.name == kAlone) kept.push_back({kAloneOnce, each.changes, 1});
  }
  if (programs.size() == 1) return variants;
  const double step = seen.seconds / seen.steps;
  const int turn = std::clamp(static_cast<int>(kTurnSeconds / step), kFewestOfTurn, kMostOfTurn);
  const int rounds = std::clamp(static_cast<int>(std::ceil(kTurnsSeconds / (turn * step))),
                                kFewestTurns, kMostTurns);
  const Json turns = {{"programs", programs},
                      {"turn", turn + settle},
                      {"settle", settle},
                      {"rounds", rounds},
                      {"alone_epochs", alone ? alone->epoch_seconds / alone->steps : 0.0}};
  kept.front().changes = json_text({{"turns", turns}});
  return kept;
}

void shorten_warm_up(std::vector<Variant>& variants, Json& settings, const MeasuredRun& seen) {
  const bool are_needed = std::ranges::any_of(variants, [](const Variant& each) {
    return each.name == kNoWait || each.name == kDropped || each.name == kNoSyncs;
  });
  const auto of_a_second = static_cast<int>(std::ceil(seen.steps / seen.seconds));
  const int warm = std::clamp(of_a_second, kFewestWarmSteps, kWarmSteps);
  if (are_needed || warm == kWarmSteps) return;
  const auto shorten = [&](Json& each) {
    if (each.contains("steps")) each["steps"] = each.at("steps").get<int>() - kWarmSteps + warm;
  };
  settings["warm"] = warm;
  shorten(settings);
  for (Variant& each : variants) {
    Json changes = parse_json(each.changes);
    shorten(changes);
    each.changes = json_text(changes);
  }
}

bool is_as_large_as(const MeasuredRun& run, const MeasuredRun& seen) {
  const double there = seen.elements_of_sample();
  return std::abs(run.elements_of_sample() - there) <= kNamed / 100 * there;
}

bool took_turns(const MeasuredRun& run, std::size_t programs,
                const std::optional<MeasuredRun>& alone) {
  const auto is_short = [](const MeasuredRun& each) { return each.steps < kFewestCounted; };
  if (run.turns.size() + 1 < programs || is_short(run) ||
      std::ranges::any_of(run.turns, is_short)) {
    return false;
  }
  const auto turn = std::ranges::find(run.turns, kAlone, &MeasuredRun::program);
  if (turn == run.turns.end()) return true;
  const bool by_samples = turn->samples > 0 && alone->samples > 0;
  const double there = alone->cost(by_samples);
  return is_as_large_as(*turn, *alone) &&
         std::abs(turn->cost(by_samples) - there) <= kAlike * there;
}

std::string why_not_counted(MeasuredRun& run, const MeasuredRun& seen, const std::string& program,
                            const std::string& changes) {
  // Without DDP another module may have been counted: then steps are compared.
  if (run.why_no_sums != seen.why_no_sums && run.ratio != seen.ratio) run.samples = 0;
  const double asked = parse_json(changes).value("batch", run.batch);
  if (std::abs(run.batch - asked) > 0.1 * asked) return "its batch is not that of a DataLoader";
  if (run.steps < kFewestCounted) return "it ended too soon";
  const bool is_repeated = program == kNoWait || program == kDropped;
  if (!is_repeated || is_as_large_as(run, seen)) return "";
  return "recorded batches are larger or smaller than measured ones";
}

std::string describe_profile(const KinetoRun& trace) {
  std::vector<PhaseSeconds> ranks;
  for (const KinetoTrace& rank : trace.ranks) ranks.push_back(sum_phases(rank.times));
  const auto slowest = std::ranges::max_element(ranks, {}, &PhaseSeconds::step);
  const PhaseSeconds& of = *slowest;
  const auto share = [&](double seconds) { return 100 * seconds / of.step; };
  return fmt::format(
      "In {} rank {}, the slowest, took {} for one: {:.0f} % computing, {:.0f} % "
      "sums that computing does not hide, {:.0f} % in the loader, {:.0f} % other. The profiler "
      "slows them down; no cost is taken from them.",
      counted(static_cast<double>(trace.steps()), "profiled step"), slowest - ranks.begin(),
      format_seconds(of.step / static_cast<double>(trace.steps())),
      share(of.forward + of.backward + of.update), share(of.communication), share(of.input),
      share(of.other));
}

std::string escape_placeholders(const std::string& word) {
  std::string escaped;
  for (std::size_t at = 0; at < word.size(); ++at) {
    const std::size_t end = word.find('}', at);
    const std::string name =
        word[at] == '{' && end != std::string::npos ? word.substr(at, end + 1 - at) : "";
    if (placeholders_in(name).empty() || (at > 0 && word[at - 1] == '$')) {
      escaped += word[at];
      continue;
    }
    escaped += "{" + name + "}";
    at = end;
  }
  return escaped;
}

}  // namespace paceline
