#include "analysis/why/why.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <numbers>

#include "analysis/statistics/anytime.h"
#include "engine/core/error.h"
#include "engine/core/json.h"
#include "engine/core/text.h"
#include "results/step_samples.h"

namespace paceline {

namespace {

// More rounds are not made only to tell apart which of two causes is larger.
constexpr std::size_t kRoundsForOrder = 8;
// Times the degrees of freedom of runs: turns of one run are as far apart as those of several
// (results/comparisons/why.md), but of a program that was not measured they may be closer.
constexpr double kWeightOfTurns = 3;

struct CauseRule {
  const char *key, *name, *how;
  std::vector<std::string> programs;  // beside the one as it is
  // Of the cost of each of these. Empty: a cost was taken away, and what it made is gone.
  std::function<double(const MeasuredRun* const* runs, const double* costs, double whole)> points =
      {};
};

// Of ranks that do not wait, where none is late: the others, or rank 0, which one alone is.
double usual_share(const MeasuredRun& run) {
  return std::max(run.others_seconds, run.first_seconds) / run.seconds;
}

// The rest of a run's cost is of steps.
double cost_of_epochs(const MeasuredRun& run, double cost) {
  return cost * run.epoch_seconds / run.seconds;
}

const std::vector<CauseRule>& rules() {
  using Runs = const MeasuredRun* const*;
  static const std::vector<CauseRule> all = {
      {"data", "waiting for data", "recorded batches again, the loader idle", {kNoWait}},
      {"sums", "sums of gradients", "no sums, learning rate 0", {kNoSums}},
      {"late",
       "the latest rank",
       "ranks that do not wait, against the slowest of each step",
       {kNoSums},
       [](Runs runs, const double* costs, double) {
         return costs[0] * (1 - usual_share(*runs[0]));
       }},
      {"shared_node",
       "sharing the node",
       "ranks that do not wait, against one alone",
       {kNoSums, kAlone},
       [](Runs runs, const double* costs, double) {
         const double epochs =
             cost_of_epochs(*runs[0], costs[0]) - cost_of_epochs(*runs[1], costs[1]);
         return costs[0] * usual_share(*runs[0]) - costs[1] - epochs;
       }},
      {"epochs",
       "what comes once an epoch",
       "steps in which a loader starts, which one alone has fewer of",
       {kNoSums, kAlone},
       [](Runs runs, const double* costs, double) {
         return cost_of_epochs(*runs[0], costs[0]) - cost_of_epochs(*runs[1], costs[1]);
       }},
      {"small_batch", "the smaller batch of a replica", "the batch of one alone", {kKeptBatch}},
      {"batch_work",
       "computing in smaller batches",
       "one alone with that batch",
       {kAloneBatch, kAlone},
       [](Runs, const double* costs, double) { return costs[0] - costs[1]; }},
      {"rank_0",
       "what only rank 0 does",
       "rank 0 against ranks that do not wait, torch.save apart",
       {kNoSums},
       [](Runs runs, const double* costs, double) {
         return costs[0] * runs[0]->rank_0_seconds / runs[0]->seconds;
       }},
      {"calls", "its own sums and barriers", "without them", {kNoOwn}},
      {"saves", "saving", "torch.save does nothing", {kNoSaves}},
      {"syncs", "the host's waits for the GPU", "values read before, no waits", {kNoSyncs}},
      {"threads",
       "threads and their CPUs",
       "each rank bound to its CPUs, a thread on each",
       {kThreads}},
  };
  return all;
}

// The points of each round that has all of its runs.
std::map<std::size_t, double> points_of_rounds(const CauseRule& rule,
                                               const std::vector<WhyRound>& rounds,
                                               bool by_samples) {
  std::map<std::size_t, double> points;
  for (std::size_t i = 0; i < rounds.size(); ++i) {
    const WhyRound& round = rounds[i];
    const auto whole = round.find(kAsItIs);
    std::vector<const MeasuredRun*> runs;
    std::vector<double> costs;
    for (const std::string& program : rule.programs) {
      if (const auto run = round.find(program); run != round.end()) {
        runs.push_back(&run->second);
        costs.push_back(run->second.cost(by_samples));
      }
    }
    if (whole == round.end() || runs.size() < rule.programs.size()) continue;
    const double of = whole->second.cost(by_samples);
    const double gone =
        rule.points ? rule.points(runs.data(), costs.data(), of) : of - costs.front();
    points[i] = 100 * gone / of;
  }
  return points;
}

// How the costs of programs vary from round to round, beside those of the program as it is:
// logarithms of their ratios, by program. One machine disturbs them all, so that each says of the
// others how far few rounds may be off.
class RoundNoise {
 public:
  RoundNoise(const std::vector<WhyRound>& rounds, bool by_samples) {
    for (const WhyRound& round : rounds) {
      const auto whole = round.find(kAsItIs);
      if (whole == round.end()) continue;
      for (const auto& [program, run] : round) {
        if (program == kAsItIs) continue;
        if (!run.program.empty()) in_turns_.insert(program);
        ratios_[program].push_back(std::log(run.cost(by_samples) / whole->second.cost(by_samples)));
      }
    }
  }

