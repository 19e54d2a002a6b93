#include "analysis/predict/replay_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "engine/core/backend_stack.h"
#include "engine/core/bucket_cuts.h"
#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/facts/rank.h"

namespace paceline {

namespace {

constexpr std::size_t kQuantileSteps = 200;  // made from the quantiles of a rank
constexpr double kMebi = 1048576;

std::size_t count_warmup(const RunRecord& record) {
  const auto given = record.throughput->warmup_steps_excluded;
  return static_cast<std::size_t>(given ? *given
                                        : record.timing->warmup_steps_excluded.value_or(0));
}

// Piecewise linear through the quantiles, over their median; 1 where they are not known.
class Quantiles {
 public:
  explicit Quantiles(const StepQuantiles& q) {
    if (!q.p05 || !q.p50 || !q.p95 || !q.p99 || !q.max || *q.p50 <= 0) return;
    points_ = {{0, *q.p05},    {0.05, *q.p05}, {0.5, *q.p50},
               {0.95, *q.p95}, {0.99, *q.p99}, {1, *q.max}};
    for (auto& point : points_) point.second /= *q.p50;
  }
  double at(double share) const {
    for (std::size_t i = 1; i < points_.size(); ++i) {
      const auto& [x0, y0] = points_[i - 1];
      const auto& [x1, y1] = points_[i];
      if (share <= x1) return y0 + (y1 - y0) * (share - x0) / (x1 - x0);
    }
    return 1;
  }

