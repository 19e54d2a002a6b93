#include "analysis/why/why.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>

#include "analysis/document/columns.h"
#include "analysis/why/round_noise.h"
#include "engine/core/error.h"
#include "engine/core/json.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

// Points: less than the one nobody looks at, and a cause of the other may be the first.
constexpr double kNamed = 3, kLarge = 10;
// More rounds are not made only to tell apart which of two causes is larger.
constexpr std::size_t kRoundsForOrder = 8;

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
       "ranks that do not wait, rank 0 against the others",
       {kNoSums},
       [](Runs runs, const double* costs, double) {
         const MeasuredRun& free = *runs[0];
         return costs[0] * (free.first_seconds - free.others_seconds) / free.seconds;
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

Cause make_cause(const CauseRule& rule, std::map<std::size_t, double> points,
                 const RoundNoise& noise, double confidence) {
  Cause cause{rule.key, rule.name, rule.how, std::move(points)};
  const auto values = mapped(cause.points, [](const auto& point) { return point.second; });
  Difference mean = paired_difference(values, Stopping::by_results);
  // Of what one run says, others say nothing.
  if (!rule.points || rule.programs.size() > 1) {
    VarianceOfOthers others = noise.of_others(rule.programs);
    // Of 100 (1 - b) or 100 (a - b), with shares a and b of the cost of the program as it is, which
    // varies in both. The others' variance is that of two costs.
    const double a = rule.points ? noise.share(rule.programs.front()) : 0,
                 b = noise.share(rule.programs.back());
    others.variance *= 1e4 * (a * a + b * b + (a - b) * (a - b)) / 2;
    mean = moderated(mean, others);
  }
  cause.value = mean.mean;
  if (cause.points.size() >= kFewestSequentialRuns) cause.interval = mean.interval(confidence);
  if (cause.interval && cause.interval->low > kNamed) cause.state = CauseState::found;
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
  const auto interval = paired_difference(differences, Stopping::by_results).interval(confidence);
  return interval && interval->low > 0;
}

bool comes_with_replicas(const Cause& cause) {
  return cause.key == "sums" || cause.key == "shared_node";
}

bool all_are_below_large(const std::vector<Cause>& causes) {
  return !causes.empty() && std::ranges::all_of(causes, [](const Cause& each) {
    return each.interval && each.interval->high < kLarge;
  });
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
    verdict.may_change |= is_open && comes_with_replicas(*first) && goes_first(*other, *largest);
    if (first != largest && comes_with_replicas(*other)) {
      if (!is_open) verdict.with_replicas.push_back(*other);
    } else if (!is_larger(*first, *other, confidence)) {
      verdict.rivals.push_back(other->name);
    }
  }
}

// 1 % of the time.
bool have_epochs(const std::vector<WhyRound>& rounds) {
  return std::ranges::any_of(rounds, [](const WhyRound& round) {
    const auto whole = round.find(kAsItIs);
    return whole != round.end() && whole->second.epoch_seconds > 0.01 * whole->second.seconds;
  });
}

std::string points_text(const Cause& cause) {
  const auto whole = [](double points) { return std::round(points) + 0.0; };  // never -0
  if (!cause.interval) return fmt::format("{:.0f}", whole(cause.value));
  return fmt::format("{:.0f} [{:.0f}, {:.0f}]", whole(cause.value), whole(cause.interval->low),
                     whole(cause.interval->high));
}

constexpr EnumName<CauseState> kStates[] = {
    {CauseState::found, "found"}, {CauseState::small, "small"}, {CauseState::open, "cannot tell"}};

Table make_table(const std::vector<Cause>& causes, const std::string& key) {
  return ColumnsOf<Cause>()
      .text("cause", key == "tries" ? "change" : "cause",
            [](const Cause& each) { return each.name; })
      .interval("points", key == "tries" ? "points gained\n[95 %]" : "points\n[95 %]",
                [](const Cause& each) {
                  return Cell{points_text(each), each.value, each.interval};
                })
      .text("state", "",
            [](const Cause& each) { return std::string(name_in(kStates, each.state)); })
      .text("measured_by", "measured by", [](const Cause& each) { return each.how; })
      .text("key", "", [](const Cause& each) { return each.key; })
      .programs()
      .table(causes, key);
}

