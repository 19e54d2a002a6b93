#include "analysis/predict/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "analysis/predict/laws.h"
#include "analysis/predict/step_replay.h"
#include "engine/core/error.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

constexpr double kDraws = 200'000;  // of ranks, for each run
// What replays are off by, before any run says so.
constexpr double kPriorError = 0.03, kPriorSizes = 3;
constexpr double kFewestSteps = 100, kMostSteps = 1000;

// What is replayed of a size: the buckets, and how computing follows from the batch.
struct StepModel {
  int gpus = 1;
  std::vector<BucketEvent> buckets;
  bool overlap = false, joint = false;
  double compute = 1;  // factor of forward and backward
  double input = 1;

  double sum_seconds() const { return summed(buckets, &BucketEvent::sum_seconds); }
};

double mean_step(const RunSteps& steps, const StepModel& scene, std::uint64_t seed) {
  const auto ranks = static_cast<std::size_t>(scene.gpus);
  const auto count =
      static_cast<int>(std::clamp(kDraws / static_cast<double>(ranks), kFewestSteps, kMostSteps));
  RankDraws draws(steps.ranks, seed);
  StepReplay replay(ranks, scene.buckets, scene.overlap, scene.joint);
  std::vector<StepSeconds> drawn(ranks);
  double sum = 0;
  for (int i = 0; i < count; ++i) {
    draws.next(drawn);
    for (StepSeconds& rank : drawn) {
      rank.input *= scene.input;
      rank.forward *= scene.compute;
      rank.backward *= scene.compute;
    }
    sum += replay.step(drawn) / count;
  }
  return sum;
}

}  // namespace

struct Replay::Facts {
  // A measured run, and what its record says of its steps.
  struct MeasuredRun {
    const Run* run;
    RunSteps steps;
  };

  // The runs of one size.
  struct MeasuredSize {
    int gpus = 1;
    double nodes = 1;
    double batch = 1;  // of a replica
    std::vector<MeasuredRun> runs;
  };

  ReplaySources sources;
  std::string why_not;
  std::vector<std::string> notes;
  std::map<int, MeasuredSize> sizes;
  std::optional<FittedLinks> links;
  ReplayResidual rest;
  std::vector<double> off;  // logarithms: the measured sizes over their replays with the rest

  explicit Facts(ReplaySources given) : sources(std::move(given)) {
    collect();
    if (!why_not.empty()) return;
    find_links();
    if (!why_not.empty()) return;
    describe_sources();
    compare_with_measured();
  }

  const MeasuredSize& largest() const { return sizes.rbegin()->second; }
  const RunRecord& record() const { return *largest().runs.front().run->record; }

  void collect() {
    for (const Row* row : sources.rows) {
      for (const Run& run : row->runs) {
        auto steps = find_steps(run);
        if (!steps) continue;
        MeasuredSize& size = sizes[run->layout.gpus];
        size.gpus = run->layout.gpus;
        size.nodes = run->layout.nodes.value_or(1);
        size.batch = run->plan.global_batch.value_or(run->layout.gpus) / run->layout.gpus;
        size.runs.push_back({&run, std::move(*steps)});
      }
    }
    if (sizes.empty()) {
      why_not = "the records have no phases of steps to replay";
    } else if (plan_buckets(record()).buckets.empty()) {
      why_not = "the records do not say what gradients are summed (plan.bucket_bytes)";
    }
  }

  // How many replicas the fullest node of a measured size has.
  int replicas_per_node() const {
    int most = 1;
    for (const auto& [gpus, size] : sizes) {
      most = std::max(most, static_cast<int>(std::ceil(gpus / std::max(1.0, size.nodes))));
    }
    return most;
  }

  void find_links() {
    if (sources.network) {
      links = FittedLinks{*sources.network, 0, true, 0};
      return;
    }
    std::vector<SumSample> samples = flattened(sources.collectives, sums_in);
    links = fit_links(samples, replicas_per_node());
    if (links) return;
    for (const auto& [gpus, size] : sizes) {
      for (const MeasuredRun& each : size.runs) {
        if (const auto sample = sums_of_steps(*each.run)) samples.push_back(*sample);
      }
    }
    links = fit_links(samples, replicas_per_node());
    if (!links) {
      why_not =
          "nothing shows what an all-reduce costs: there is no run of two or more replicas, "
          "no record of `paceline bench allreduce` and no network";
      return;
    }
    notes.push_back(
        "Latency and bandwidth are estimated from the steps themselves; `paceline bench allreduce "
        "--record` measures them.");
  }

