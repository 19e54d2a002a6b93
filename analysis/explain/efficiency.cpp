#include "analysis/explain/efficiency.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>

#include "analysis/study/contrast.h"
#include "analysis/study/labels.h"
#include "analysis/study/switches.h"
#include "engine/core/text.h"
#include "engine/facts/rank.h"
#include "results/step_samples.h"

namespace paceline {

// Seconds of one run, means over its ranks but for the two extremes.
struct StepRecords::Phases {
  double input = 0, launch = 0, communication = 0, compute = 0, outside = 0;
  double of_all = 0, most_compute = 0;  // of_all: communication that every rank waits for
  double next_compute = 0;              // of the rank that computes second longest
  int slowest = -1;                     // the rank that computes longest; -1: not known
  double samples = 0;
  bool is_bound = false;    // of_all may be less
  bool has_warmup = false;  // there are steps that the rates leave out

  double total() const { return input + launch + communication + compute + outside; }

  void add(const Phases& more, double scale) {
    input += more.input * scale;
    launch += more.launch * scale;
    communication += more.communication * scale;
    compute += more.compute * scale;
    outside += more.outside * scale;
    of_all += more.of_all * scale;
    most_compute += more.most_compute * scale;
    next_compute += more.next_compute * scale;
    is_bound = is_bound || more.is_bound;
    has_warmup = has_warmup || more.has_warmup;
  }

  Costs costs(double ranks) const {
    const double scale = ranks / samples;
    return {input * scale,
            launch * scale,
            of_all * scale,
            (communication - of_all) * scale,
            compute * scale,
            outside * scale,
            (most_compute - next_compute) * scale};
  }
};

namespace {

// A rank's seconds over all steps.
RankSeconds compute_total(const PhaseSeconds& rank) {
  return {rank.input, rank.forward + rank.backward + rank.update, rank.communication, rank.other};
}

// What the mean of many ranks does not show.
void add_extremes(const RanksFacts& ranks, double& least_wait, double& most_compute) {
  if (const auto& least = ranks.spread.min.phases) {
    least_wait = std::min(least_wait, least->communication);
  }
  for (const RankOutlier& rank : ranks.outliers) {
    const PhaseSeconds phases = rank.facts.phases.value_or(PhaseSeconds{});
    most_compute = std::max(most_compute, compute_total(phases).compute);
  }
}

// The rank that computes longest, and how long the next one does.
std::pair<int, double> find_slowest(const std::vector<RankSeconds>& ranks) {
  std::size_t slowest = 0;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (ranks[i].compute > ranks[slowest].compute) slowest = i;
  }
  double next = 0;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (i != slowest) next = std::max(next, ranks[i].compute);
  }
  return {static_cast<int>(slowest), next};
}

// The number of first steps that the rate of a run leaves out.
double count_warmup(const Run& run, bool rates) {
  const Throughput& rate = *run->throughput;
  if (!rates || !rate.steps) return 0;
  return std::min(static_cast<double>(rate.warmup_steps_excluded.value_or(0)), *rate.steps);
}

constexpr double kLeastShare = 0.1;  // of a step
const double kTwice = std::log(2.0);

// The mean over ranks and steps.
std::optional<double> step_seconds_of_waiting(const Run& run) {
  if (run.phase_sum->step <= 0 || run.phase_sum->communication <= 0 || run.phase_ranks == 0)
    return std::nullopt;
  if (!run.steps() || *run.steps() <= 0) return std::nullopt;
  return run.phase_sum->communication / run.phase_ranks / *run.steps();
}

std::optional<double> step_share_of_waiting(const Run& run) {
  if (run.phase_sum->step <= 0) return std::nullopt;
  return run.phase_sum->communication / run.phase_sum->step;
}