std::string estimate_text(const Estimate& estimate, double scale, int digits) {
  std::string text = fmt::format("{:.{}f}", scale * estimate.value, digits);
  if (!estimate.interval) return text;
  return text + fmt::format(" [{:.{}f}, {:.{}f}]", scale * estimate.interval->low, digits,
                            scale * estimate.interval->high, digits);
}

std::string title_text(const WhyVerdict& verdict) {
  if (!verdict.speed_up) {
    return fmt::format("{}: one alone could not be measured", counted(verdict.replicas, "replica"));
  }
  const bool is_known = verdict.speed_up->interval.has_value();
  return fmt::format("{} train {} times as fast as one: efficiency {} %{}",
                     counted(verdict.replicas, "replica"), estimate_text(*verdict.speed_up, 1, 2),
                     estimate_text(*verdict.efficiency, 100, 0),
                     is_known ? "" : " (too few runs for an interval)");
}

std::string headline_text(const WhyVerdict& verdict, const std::set<std::string>& missing) {
  if (verdict.first) {
    const Cause& first = verdict.causes[*verdict.first];
    std::string text =
        fmt::format("{}: {}, {} of 100 points", verdict.rivals.empty() ? "First cause" : "A cause",
                    first.name, points_text(first));
    if (!verdict.with_replicas.empty()) text.insert(text.find(':'), " of the program's own");
    if (first.key == "late" && verdict.late_rank) {
      text += fmt::format("; rank {} was the slowest in every round", *verdict.late_rank);
    }
    if (!verdict.rivals.empty()) {
      text += fmt::format("; these runs cannot tell whether it costs more than {}",
                          join(verdict.rivals, ", "));
    }
    for (const Cause& other : verdict.with_replicas) {
      text += fmt::format("; {}, {}, {} with the replicas", other.name, points_text(other),
                          other.key == "sums" ? "come" : "comes");
    }
    return text;
  }
  const bool none_is_large = all_are_below_large(verdict.causes);
  if (none_is_large && missing.empty()) {
    const Cause& largest = verdict.causes.front();
    return fmt::format(
        "None of the causes that were tried costs {:.0f} of 100 points{}", kLarge,
        largest.state == CauseState::found
            ? fmt::format("; the largest: {}, {}", largest.name, points_text(largest))
            : "");
  }
  const std::string reason =
      none_is_large
          ? fmt::format(
                "no cause that was measured costs {:.0f} points, but these runs cannot be made: {}",
                kLarge, join({missing.begin(), missing.end()}, ", "))
          : fmt::format(
                "after {} no cause is surely above {:.0f} points with an estimate of {:.0f}, and "
                "not all are below that",
                counted(static_cast<double>(verdict.rounds), "round"), kNamed, kLarge);
  return "Cannot tell: " + reason;
}

}  // namespace

