#include "analysis/predict/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "analysis/predict/link_fit.h"
#include "analysis/predict/nonnegative_fit.h"
#include "analysis/predict/rank_draws.h"
#include "analysis/predict/replay_facts.h"
#include "analysis/predict/step_replay.h"
#include "engine/core/error.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

constexpr double kDraws = 200'000;  // of ranks, for each run
constexpr double kFewestSteps = 100, kMostSteps = 1000;

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

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

// What is replayed of a size: the buckets, and how computing follows from the batch.
struct Scene {
  int gpus = 1;
  std::vector<BucketEvent> buckets;
  bool overlap = false, joint = false;
  double compute = 1;  // factor of forward and backward
  double input = 1;
};

StepCost mean_step(const RunSteps& steps, const Scene& scene, std::uint64_t seed) {
  const auto ranks = static_cast<std::size_t>(scene.gpus);
  const auto count =
      static_cast<int>(std::clamp(kDraws / static_cast<double>(ranks), kFewestSteps, kMostSteps));
  RankDraws draws(steps.ranks, seed);
  StepReplay replay(ranks, scene.buckets, scene.overlap, scene.joint);
  std::vector<StepSeconds> drawn(ranks);
  StepCost sum;
  for (int i = 0; i < count; ++i) {
    draws.next(drawn);
    for (StepSeconds& rank : drawn) {
      rank.input *= scene.input;
      rank.forward *= scene.compute;
      rank.backward *= scene.compute;
    }
    const StepCost step = replay.step(drawn);
    sum.step += step.step / count;
    sum.exposed += step.exposed / count;
    sum.straggler += step.straggler / count;
  }
  return sum;
}

}  // namespace

struct Replay::Facts {
  ReplaySources sources;
  std::string why_not;
  std::vector<std::string> notes;
  std::map<int, MeasuredSize> sizes;
  std::optional<FittedLinks> links;

  explicit Facts(ReplaySources given) : sources(std::move(given)) {
    collect();
    if (!why_not.empty()) return;
    find_links();
    if (why_not.empty()) tell();
  }

  const MeasuredSize& largest() const { return sizes.rbegin()->second; }
  const RunRecord& record() const { return *largest().runs.front().run->record; }

  void collect() {
    for (const Row* row : sources.rows) {
      for (const Run& run : row->runs) {
        auto steps = steps_of(run);
        if (!steps) continue;
        MeasuredSize& size = sizes[run.gpus];
        size.gpus = run.gpus;
        size.nodes = run.nodes.value_or(1);
        size.batch = run.record->plan.global_batch.value_or(run.gpus) / run.gpus;
        size.runs.push_back({&run, std::move(*steps)});
      }
    }
    if (sizes.empty()) {
      why_not = "the records have no phases of steps to replay";
    } else if (buckets_of(record()).buckets.empty()) {
      why_not = "the records do not say what gradients are summed (plan.buckets_bytes)";
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
    std::vector<SumSample> samples;
    for (const Run& run : sources.collectives) {
      const auto more = sums_in(run);
      samples.insert(samples.end(), more.begin(), more.end());
    }
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
          "nothing tells what an all-reduce costs: there is no run of two or more replicas, "
          "no record of `paceline bench allreduce` and no network";
      return;
    }
    notes.push_back(
        "Latency and bandwidth are estimated from the steps themselves; `paceline bench allreduce "
        "--record` measures them.");
  }

  void tell() {
    const BucketPlan plan = buckets_of(record());
    if (plan.ready == ReadyTimes::by_operations) {
      notes.push_back(
          "When gradients are ready is estimated: every layer's backward as if it took equally "
          "long.");
    } else if (plan.ready == ReadyTimes::by_buckets) {
      notes.push_back(
          "When gradients are ready is estimated: as if buckets divided backward evenly.");
    }
    for (const MeasuredRun& each : largest().runs) {
      if (each.steps.sampled) continue;
      notes.push_back(
          "Samples of steps are missing, so the jitter of ranks is that of whole steps.");
      break;
    }
    if (!sources.network && !links->form_is_known && links->most_replicas < 3) {
      notes.push_back(
          fmt::format("All-reduces of one size do not tell their form apart; a {} is assumed.",
                      name_of(links->network.form)));
    }
    if (sources.scaling == Scaling::strong && sizes.size() == 1) {
      notes.push_back("Computing is taken in proportion to the batch, as one size was measured.");
    }
  }

  double batch_at(int gpus) const {
    const double batch = largest().batch;
    return sources.scaling == Scaling::strong ? batch * largest().gpus / gpus : batch;
  }

  // Forward and backward of a batch over those of the largest size's: a fixed part and one in
  // proportion, fitted over the sizes.
  double compute_factor(double batch) const {
    if (batch == largest().batch) return 1;
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
    return (fit[0] * batch + fit[1]) / (fit[0] * largest().batch + fit[1]);
  }

  Network network_with(const WhatIf& what_if) const {
    Network network = links->network;
    for (LinkLevel& level : network.levels) level.bytes_per_second *= what_if.links;
    return network;
  }

  Scene scene_at(int gpus, const WhatIf& what_if) const {
    const RunRecord& of = record();
    const BucketPlan plan = buckets_of(of, what_if.bucket_mb);
    if (plan.buckets.empty()) {
      throw Error(ErrorKind::usage, "the records lack the sizes of gradients, so buckets stay",
                  "--what-if bucket_mb", "measure once with this version, or leave it out");
    }
    const Network network = network_with(what_if);
    const double wire = wire_factor(of, what_if.wire);
    double all = 0;
    for (const BucketFacts& bucket : plan.buckets) all += bucket.bytes;
    Scene scene;
    scene.gpus = gpus;
    for (const BucketFacts& bucket : plan.buckets) {
      scene.buckets.push_back(
          {bucket.ready, bucket.bytes / all, network.seconds(bucket.bytes * wire, gpus)});
    }
    scene.overlap = of.plan.overlapped.value_or(false);
    scene.joint = of.parameters.real("clip_norm").value_or(0) > 0;
    const double batch = batch_at(gpus);
    scene.compute = compute_factor(batch);
    scene.input = batch / largest().batch;
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
  const Scene scene = facts.scene_at(gpus, what_if);
  const MeasuredSize& from = facts.largest();
  ReplayedStep result;
  result.gpus = gpus;
  std::vector<double> logs;
  for (const MeasuredRun& each : from.runs) {
    const StepCost cost = mean_step(each.steps, scene, logs.size() + 1);
    logs.push_back(std::log(cost.step));
    result.exposed_seconds += cost.exposed / static_cast<double>(from.runs.size());
    result.straggler_seconds += cost.straggler / static_cast<double>(from.runs.size());
  }
  result.step_seconds = std::exp(mean(logs));
  result.samples_per_second = facts.batch_at(gpus) * gpus / result.step_seconds;
  return result;
}

}  // namespace paceline