  void describe_sources() {
    const BucketPlan plan = plan_buckets(record());
    if (plan.ready == ReadyTimes::by_operations) {
      notes.push_back(
          "Gradients are assumed to be ready as if every layer's backward took equally long.");
    } else if (plan.ready == ReadyTimes::by_buckets) {
      notes.push_back("Gradients are assumed to be ready as if buckets divided backward evenly.");
    }
    for (const MeasuredRun& each : largest().runs) {
      if (each.steps.sampled) continue;
      notes.push_back(
          "Samples of steps are missing, so the jitter of ranks is that of whole steps.");
      break;
    }
    if (!sources.network && !links->form_is_known && links->most_replicas < 3) {
      notes.push_back(
          fmt::format("All-reduces of one size do not show their form; a {} is assumed.",
                      to_string(links->network.form)));
    }
    if (sources.scaling == Scaling::strong && sizes.size() == 1) {
      notes.push_back(
          "Computing is assumed to be in proportion to the batch, as one size was measured.");
    }
  }

  double batch_at(int gpus) const {
    const double batch = largest().batch;
    return sources.scaling == Scaling::strong ? batch * largest().gpus / gpus : batch;
  }

  // Forward and backward of a batch over those of another: a fixed part and one in proportion,
  // fitted over the sizes.
  double compute_factor(double batch, double other) const {
    if (batch == other) return 1;
    std::vector<CostPoint> points;
    for (const auto& [gpus, size] : sizes) {
      for (const MeasuredRun& each : size.runs) {
        CostPoint point{{size.batch, 1}, 0};
        for (const auto& steps : each.steps.ranks) {
          for (const StepSeconds& step : steps) {
            point.value += (step.forward + step.backward) / static_cast<double>(steps.size()) /
                           static_cast<double>(each.steps.ranks.size());
          }
        }
        if (point.value > 0) points.push_back(point);
      }
    }
    if (points.empty()) return 1;
    const std::vector<double> fit = nonnegative_fit(points);
    return (fit[0] * batch + fit[1]) / (fit[0] * other + fit[1]);
  }

  void compare_with_measured() {
    std::vector<ComparedSize> compared;
    for (const auto& [gpus, size] : sizes) {
      if (gpus < 2) continue;
      const StepModel scene = scene_at(gpus, {}, size);
      ComparedSize one{0, 0, scene.sum_seconds()};
      for (const MeasuredRun& each : size.runs) {
        const auto runs = static_cast<double>(size.runs.size());
        one.measured += each.steps.step_seconds / runs;
        one.replayed += mean_step(each.steps, scene, 1) / runs;
      }
      compared.push_back(one);
    }
    rest = fit_residual(compared);
    for (const ComparedSize& one : compared) {
      off.push_back(std::log(one.measured / rest.with_rest(one.replayed, one.sums)));
    }
  }

  // Time outside of steady steps: compiling, warm-up, the start of epochs. Empty: not known.
  std::optional<double> outside() const {
    double sum = 0;
    for (const MeasuredRun& each : largest().runs) {
      if (!each.run->fit_seconds() || !each.run->steps()) return std::nullopt;
      sum += *each.run->fit_seconds() - *each.run->steps() * each.steps.step_seconds;
    }
    return std::max(0.0, sum / static_cast<double>(largest().runs.size()));
  }

  double steps_at(int gpus) const {
    const double steps = largest().runs.front().run->steps().value_or(0);
    const bool divided =
        sources.scaling == Scaling::fixed_epochs || sources.scaling == Scaling::to_goal;
    return divided ? std::ceil(steps * largest().gpus / gpus - 1e-9) : steps;
  }