MeasuredRun read_measured_run(const std::filesystem::path& file) {
  const Json json = parse_json(read_text(file));
  MeasuredRun run;
  try {
    run.ranks = json.at("ranks");
    run.steps = json.at("steps");
    run.steps_in_all = json.at("steps_in_all");
    run.samples = json.at("samples");
    run.batch = json.at("batch");
    run.own_calls = json.at("own_calls");
    run.seconds = json.at("seconds");
    run.others_seconds = json.at("others_seconds");
    run.first_seconds = json.at("first_seconds");
    run.epoch_seconds = json.at("epoch_seconds");
    run.slowest_rank = json.at("slowest_rank");
    run.wait = json.at("wait");
    run.own_seconds = json.at("own_seconds");
    run.save_seconds = json.at("save_seconds");
    run.sync_seconds = json.at("sync_seconds");
    run.overhead = json.at("overhead");
    run.saves = json.at("saves");
    run.batches = json.at("batches");
    run.ratio = json.at("ratio");
    run.workers = json.at("workers");
    run.threads = json.at("threads");
    run.all_cpus = json.at("all_cpus");
    run.local_ranks = json.at("local_world");
    run.bucket_mb = json.at("bucket_mb");
    run.is_on_gpu = json.at("on_gpu");
    run.changes_batches = json.at("changes_batches");
    run.has_foreign_hook = !json.at("comm_hook").get<std::string>().empty();
    run.has_sync_norm = json.at("sync_batch_norm");
    run.why_no_sums = json.at("why_no_sums");
  } catch (const Json::exception&) {
    throw input_error("not what the hook writes", file.string(), "make the runs again");
  }
  return run;
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
    ++verdict.rounds;
    verdict.replicas = whole->second.ranks;
    verdict.overhead = std::max(verdict.overhead, whole->second.overhead / whole->second.seconds);
    if (verdict.by_samples) verdict.batch = whole->second.batch_per_replica();
    if (const auto free = round.find(kNoSums); free != round.end()) {
      const int slowest = free->second.slowest_rank;
      verdict.late_rank = verdict.late_rank.value_or(slowest) == slowest ? slowest : -1;
    }
    if (alone == round.end()) continue;
    if (verdict.by_samples) verdict.batch_alone = alone->second.batch_per_replica();
    ++rounds_alone;
  }
  if (verdict.late_rank && *verdict.late_rank < 0) verdict.late_rank.reset();
  const RoundNoise noise(evidence.rounds, verdict.by_samples);
  if (rounds_alone > 0) {
    verdict.efficiency = as_factor(noise.ratio(kAlone));
    if (rounds_alone < kFewestSequentialRuns) verdict.efficiency->interval.reset();
    // Costs of a step are of all replicas' steps, which do the work of as many of one.
    verdict.speed_up =
        transformed(*verdict.efficiency, [&](double each) { return each * verdict.replicas; });
  }
  std::vector<std::pair<CauseRule, std::map<std::size_t, double>>> measured;
  const auto has_runs = [&](const char* program) {
    return std::ranges::any_of(evidence.rounds,
                               [&](const WhyRound& round) { return round.contains(program); });
  };
  for (CauseRule rule : rules()) {
    // Where rank 0 alone saves, that is what it does.
    if (std::string(rule.key) == "rank_0" && has_runs(kNoSaves)) continue;
    if (std::string(rule.key) == "epochs" && !have_epochs(evidence.rounds)) continue;
    // With the batch that a replica has among the others.
    if (rule.programs.size() == 2 && rule.programs.front() == kNoSums && has_runs(kAloneBatch)) {
      rule.programs.back() = kAloneBatch;
    }
    auto points = points_of_rounds(rule, evidence.rounds, verdict.by_samples);
    if (!points.empty()) measured.emplace_back(std::move(rule), std::move(points));
  }
  const double confidence =
      1 - (1 - kConfidence) / static_cast<double>(std::max<std::size_t>(measured.size(), 1));
  for (auto& [rule, points] : measured) {
    verdict.causes.push_back(make_cause(rule, std::move(points), noise, confidence));
  }
  std::ranges::stable_sort(verdict.causes, std::greater{}, &Cause::value);
  find_first(verdict, confidence);
  for (const auto& [program, text] : evidence.tried) {
    const CauseRule rule{program.c_str(), text.c_str(), "the same program with it", {program}};
    auto points = points_of_rounds(rule, evidence.rounds, verdict.by_samples);
    if (points.empty()) continue;
    verdict.tries.push_back(make_cause(rule, std::move(points), noise, kConfidence));
  }
  const bool is_ordered =
      (verdict.rivals.empty() && !verdict.may_change) || verdict.rounds >= kRoundsForOrder;
  verdict.is_over = verdict.first ? is_ordered : all_are_below_large(verdict.causes);
  verdict.is_decided = verdict.is_over && (verdict.first || evidence.missing.empty());
  return verdict;
}