// Whether every run of the row is of several replicas and knows the wait and the CPUs.
bool is_usable(const Row& row) {
  return !row.runs.empty() && std::ranges::all_of(row.runs, [](const Run& run) {
    return run->kind == "measured" && run->layout.gpus > 1 && run.cpus_per_replica() &&
           step_seconds_of_waiting(run);
  });
}

std::string waiting_sentence(const Study& study, const Row& few, const Row& more) {
  const double before = *mean(few, step_seconds_of_waiting),
               after = *mean(more, step_seconds_of_waiting);
  const auto cpus = [](const Row& row) {
    return counted(static_cast<std::int64_t>(*row.first().cpus_per_replica()), "CPU");
  };
  return fmt::format(
      "{}, {}: a step waits {} for communication with {} a replica and {} with {}, as if "
      "communication shared a CPU with the computation",
      few.first().backend, replicas_text(study, few), format_seconds(before), cpus(few),
      format_seconds(after), cpus(more));
}

}  // namespace

const StepRecords::Phases* StepRecords::find_phases(const Run& run, bool rates) const {
  const auto [known, first] = phases_.try_emplace(run.where);
  if (!first) return known->second.get();
  if (!run.samples()) return nullptr;
  const RunRecord& record = *run.record;
  std::vector<RankSeconds> ranks;  // of many ranks the mean one
  for (const RankFacts* rank : record.known_ranks()) {
    if (rank->phases) ranks.push_back(compute_total(*rank->phases));
  }
  if (ranks.empty()) return nullptr;
  Phases phases;
  phases.samples = *run.samples();
  const double warmup = count_warmup(run, rates);
  phases.has_warmup = warmup > 0;
  std::optional<StepSums> steps;
  if (run->layout.gpus > 1 || phases.has_warmup) {
    steps = summed_steps(record, run.where, static_cast<std::size_t>(warmup));
  }
  if (steps && *record.ranks && !phases.has_warmup) ranks = steps->ranks;
  if (steps && phases.has_warmup) {
    ranks = steps->ranks;
    phases.samples *= 1 - warmup / *run.steps();
    phases.has_warmup = false;
  }
  const auto count = static_cast<double>(ranks.size());
  phases.of_all = ranks.front().communication;
  for (const RankSeconds& rank : ranks) {
    phases.input += rank.input / count;
    phases.launch += rank.other / count;
    phases.communication += rank.communication / count;
    phases.compute += rank.compute / count;
    phases.of_all = std::min(phases.of_all, rank.communication);
    phases.most_compute = std::max(phases.most_compute, rank.compute);
  }
  if (!steps && *record.ranks) add_extremes(**record.ranks, phases.of_all, phases.most_compute);
  phases.next_compute = phases.most_compute;
  if (ranks.size() > 1 && ranks.size() == static_cast<std::size_t>(run->layout.gpus)) {
    std::tie(phases.slowest, phases.next_compute) = find_slowest(ranks);
  }
  if (!(phases.compute > 0)) return nullptr;
  // Ranks that train apart wait for none, late or not.
  if (is_without_communication(run)) {
    phases.most_compute = phases.next_compute = phases.compute;
    phases.slowest = -1;
  }
  if (run.fit_seconds() && !rates)
    phases.outside = *run.fit_seconds() - run.phase_sum->step / run.phase_ranks;
  if (run->layout.gpus > 1 && phases.of_all > 0) {
    phases.is_bound = !steps;
    if (steps) phases.of_all = std::min(phases.of_all, steps->waited_by_all);
  }
  known->second = std::make_shared<const Phases>(phases);
  return known->second.get();
}