  // By all programs but these, and but those that took turns in one process, which processes and
  // times disturb less.
  VarianceOfOthers of_others(const std::vector<std::string>& programs) const {
    std::vector<double> variances;
    double degrees = 0;
    for (const auto& [name, logs] : ratios_) {
      const Difference mean = paired_difference(logs, Stopping::by_results);
      const double own = mean.degrees_of_freedom;
      if (std::ranges::count(programs, name) > 0 || own <= 0 || in_turns_.contains(name)) continue;
      // The median of a variance with few degrees of freedom is below it (Wilson and Hilferty).
      const double below = std::pow(1 - 2 / (9 * own), 3);
      variances.push_back((own + 1) * mean.standard_error * mean.standard_error / below);
      degrees += own;
    }
    if (variances.empty()) return {};
    // A median, as one of them may be noisy by itself: 2 / pi as much worth as a mean. They share
    // the program as it is, so that squares of two of them correlate by a quarter.
    const double shared = 1 + (static_cast<double>(variances.size()) - 1) / 4;
    return {median(variances), 2 / std::numbers::pi * degrees / shared};
  }

  // The cost of the program over that of the program as it is, about; 1 where it has no run.
  double share(const std::string& program) const {
    const auto found = ratios_.find(program);
    return found == ratios_.end() ? 1 : std::exp(average(found->second));
  }

  // The mean of its logarithm, by its own rounds alone.
  Difference ratio(const std::string& program) const {
    return paired_difference(ratios_.at(program), Stopping::by_results);
  }