Document why_document(const WhyVerdict& verdict, const WhyEvidence& evidence) {
  Document document;
  document.name = "why";
  document.is_brief = true;
  document.title = title_text(verdict);
  document.warnings = evidence.warnings;
  if (verdict.batch_alone > 0 && verdict.batch < kFalls * verdict.batch_alone) {
    document.warnings.push_back(
        fmt::format("the batch of a replica falls from {:g} alone to {:g} among {}: keep it, by a "
                    "larger global batch, to see what more replicas can give",
                    verdict.batch_alone, verdict.batch, verdict.replicas));
  }
  Section section;
  section.headline = headline_text(verdict, evidence.missing);
  const std::string headline = section.headline;
  section.table = make_table(verdict.causes, "causes");
  std::vector<Statement> tries;
  for (const Cause& each : verdict.tries) {
    if (each.key == kDropped && each.state == CauseState::found) {
      tries.emplace_back(
          fmt::format("While the loader works and its output is dropped the gain is {} points: "
                      "that is the wait; what is more is CPUs that the loader takes from the steps",
                      points_text(each)));
      continue;
    }
    tries.emplace_back(each.state == CauseState::found
                           ? fmt::format("Try {}: it gains {} points", each.name, points_text(each))
                           : fmt::format("With {} the gain is {} points: {}", each.name,
                                         points_text(each), name_in(kStates, each.state)));
  }
  section.findings = tries;
  for (const std::string& note : evidence.notes) section.findings.emplace_back(note);
  if (!evidence.profile.empty()) section.notes.push_back(evidence.profile);
  if (!verdict.by_samples) {
    section.caveats.emplace_back(
        "steps are compared, as their samples are not known; that is right if a replica's batch is "
        "the same alone");
  }
  section.notes.push_back(fmt::format(
      "100 points are the time in which {} train on a sample. One replica alone needs a share of "
      "it, the efficiency. The sums, the latest rank, the shared node, what comes once an epoch "
      "and computing in smaller batches add up to the rest, the loss; other causes overlap with "
      "these.",
      counted(verdict.replicas, "replica")));
  section.caveats.push_back(
      fmt::format("Intervals are for all causes together, after {}; the hook's own code took "
                  "{:.2f} % of the time.",
                  counted(static_cast<double>(verdict.rounds), "round"), 100 * verdict.overhead));
  document.sections.push_back(std::move(section));
  if (!verdict.tries.empty()) {
    document.sections.push_back(
        {.table = make_table(verdict.tries, "tries"), .shown = Visibility::in_detail});
    document.sections.back().table.in_text = false;
  }
  const auto interval = [](const std::optional<Estimate>& estimate, bool low) -> Json {
    if (!estimate || !estimate->interval) return nullptr;
    return low ? estimate->interval->low : estimate->interval->high;
  };
  const auto value = [](const std::optional<Estimate>& estimate) -> Json {
    return estimate ? Json(estimate->value) : Json(nullptr);
  };
  document.facts = make_facts(
      {{"replicas", verdict.replicas},
       {"rounds", verdict.rounds},
       {"decided", verdict.is_decided},
       {"speed_up", value(verdict.speed_up)},
       {"speed_up_low", interval(verdict.speed_up, true)},
       {"speed_up_high", interval(verdict.speed_up, false)},
       {"efficiency", value(verdict.efficiency)},
       {"efficiency_low", interval(verdict.efficiency, true)},
       {"efficiency_high", interval(verdict.efficiency, false)},
       {"first_cause", verdict.first ? Json(verdict.causes[*verdict.first].key) : Json(nullptr)},
       {"rivals", verdict.rivals},
       {"overhead", verdict.overhead},
       {"title", document.title},
       {"headline", headline},
       {"profile", evidence.profile},
       {"warnings", document.warnings},
       {"notes", evidence.notes}});
  return document;
}

}  // namespace paceline