std::optional<StepEfficiency> StepRecords::efficiency(const Row& row, bool rates) const {
  // The mean shares of the runs, of the geometric mean of their seconds a sample, as the times and
  // rates of a row have that mean: one slow run must not make the step's parts those of itself.
  Phases sum;
  double log_cost = 0;
  const std::vector<double> weights = run_weights(row);
  const double runs = std::accumulate(weights.begin(), weights.end(), 0.0);
  for (std::size_t i = 0; i < row.runs.size(); ++i) {
    const Phases* phases = find_phases(row.runs[i], rates);
    if (phases == nullptr) return std::nullopt;
    sum.add(*phases, weights[i] / phases->total());
    log_cost += weights[i] * std::log(phases->total() / phases->samples) / runs;
  }
  sum.samples = runs / std::exp(log_cost);
  StepEfficiency result;
  const double total = sum.input + sum.launch + sum.communication + sum.compute;
  const double without_input = total - sum.input, without_launch = without_input - sum.launch;
  const double without_transfer = without_launch - sum.of_all;
  result.input = without_input / total;
  result.launch = without_launch / without_input;
  result.transfer = without_transfer / without_launch;
  result.serialization = sum.most_compute / without_transfer;
  result.load_balance = sum.compute / sum.most_compute;
  result.is_bound = sum.is_bound;
  result.has_warmup = sum.has_warmup;
  result.costs = sum.costs(row.first()->layout.gpus);
  return result;
}

std::vector<Costs> StepRecords::costs(const Row& row, bool rates) const {
  return mapped(row.runs,
                [&](const Run& run) { return find_phases(run, rates)->costs(run->layout.gpus); });
}

std::optional<LateRank> StepRecords::late_rank(const Row& row, bool rates) const {
  std::map<int, LateRank> ranks;
  for (const Run& run : row.runs) {
    const std::optional<StragglerFacts>& straggler = *run->straggler;
    if (!straggler) continue;
    const auto [at, is_first] = ranks.try_emplace(straggler->rank);
    LateRank& late = at->second;
    if (is_first) late = {straggler->rank, straggler->host, straggler->phase};
    if (late.host != straggler->host) late.host.clear();
    if (late.phase != straggler->phase) late.phase.clear();
    late.share_of_step += straggler->share_of_step.value_or(0);
    ++late.runs;
  }
  const auto most = std::ranges::max_element(
      ranks, [](const auto& a, const auto& b) { return a.second.runs < b.second.runs; });
  if (most == ranks.end() || 2 * most->second.runs <= row.runs.size()) return std::nullopt;
  LateRank& late = most->second;
  late.share_of_step /= static_cast<double>(late.runs);
  late.runs_of_row = row.runs.size();
  late.computes_longest = std::ranges::all_of(row.runs, [&](const Run& run) {
    const Phases* phases = find_phases(run, rates);
    return phases != nullptr && phases->slowest == late.rank;
  });
  return late;
}

std::vector<std::string> cpu_for_communication(const Study& study) {
  std::map<PointKey, std::vector<const Row*>> groups;
  for (const Row& row : study.rows) {
    if (is_usable(row)) groups[row.first().key(MatchRule::but_for_cpus())].push_back(&row);
  }
  const auto by_cpus = [](const Row* a, const Row* b) {
    return *a->first().cpus_per_replica() < *b->first().cpus_per_replica();
  };
  std::vector<std::string> sentences;
  for (auto& [key, rows] : groups) {
    std::ranges::stable_sort(rows, by_cpus);
    const Row& few = *rows.front();
    if (mean(few, step_share_of_waiting).value_or(0) < kLeastShare) continue;
    const Row* best = nullptr;
    for (const Row* more : rows) {
      if (!by_cpus(&few, more)) continue;
      const Difference grown = contrast(
          {log_values(*more, step_seconds_of_waiting), log_values(few, step_seconds_of_waiting)},
          [](const RowMeans& means) { return means[1][0] - means[0][0]; });
      if (!is_above(grown, kTwice)) continue;
      if (best == nullptr ||
          *mean(*more, step_seconds_of_waiting) < *mean(*best, step_seconds_of_waiting))
        best = more;
    }
    if (best != nullptr) sentences.push_back(waiting_sentence(study, few, *best));
  }
  return sentences;
}

}  // namespace paceline