 private:
  std::map<std::string, std::vector<double>> ratios_;
  std::set<std::string> in_turns_;
};

// Of a round's points, by how far apart those of turns of the same runs are.
VarianceOfOthers variance_of_turns(const CauseRule& rule, const std::vector<WhyRound>& rounds,
                                   bool by_samples) {
  VarianceOfOthers all;
  for (const WhyRound& round : rounds) {
    std::vector<WhyRound> parts;
    for (const auto& [program, run] : round) {
      parts.resize(std::max(parts.size(), run.parts.size()));
      for (std::size_t i = 0; i < run.parts.size(); ++i) parts[i][program] = run.parts[i];
    }
    const auto points = points_of_rounds(rule, parts, by_samples);
    if (points.size() < 2) continue;
    const auto values = mapped(points, [](const auto& point) { return point.second; });
    const Difference mean = paired_difference(values);
    all.variance += mean.degrees_of_freedom * mean.standard_error * mean.standard_error;
    all.degrees += mean.degrees_of_freedom;
  }
  if (all.degrees > 0) all.variance /= all.degrees;
  all.most = kWeightOfTurns;
  return all;
}

Cause make_cause(const CauseRule& rule, const std::vector<WhyRound>& rounds, bool by_samples,
                 const RoundNoise& noise, double confidence) {
  Cause cause{rule.key, rule.name, rule.how, points_of_rounds(rule, rounds, by_samples)};
  const auto values = mapped(cause.points, [](const auto& point) { return point.second; });
  Difference mean = paired_difference(values, Stopping::by_results);
  // Of 100 (1 - b) or 100 (a - b), with shares a and b of the cost of the program as it is, which
  // varies in both; within a run, of less than 100 (b - b). The others' variance is that of two
  // costs.
  const double a = rule.points ? noise.share(rule.programs.front()) : 0,
               b = noise.share(rule.programs.back());
  // What comes once an epoch is known of a run only.
  if (cause.key != "epochs") cause.noise = variance_of_turns(rule, rounds, by_samples);
  const bool took_turns = cause.noise.degrees > 0;
  if (!took_turns) {
    cause.noise = noise.of_others(rule.programs);
    cause.noise.variance *= 1e4 * (a * a + b * b + (a - b) * (a - b)) / 2;
  }
  const bool is_within_a_run = rule.points && rule.programs.size() == 1;
  if (took_turns || !is_within_a_run || values.size() < kFewestSequentialRuns) {
    mean = moderated(mean, cause.noise);
  }
  cause.value = mean.mean;
  if (cause.points.size() >= kFewestRounds) cause.interval = mean.interval(confidence);
  if (cause.interval && cause.interval->low > 0 && cause.value >= kNamed) {
    cause.state = CauseState::found;
  }
  if (cause.interval && cause.interval->high < kLarge && cause.state != CauseState::found) {
    cause.state = CauseState::small;
  }
  return cause;
}

bool is_larger(const Cause& left, const Cause& right, double confidence) {
  std::vector<double> differences;
  for (const auto& [round, value] : left.points) {
    if (const auto other = right.points.find(round); other != right.points.end()) {
      differences.push_back(value - other->second);
    }
  }
  if (differences.empty()) return false;
  const VarianceOfOthers noise = {left.noise.variance + right.noise.variance,
                                  std::min(left.noise.degrees, right.noise.degrees),
                                  std::min(left.noise.most, right.noise.most)};
  const auto interval =
      moderated(paired_difference(differences, Stopping::by_results), noise).interval(confidence);
  return interval && interval->low > 0;
}

// Ranks do not gain by sharing a node: where the others are faster than one alone, they have less
// work than their share, as of data that are divided by length. Then the latest, and one alone, are
// compared with what an even division would give each rank: their mean.
void compare_uneven_work(std::vector<Cause>& causes, const std::vector<CauseRule>& measured,
                         double replicas, const std::function<Cause(const CauseRule&)>& make) {
  const auto late = std::ranges::find(causes, "late", &Cause::key),
             shared = std::ranges::find(causes, "shared_node", &Cause::key);
  if (late == causes.end() || shared == causes.end() || late->value < kNamed ||
      shared->value > -kNamed) {
    return;
  }
  const auto again = [&](Cause& cause, const char* how, double share) {
    CauseRule rule = *std::ranges::find(measured, cause.key, &CauseRule::key);
    rule.how = how;
    rule.points = [share, of_latest = rule.points](const MeasuredRun* const* runs,
                                                   const double* costs, double whole) {
      return of_latest(runs, costs, whole) + share * costs[0] * (1 - usual_share(*runs[0]));
    };
    cause = make(rule);
  };
  again(*late, "ranks that do not wait, the slowest against their mean", -1 / replicas);
  again(*shared, "the mean of ranks that do not wait, against one alone", 1 / replicas);
}

bool comes_with_replicas(const Cause& cause) {
  return cause.key == "sums" || cause.key == "shared_node";
}

// Of the program's own, and so large that it is named before what comes with replicas: that can be
// changed. Some waiting for data every program has, and one replica as much; and ranks that do the
// same are never quite as fast.
bool goes_first(const Cause& cause, const Cause& largest) {
  const double share = cause.key == "data" ? 1 : cause.key == "late" ? 0.5 : 0;
  return !comes_with_replicas(cause) && cause.value >= std::max(kLarge, share * largest.value);
}

void find_first(WhyVerdict& verdict, double confidence) {
  std::vector<Cause>& causes = verdict.causes;
  const auto largest = std::ranges::find_if(causes, [](const Cause& each) {
    return each.state == CauseState::found && each.value >= kLarge;
  });
  if (largest == causes.end()) return;
  const auto own = std::ranges::find_if(causes, [&](const Cause& each) {
    return each.state == CauseState::found && goes_first(each, *largest);
  });
  const auto first = own == causes.end() ? largest : own;
  verdict.first = static_cast<std::size_t>(first - causes.begin());
  for (auto other = causes.begin(); other != causes.end(); ++other) {
    if (other == first || other->state == CauseState::small) continue;
    const bool is_open = other->state == CauseState::open;
    if (is_open && comes_with_replicas(*first) && goes_first(*other, *largest)) {
      verdict.may_go_before.push_back(other->name);
      continue;
    }
    if (first != largest && comes_with_replicas(*other)) {
      if (!is_open) verdict.with_replicas.push_back(*other);
    } else if (!is_larger(*first, *other, confidence)) {
      verdict.rivals.push_back(other->name);
    }
  }
}

// With the noise that was seen: after how many rounds a cause is found or small.
std::size_t count_rounds_needed(const Cause& cause, double confidence) {
  const auto values = mapped(cause.points, [](const auto& point) { return point.second; });
  const Difference mean = paired_difference(values, Stopping::by_results);
  const double own = mean.standard_error * std::sqrt(static_cast<double>(values.size()));
  const double deviation = std::max(own, std::sqrt(cause.noise.variance));
  const double margin = cause.value >= kLarge ? cause.value : kLarge - cause.value;
  std::size_t rounds = kFewestRounds;
  while (rounds < kMostCompared) {
    const auto n = static_cast<double>(rounds);
    const double degrees = (cause.noise.degrees > 0 ? 1 + cause.noise.most : 1) * (n - 1);
    const double width = anytime_quantile(rounds, confidence, degrees) * deviation;
    if (width < margin * std::sqrt(n)) break;
    ++rounds;
  }
  return rounds;
}

void find_rounds_needed(WhyVerdict& verdict, double confidence) {
  if (verdict.causes.empty() || verdict.rounds < 2) return;
  const Cause& largest = verdict.causes.front();
  std::size_t needed = 0;
  for (const Cause& cause : verdict.causes) {
    const bool decides = largest.value >= kLarge
                             ? &cause == &largest
                             : !cause.interval || cause.interval->high >= kLarge;
    if (decides) needed = std::max(needed, count_rounds_needed(cause, confidence));
  }
  if (needed < kMostCompared) verdict.rounds_needed = std::max(needed, verdict.rounds + 1);
}

// Rounds of tries have no runs of the others.
bool is_of_causes(const WhyRound& round, const std::map<std::string, std::string>& tried) {
  return std::ranges::any_of(
      round, [&](const auto& run) { return run.first != kAsItIs && !tried.contains(run.first); });
}

// 1 % of the time.
bool have_epochs(const std::vector<WhyRound>& rounds) {
  return std::ranges::any_of(rounds, [](const WhyRound& round) {
    const auto whole = round.find(kAsItIs);
    return whole != round.end() && whole->second.epoch_seconds > 0.01 * whole->second.seconds;
  });
}

}  // namespace

bool MeasuredRun::falls_below(const MeasuredRun& alone) const {
  const auto falls = [](double among, double one) { return among > 0 && among < kFalls * one; };
  return falls(batch_per_replica(), alone.batch_per_replica()) &&
         falls(samples / (ranks * steps), alone.samples / (alone.ranks * alone.steps));
}

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(MeasuredRun, ranks, steps, steps_in_all, samples, elements,
                                   batch, own_calls, seconds, others_seconds, first_seconds,
                                   rank_0_seconds, epoch_seconds, slowest_rank, wait, own_seconds,
                                   save_seconds, sync_seconds, overhead, saves, batches, ratio,
                                   workers, threads, all_cpus, bucket_mb, changes_batches,
                                   why_no_sums, staying, goes_on, finds_unused, program)

namespace {

MeasuredRun parse_measured_run(const Json& json) {
  MeasuredRun run;
  nlohmann::json(json).get_to(run);
  run.local_ranks = json.at("local_world");
  run.is_on_gpu = json.at("on_gpu");
  run.has_foreign_hook = !json.at("comm_hook").get<std::string>().empty();
  run.has_sync_norm = json.at("sync_batch_norm");
  run.lengths = json_text(json.at("lengths"));
  for (const auto& [key, runs] : {std::pair("turns", &run.turns), {"parts", &run.parts}}) {
    for (const Json& each : json.value(key, Json::array())) {
      runs->push_back(parse_measured_run(each));
    }
  }
  return run;
}

}  // namespace

MeasuredRun read_measured_run(const std::filesystem::path& file) try {
  return parse_measured_run(parse_json(read_text(file)));
} catch (const Json::exception&) {
  throw input_error("not what the hook writes", file.string(), "make the runs again");
}

WhyVerdict judge_why(const WhyEvidence& evidence) {
  WhyVerdict verdict;
  std::size_t rounds_alone = 0;
  for (const WhyRound& round : evidence.rounds) {
    for (const auto& [name, run] : round) verdict.by_samples &= run.samples > 0;
  }
  for (const WhyRound& round : evidence.rounds) {
    const auto whole = round.find(kAsItIs), alone = round.find(kAlone);
    if (whole == round.end()) continue;
    verdict.rounds += is_of_causes(round, evidence.tried) ? 1 : 0;
    verdict.replicas = whole->second.ranks;
    verdict.overhead = std::max(verdict.overhead, whole->second.overhead / whole->second.seconds);
    if (const auto free = round.find(kNoSums); free != round.end()) {
      verdict.saves += whole->second.saves;  // on the best model, which needs progress
      verdict.saves_without_sums += free->second.saves;
      const int slowest = free->second.slowest_rank;
      verdict.late_rank = verdict.late_rank.value_or(slowest) == slowest ? slowest : -1;
    }
    if (alone == round.end()) continue;
    if (verdict.by_samples && whole->second.falls_below(alone->second)) {
      verdict.batch = whole->second.batch_per_replica();
      verdict.batch_alone = alone->second.batch_per_replica();
    }
    ++rounds_alone;
  }
  if (verdict.late_rank && *verdict.late_rank < 0) verdict.late_rank.reset();
  const RoundNoise noise(evidence.rounds, verdict.by_samples);
  if (rounds_alone > 0) {
    const CauseRule alone{"alone", "", "", {kAlone}};
    VarianceOfOthers turns = variance_of_turns(alone, evidence.rounds, verdict.by_samples);
    turns.variance /= std::pow(100 * noise.share(kAlone), 2);
    verdict.efficiency = as_factor(moderated(noise.ratio(kAlone), turns));
    const auto fewest = turns.degrees > 0 ? kFewestRounds : kFewestSequentialRuns;
    if (rounds_alone < fewest) verdict.efficiency->interval.reset();
    // Costs of a step are of all replicas' steps, which do the work of as many of one.
    verdict.speed_up =
        transformed(*verdict.efficiency, [&](double each) { return each * verdict.replicas; });
  }
  std::vector<CauseRule> measured;
  for (CauseRule rule : rules()) {
    const std::string_view key = rule.key;
    if (key == "epochs" && !have_epochs(evidence.rounds)) continue;
    const bool is_of_samples = key == "small_batch" || key == "batch_work";
    if (is_of_samples && !verdict.by_samples) continue;
    // With the batch that a replica has among the others.
    if (rule.programs.size() == 2 && rule.programs.front() == kNoSums &&
        evidence.has(kAloneBatch)) {
      rule.programs.back() = kAloneBatch;
    }
    const auto points = points_of_rounds(rule, evidence.rounds, verdict.by_samples);
    if (!points.empty()) measured.push_back(std::move(rule));
  }
  const double confidence =
      1 - (1 - kConfidence) / static_cast<double>(std::max<std::size_t>(measured.size(), 1));
  const auto make = [&](const CauseRule& rule) {
    return make_cause(rule, evidence.rounds, verdict.by_samples, noise, confidence);
  };
  std::ranges::transform(measured, std::back_inserter(verdict.causes), make);
  compare_uneven_work(verdict.causes, measured, verdict.replicas, make);
  std::ranges::stable_sort(verdict.causes, std::greater{}, &Cause::value);
  verdict.none_is_large =
      !verdict.causes.empty() && std::ranges::all_of(verdict.causes, [](const Cause& each) {
        return each.interval && each.interval->high < kLarge;
      });
  find_first(verdict, confidence);
  for (const auto& [program, text] : evidence.tried) {
    const CauseRule rule{program.c_str(), text.c_str(), "the same program with it", {program}};
    if (points_of_rounds(rule, evidence.rounds, verdict.by_samples).empty()) continue;
    verdict.tries.push_back(make_cause(rule, evidence.rounds, verdict.by_samples, noise,
                                       program == kKeptBatch ? confidence : kConfidence));
  }
  const bool is_ordered = (verdict.rivals.empty() && verdict.may_go_before.empty()) ||
                          verdict.rounds >= kRoundsForOrder;
  verdict.is_over = verdict.first ? is_ordered : verdict.none_is_large;
  verdict.is_decided = verdict.is_over && (verdict.first || evidence.missing.empty());
  if (!verdict.is_over && !verdict.first) find_rounds_needed(verdict, confidence);
  return verdict;
}

}  // namespace paceline