 private:
  std::vector<std::pair<double, double>> points_;
};

std::vector<StepSeconds> spread(const PhaseSeconds& phases, const StepQuantiles& quantiles,
                                double steps) {
  const Quantiles factors(quantiles);
  double mean = 0;
  std::vector<double> all;
  for (std::size_t i = 0; i < kQuantileSteps; ++i) {
    all.push_back(factors.at((static_cast<double>(i) + 0.5) / kQuantileSteps));
    mean += all.back() / kQuantileSteps;
  }
  std::vector<StepSeconds> made;
  for (const double factor : all) {
    const double f = factor / mean / steps;
    made.push_back({phases.input * f, phases.forward * f, phases.backward * f,
                    phases.communication / steps, phases.update * f, phases.other * f});
  }
  return made;
}

// The facts of each rank, or of the mean rank if the record has too many for a list.
std::vector<std::pair<PhaseSeconds, StepQuantiles>> ranks_in(const RunRecord& record) {
  std::vector<std::pair<PhaseSeconds, StepQuantiles>> ranks;
  for (const RankFacts* rank : record.known_ranks()) {
    if (rank->phases) {
      ranks.emplace_back(*rank->phases, rank->step_seconds.value_or(StepQuantiles{}));
    }
  }
  return ranks;
}

double real_in(const RunRecord& record, const char* name, double otherwise) {
  return record.parameters.real(name).value_or(otherwise);
}

// The shares of backward after which gradients are ready.
std::vector<double> ready_shares(const PlanFacts& plan, ReadyTimes& how) {
  std::vector<double> shares;
  const auto& last = plan.gradients.back().backward_seconds;
  how = last && *last > 0 ? ReadyTimes::measured : ReadyTimes::by_operations;
  for (std::size_t i = 0; i < plan.gradients.size(); ++i) {
    const bool measured = how == ReadyTimes::measured;
    shares.push_back(measured
                         ? plan.gradients[i].backward_seconds.value_or(*last) / *last
                         : static_cast<double>(i + 1) / static_cast<double>(plan.gradients.size()));
  }
  return shares;
}

std::size_t share_of_cap(double mebibytes) {
  return static_cast<std::size_t>(std::clamp(mebibytes, 0.0, 1e9) * kMebi);
}

double element_bytes(std::string_view precision) {
  for (const auto& [name, bytes] : {std::pair{"bf16", 2}, {"fp16", 2}, {"fp32", 4}, {"fp64", 8}}) {
    if (precision == name) return bytes;
  }
  return 0;
}

// Gradients are fp32, also where planes are bf16; the reference device has fp64.
double gradient_bytes(const RunRecord& record) {
  return std::max(4.0, element_bytes(record.parameters.text("precision").value_or("fp32")));
}

double squares_missed(const ReplayResidual& rest, const std::vector<ComparedSize>& sizes) {
  double missed = 0;
  for (const ComparedSize& size : sizes) {
    const double by = size.measured - size.replayed - rest.seconds(size.sums);
    missed += by * by;
  }
  return missed;
}

const std::vector<std::string> kNames = {"precision-on-the-wire", "bucket_mb", "links"};
const std::vector<std::string> kPrecisions = {"bf16", "fp16", "fp32"};

[[noreturn]] void complain(const std::string& what, const std::string& hint) {
  throw usage_error(what, "--what-if", hint);
}

double above_zero(const std::string& name, std::string_view text, const char* example) {
  const auto value = to_real(text);
  if (!value || *value <= 0 || *value > 1e6) {
    complain(fmt::format("{} cannot be \"{}\"", name, text), example);
  }
  return *value;
}

void set(WhatIf& what_if, const std::string& name, const std::string& value) {
  if (name == "links") {
    const std::string_view number(value.data(), value.size() - (value.ends_with('x') ? 1 : 0));
    what_if.links = above_zero(name, number, "give links=2x for links of twice the bandwidth");
  } else if (name == "bucket_mb") {
    what_if.bucket_mb = above_zero(name, value, "give a size in MiB, as bucket_mb=32");
  } else {
    if (std::find(kPrecisions.begin(), kPrecisions.end(), value) == kPrecisions.end()) {
      complain(fmt::format("gradients are not sent as \"{}\"", value),
               "give " + join(kPrecisions, ", "));
    }
    what_if.wire = value;
  }
}

}  // namespace

std::optional<RunSteps> find_steps(const Run& run) {
  const RunRecord& record = *run.record;
  const auto steps = record.throughput->steps;
  const auto batch = record.plan.global_batch;
  if (!run.samples_per_second || *run.samples_per_second <= 0 || !steps || *steps <= 0 || !batch) {
    return std::nullopt;
  }
  RunSteps result{.ranks = all_steps(record, run.where, count_warmup(record)),
                  .step_seconds = *batch / *run.samples_per_second};
  if (!result.ranks.empty()) return result;
  result.sampled = false;
  for (const auto& [phases, quantiles] : ranks_in(record)) {
    result.ranks.push_back(spread(phases, quantiles, *steps));
  }
  return result.ranks.empty() ? std::nullopt : std::optional(result);
}

BucketPlan plan_buckets(const RunRecord& record, std::optional<double> cap_mb) {
  const PlanFacts& plan = record.plan;
  BucketPlan result;
  const bool cut = cap_mb || record.layout.gpus == 1;
  if (plan.gradients.empty()) {
    result.ready = ReadyTimes::by_buckets;
    if (cut) return result;
    const auto count = static_cast<double>(plan.bucket_bytes.size());
    for (const std::int64_t bytes : plan.bucket_bytes) {
      const auto so_far = static_cast<double>(result.buckets.size() + 1);
      result.buckets.push_back({static_cast<double>(bytes), so_far / count});
    }
    return result;
  }
  const std::vector<double> shares = ready_shares(plan, result.ready);
  std::vector<std::size_t> ready = mapped(plan.gradients, [&](const ReadyGradientsFacts& each) {
    return static_cast<std::size_t>(each.bytes);
  });
  const double cap = cap_mb ? *cap_mb : real_in(record, "bucket_mb", 8);
  std::size_t begin = 0;
  for (const std::size_t last :
       bucket_cuts(ready, share_of_cap(cap), share_of_cap(real_in(record, "last_bucket_mb", 1)))) {
    result.buckets.push_back({static_cast<double>(ready[last] - begin), shares[last]});
    begin = ready[last];
  }
  return result;
}

double wire_factor(const RunRecord& record) {
  const auto stack = record.parameters.text("backend");
  double factor = 1;
  if (!stack) return factor;
  for (const std::string& wrapper : split_stack(*stack).wrappers) {
    if (const double bytes = element_bytes(wrapper); bytes > 0)
      factor = bytes / gradient_bytes(record);
  }
  return factor;
}

double wire_factor(const RunRecord& record, const std::string& precision) {
  if (precision.empty()) return wire_factor(record);
  const double bytes = element_bytes(precision);
  if (bytes > 0) return bytes / gradient_bytes(record);
  throw usage_error("no backend sends gradients as \"" + precision + "\"",
                    "--what-if precision-on-the-wire", "give bf16, fp16 or fp32");
}

std::vector<SumSample> sums_in(const Run& run) {
  std::vector<SumSample> samples;
  const auto& facts = run->collective;
  if (!facts || (!facts->operation.empty() && facts->operation != "all_reduce")) return samples;
  const double factor = wire_factor(*run.record);
  for (const CollectiveRow& row : facts->rows) {
    samples.push_back({static_cast<double>(row.bytes) * factor, 1, run->layout.gpus,
                       run->layout.nodes.value_or(1), row.seconds});
  }
  return samples;
}

std::optional<SumSample> sums_of_steps(const Run& run) {
  const RunRecord& record = *run.record;
  const auto ranks = ranks_in(record);
  const auto steps = record.throughput->steps;
  if (record.layout.gpus < 2 || ranks.empty() || !steps || *steps <= 0) return std::nullopt;
  SumSample sample{0, 0, record.layout.gpus, record.layout.nodes.value_or(1), 0};
  double least = std::numeric_limits<double>::infinity();
  for (const auto& [phases, quantiles] : ranks) {
    least = std::min(least, phases.communication + phases.communication_hidden);
  }
  for (const BucketFacts& bucket : plan_buckets(record).buckets) {
    sample.bytes += bucket.bytes * wire_factor(record);
    sample.calls += 1;
  }
  sample.seconds = least / *steps;
  return sample.bytes > 0 && sample.seconds > 0 ? std::optional(sample) : std::nullopt;
}

WhatIf parse_what_if(const std::string& text) {
  WhatIf what_if;
  std::vector<std::string> given;
  for (const std::string& part : split(text, ',')) {
    const std::size_t at = part.find('=');
    const std::string name(trim(part.substr(0, at)));
    if (std::find(kNames.begin(), kNames.end(), name) == kNames.end()) {
      complain(fmt::format("unknown change \"{}\"", name), suggestion(name, kNames));
    }
    if (std::find(given.begin(), given.end(), name) != given.end()) {
      complain(fmt::format("{} is given twice", name), "give it once");
    }
    given.push_back(name);
    set(what_if, name, at == std::string::npos ? "" : std::string(trim(part.substr(at + 1))));
  }
  return what_if;
}

double ReplayResidual::with_rest(double replayed, double sums) const {
  return std::max(replayed + seconds(sums), replayed / 10);
}

ReplayResidual fit_residual(const std::vector<ComparedSize>& sizes) {
  if (sizes.empty()) return {};
  double lacks = 0, products = 0, squares = 0;
  for (const ComparedSize& size : sizes) {
    lacks += size.measured - size.replayed;
    products += (size.measured - size.replayed) * size.sums;
    squares += size.sums * size.sums;
  }
  const ReplayResidual fixed{lacks / static_cast<double>(sizes.size()), 0};
  if (sizes.size() == 1 || squares == 0) return fixed;
  const ReplayResidual share{0, products / squares};
  return squares_missed(share, sizes) < squares_missed(fixed, sizes) ? share : fixed;
}

}  // namespace paceline