  // Half of the 90 % interval of the logarithm of a row's mean step. Runs differ, and so does the
  // replay from runs: by what it is off at the measured sizes, together with kPriorSizes sizes of
  // kPriorError, the more the further it goes beyond them.
  double log_error(int gpus) const {
    double squares = 0, freedom = 0, model = kPriorSizes * kPriorError * kPriorError;
    for (const auto& [size, measured] : sizes) {
      const auto logs = mapped(
          measured.runs, [](const MeasuredRun& each) { return std::log(each.steps.step_seconds); });
      const double middle = average(logs);
      for (const double each : logs) squares += (each - middle) * (each - middle);
      freedom += static_cast<double>(logs.size()) - 1;
    }
    for (const double each : off) model += each * each;
    const double sizes_in_all = kPriorSizes + static_cast<double>(off.size());
    const double runs =
        2 * squares / std::max(1.0, freedom) / static_cast<double>(largest().runs.size());
    const double doublings = std::max(0.0, std::log2(static_cast<double>(gpus) / largest().gpus));
    return t_quantile(sizes_in_all, 0.9) * std::sqrt(runs + model / sizes_in_all * (1 + doublings));
  }

  LinkNetwork network_with(const WhatIf& what_if) const {
    LinkNetwork network = links->network;
    for (LinkLevel& level : network.levels) level.bytes_per_second *= what_if.links;
    return network;
  }

  // With the computing of a measured size.
  StepModel scene_at(int gpus, const WhatIf& what_if, const MeasuredSize& from) const {
    const RunRecord& of = record();
    const BucketPlan plan = plan_buckets(of, what_if.bucket_mb);
    if (plan.buckets.empty()) {
      throw usage_error("the records lack the sizes of gradients, so buckets stay",
                        "--what-if bucket_mb", "measure once with this version, or leave it out");
    }
    const LinkNetwork network = network_with(what_if);
    if (const auto most = network.capacity(); most && gpus > *most) {
      throw usage_error(fmt::format("the network joins {} replicas, not {}", *most, gpus),
                        "--network", "leave out \"units\" of its last level");
    }
    const double wire = wire_factor(of, what_if.wire);
    double all = 0;
    for (const BucketFacts& bucket : plan.buckets) all += bucket.bytes;
    StepModel scene;
    scene.gpus = gpus;
    for (const BucketFacts& bucket : plan.buckets) {
      scene.buckets.push_back(
          {bucket.ready, bucket.bytes / all, network.seconds(bucket.bytes * wire, gpus)});
    }
    scene.overlap = of.plan.overlapped.value_or(false);
    scene.joint = of.parameters.real("clip_norm").value_or(0) > 0;
    const double batch = batch_at(gpus);
    scene.compute = compute_factor(batch, from.batch);
    scene.input = batch / from.batch;
    return scene;
  }
};

Replay::Replay(ReplaySources sources) : facts_(std::make_unique<Facts>(std::move(sources))) {}
Replay::~Replay() = default;
Replay::Replay(Replay&&) noexcept = default;

const std::string& Replay::why_not() const {
  return facts_->why_not;
}
const std::vector<std::string>& Replay::notes() const {
  return facts_->notes;
}

ReplayedStep Replay::at(int gpus, const WhatIf& what_if) const {
  const Facts& facts = *facts_;
  const Facts::MeasuredSize& from = facts.largest();
  const StepModel scene = facts.scene_at(gpus, what_if, from);
  const auto runs = static_cast<double>(from.runs.size());
  ReplayedStep result;
  result.gpus = gpus;
  for (const Facts::MeasuredRun& each : from.runs) {
    result.step_seconds += mean_step(each.steps, scene, 1) / runs;
  }
  if (gpus > 1)
    result.step_seconds = facts.rest.with_rest(result.step_seconds, scene.sum_seconds());
  const double rate = facts.batch_at(gpus) * gpus / result.step_seconds;
  const double error = std::exp(facts.log_error(gpus));
  result.samples_per_second = rate;
  result.samples_per_second_interval = {rate / error, rate * error};
  if (const auto outside = facts.outside()) {
    const double steps = facts.steps_at(gpus) * result.step_seconds;
    result.fit_seconds = *outside + steps;
    result.fit_seconds_interval = Interval{*outside + steps / error, *outside + steps * error};
  }
  return result;
}

}  // namespace paceline
