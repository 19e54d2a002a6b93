#include "analysis/predict/prediction.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "analysis/predict/replay.h"
#include "analysis/study/comparison.h"
#include "analysis/study/labels.h"
#include "analysis/study/scaling_series.h"
#include "engine/core/error.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

// The standard error of the logarithm of a mean, from its 95 % t interval.
double log_standard_error(const Estimate& mean) {
  if (!mean.interval || mean.count < 2) return 0;
  const double half = std::log(mean.interval->high / mean.interval->low) / 2;
  return half / t_quantile(static_cast<double>(mean.count) - 1);
}

// Of extreme inputs, sums may overflow.
bool is_finite(const Estimate& value) {
  return std::isfinite(value.value) && (!value.interval || (std::isfinite(value.interval->low) &&
                                                            std::isfinite(value.interval->high)));
}

std::vector<int> list_sizes(const std::vector<const Row*>& rows) {
  return mapped(rows, [](const Row* row) { return row->first()->layout.gpus; });
}

bool is_of_several_nodes(const Row* row) {
  return row->first()->layout.nodes.value_or(1) > 1;
}

// How many replicas a node holds. Rows of several nodes show it: the largest of them, unless the
// largest row has more on its one. Without such rows, where replicas are cores, the CPUs of a node
// bound it. Empty: unknown.
std::optional<double> replicas_a_node(const std::vector<const Row*>& rows) {
  const auto on_a_node = [](const Row* row) {
    const LayoutFacts& layout = row->first()->layout;
    return std::ceil(static_cast<double>(layout.gpus) / layout.nodes.value_or(1));
  };
  const auto several = std::find_if(rows.rbegin(), rows.rend(), is_of_several_nodes);
  if (several != rows.rend()) return std::max(on_a_node(*several), on_a_node(rows.back()));
  const Run& run = rows.back()->first();
  const auto cpus = run.cpus_per_replica();
  if (!run.replicas_are_cores() || run.machine.cpus <= 0 || !cpus || *cpus <= 0) return {};
  return std::max(std::floor(run.machine.cpus / *cpus), 1.0);
}

class SeriesPrediction {
 public:
  SeriesPrediction(const Study& study, const RowSeries& series, bool rates,
                   const std::vector<Run>& collectives, const PredictOptions& options)
      : study_(study), rows_(series.rows), collectives_(collectives), options_(options) {
    it_.kind = rows_.front()->first()->kind;
    it_.rates = rates;
    it_.unit = study.unit;
    it_.scaling = study.scaling;
    it_.replicas_are_cores = study.replicas_are_cores;
    it_.what_if = options.what_if;
    for (const Row* row : rows_) {
      const Estimate cost = mean_cost(*row, rates);
      noise_ = std::max(noise_, log_standard_error(cost));
      const double replicas = row->first()->layout.gpus;
      // Sessions of other sizes may have been slower.
      const double over_first = compute_ratio(*rows_.front(), *row, rates).estimate.value;
      costs_.push_back({replicas, mean_cost(*rows_.front(), rates).value / over_first * replicas});
      it_.sizes.push_back(
          {row->first()->layout.gpus, row->first()->layout.nodes, false, to_value(cost), ""});
    }
    note_quality();
  }

  Prediction make() {
    it_.predictors.push_back(laws());
    try {
      it_.predictors.push_back(replay());
    } catch (const Error& error) {  // of the sizes measured: a batch that is not a whole number
      it_.predictors.push_back({"replay", error.what(), {}, "", {}});
    }
    it_.used = chosen();
    if (it_.predictor().why_not.empty()) {
      for (const int gpus : options_.gpus) {
        const bool known = std::ranges::count(list_sizes(rows_), gpus) > 0;
        if (known && it_.what_if.empty()) {
          it_.notes.push_back(fmt::format("size {} is not predicted: the records have it", gpus));
        } else {
          it_.sizes.push_back(predicted(gpus));
        }
      }
    }
    std::ranges::stable_sort(it_.sizes, {}, &SizeValue::gpus);
    return std::move(it_);
  }

 private:
  // A prediction is of the time. Where the network got worse, a reader should know.
  void note_quality() {
    std::vector<std::string> worse, open;
    for (std::size_t i = 1; i < rows_.size(); ++i) {
      const Standing standing = stands_beside(*rows_.front(), *rows_[i], rows_.size() - 1);
      const std::string size = std::to_string(rows_[i]->first()->layout.gpus);
      if (standing.answer == Standing::no) worse.push_back(size);
      if (standing.answer == Standing::cannot_tell) {
        open.push_back(size + " (" + standing.values + ")");
      }
    }
    const std::string base = counted(rows_.front()->first()->layout.gpus, "replica");
    if (!worse.empty()) {
      it_.warnings.push_back(
          fmt::format("measured sizes that trained worse than {}: {}; larger sizes may, too", base,
                      join(worse, ", ")));
    }
    if (!open.empty()) {
      it_.notes.push_back(fmt::format("cannot tell whether these sizes trained as well as {}: {}",
                                      base, join(open, ", ")));
    }
  }

  // A cost is the seconds of the run, or of a sample.
  Estimate to_value(const Estimate& cost) const {
    return it_.rates ? transformed(cost, [](double each) { return 1 / each; }) : cost;
  }

  // `worker_time`: of laws.
  double value_at(double worker_time, double replicas) const {
    return it_.rates ? replicas / worker_time : worker_time / replicas;
  }

  HeldOut held_out(double error) const {
    std::vector<int> fitted = list_sizes(rows_);
    const int last = fitted.back();
    fitted.pop_back();
    return {fitted, last, error};
  }

  PredictorResult laws() {
    PredictorResult result{"laws", "", {}, "", {}};
    if (!it_.what_if.empty()) {
      result.why_not = "they know only sizes; a what-if needs the replay";
      return result;
    }
    if (costs_.size() < 2) {
      result.why_not = "one size was measured: a law needs two";
      return result;
    }
    const double off = *held_out_error(costs_, study_.scaling);  // of the cost
    result.held_out = held_out(it_.rates ? 1 / (1 + off) - 1 : off);
    forecast_.emplace(costs_, study_.scaling, noise_);
    it_.laws = forecast_->laws();
    if (costs_.size() == 2) {
      result.notes.push_back(
          "measure a third size: two do not distinguish laws, so all weigh the same, and the "
          "held-out error is that of ideal scaling");
    }
    return result;
  }

  PredictorResult replay() {
    PredictorResult result{"replay", "", {}, "", {}};
    replay_.emplace(sources(rows_));
    result.why_not = replay_->why_not();
    if (!result.why_not.empty()) return result;
    result.notes = replay_->notes();
    if (!it_.rates && !replay_->at(rows_.back()->first()->layout.gpus).fit_seconds) {
      result.why_not = "the replay predicts steps, not the time of a run";
      return result;
    }
    if (rows_.size() < 2) {
      result.no_held_out = "one size was measured";
      return result;
    }
    const Replay smaller(sources({rows_.begin(), rows_.end() - 1}));
    if (!smaller.why_not().empty()) {
      result.no_held_out = smaller.why_not();
      return result;
    }
    const int last = rows_.back()->first()->layout.gpus;
    const double measured = it_.sizes.back().value.value;
    const ReplayedStep step = smaller.at(last);
    if (!it_.rates && !step.fit_seconds) {
      result.no_held_out = "the smaller sizes predict steps, not the time of a run";
      return result;
    }
    const double error = to_value(step).value / measured - 1;
    if (std::isfinite(error)) {
      result.held_out = held_out(error);
    } else {
      result.no_held_out = "what the smaller sizes predict is not a finite number";
    }
    return result;
  }

  ReplaySources sources(std::vector<const Row*> rows) const {
    return {std::move(rows), study_.scaling, collectives_, options_.network};
  }

  Estimate to_value(const ReplayedStep& step) const {
    if (it_.rates) return {step.samples_per_second, step.samples_per_second_interval, 0};
    return {step.fit_seconds.value_or(0), step.fit_seconds_interval, 0};
  }

  // The one asked for, or that misses the held-out size by less.
  std::size_t chosen() const {
    const bool laws_can = it_.predictors[0].why_not.empty();
    const bool replay_can = it_.predictors[1].why_not.empty();
    if (options_.predictor == PredictorChoice::laws) return 0;
    if (options_.predictor == PredictorChoice::replay || !it_.what_if.empty()) return 1;
    if (laws_can != replay_can) return replay_can ? 1 : 0;
    const auto missed = [&](std::size_t i) {
      const auto& held_out = it_.predictors[i].held_out;
      return held_out ? std::abs(std::log1p(held_out->error))
                      : std::numeric_limits<double>::infinity();
    };
    return missed(1) < missed(0) ? 1 : 0;
  }

  SizeValue predicted(int gpus) const {
    SizeValue size{gpus, count_nodes(gpus), true, {}, beyond(gpus)};
    size.by_predictor.resize(it_.predictors.size());
    if (forecast_) size.by_predictor[0] = by_laws(gpus);
    for (const LawWeight& each : it_.laws) {
      size.by_law.push_back(value_at(each.law.at(gpus), gpus));
    }
    try {
      if (it_.predictors[1].why_not.empty()) {
        const ReplayedStep step =
            replay_->at(gpus, it_.what_if.empty() ? WhatIf{} : parse_what_if(it_.what_if));
        size.by_predictor[1] = to_value(step);
      }
    } catch (const Error&) {
      if (it_.used == 1) throw;  // laws can do without it
    }
    for (std::size_t i = 0; i < size.by_predictor.size(); ++i) {
      std::optional<Estimate>& each = size.by_predictor[i];
      if (each && !is_finite(*each)) each.reset();
      // Nothing says how far off it may be.
      const bool is_checked = it_.predictors[i].held_out && !size.crosses_unmeasured_link();
      if (each && !is_checked) each->interval.reset();
    }
    if (!size.by_predictor[it_.used]) {
      throw input_error(fmt::format("{} predicts no finite number for {}", it_.predictor().name,
                                    counted(gpus, "replica")),
                        rows_.front()->first().where,
                        "check the times of the records, and --network");
    }
    size.value = *size.by_predictor[it_.used];
    if (size.value.interval) widen(size);
    return size;
  }

  // To what may begin between measured sizes, or beyond them, and shows in none: by then the
  // worker-time is still that of the size below, or already that of the size above, or no replica
  // beyond the largest size helps, or a coherence that noise hides.
  void widen(SizeValue& size) const {
    std::vector<double> rivals;
    const auto above = std::ranges::find_if(
        costs_, [&](const SizedCost& each) { return each.replicas > size.gpus; });
    if (above != costs_.end()) rivals.push_back(above->cost);
    if (above != costs_.begin()) {
      const SizedCost& below = *std::prev(above);
      rivals.push_back(below.cost);
      if (above == costs_.end()) {
        rivals.push_back(below.cost * size.gpus / below.replicas);
        if (forecast_)
          rivals.push_back(std::max(rivals.back(), forecast_->by_usl_alone(size.gpus)));
      }
    }
    Interval& interval = *size.value.interval;
    for (const double cost : rivals) {
      const double value = value_at(cost * change_by_what_if(), size.gpus);
      const double margin = std::exp(kNormal90 * noise_);
      interval.low = std::min(interval.low, value / margin);
      interval.high = std::max(interval.high, value * margin);
    }
  }

  // Of the worker-time of the largest measured size.
  double change_by_what_if() const {
    if (it_.what_if.empty()) return 1;
    const int largest = rows_.back()->first()->layout.gpus;
    const double ratio = to_value(replay_->at(largest, parse_what_if(it_.what_if))).value /
                         to_value(replay_->at(largest)).value;
    return it_.rates ? 1 / ratio : ratio;
  }

  Estimate by_laws(int gpus) const {
    const Interval cost = forecast_->interval(gpus);
    Interval interval{value_at(cost.low, gpus), value_at(cost.high, gpus)};
    if (it_.rates) std::swap(interval.low, interval.high);
    return {value_at(forecast_->at(gpus), gpus), interval, 0};
  }

  std::optional<int> count_nodes(int gpus) const {
    const auto a_node = replicas_a_node(rows_);
    if (!a_node) return std::nullopt;
    return static_cast<int>(std::ceil(gpus / *a_node));
  }

  // What records know of levels: nodes. A described network may know more.
  std::string beyond(int gpus) const {
    const int largest = rows_.back()->first()->layout.gpus;
    if (gpus <= largest) return "";
    if (options_.network) {
      const int level = options_.network->highest_level(gpus);
      if (level <= options_.network->highest_level(largest)) return "";
      return options_.network->levels[static_cast<std::size_t>(level)].name;
    }
    if (std::ranges::any_of(rows_, is_of_several_nodes)) return "";
    if (const auto nodes = count_nodes(gpus)) return *nodes > 1 ? "node" : "";
    return "node?";
  }

  const Study& study_;
  const std::vector<const Row*>& rows_;
  const std::vector<Run>& collectives_;
  const PredictOptions& options_;
  std::vector<SizedCost> costs_;
  double noise_ = 0;
  std::optional<Forecast> forecast_;
  std::optional<Replay> replay_;
  Prediction it_;
};

std::string why_not(const Prediction& prediction) {
  std::vector<std::string> reasons;
  for (const PredictorResult& each : prediction.predictors) {
    if (!each.why_not.empty()) reasons.push_back(each.name + ": " + each.why_not);
  }
  return join(reasons, "; ");
}

// Predictions never become the data of others.
StoreContent measured_only(StoreContent content, std::vector<Run>& collectives) {
  for (const Record& record : content.records) {
    if (record->is_collective()) collectives.push_back(make_run(record));
  }
  std::erase_if(content.records, [](const Record& record) {
    return record->is_collective() || record->kind == "predicted";
  });
  return content;
}

}  // namespace

std::vector<Prediction> predict(const StoreContent& content, const PredictOptions& options) {
  if (!options.what_if.empty()) parse_what_if(options.what_if);  // before all else: it may be wrong
  if (!options.what_if.empty() && options.predictor == PredictorChoice::laws) {
    throw usage_error("laws of scaling know sizes only, so they have no what-if", "--what-if",
                      "use --by replay, or leave --by out");
  }
  std::vector<Run> collectives;
  const StoreContent measured = measured_only(content, collectives);
  std::vector<Prediction> all;
  std::size_t without = 0;
  std::string reason;
  for (const Study& study : make_studies(measured, options.only)) {
    Comparison comparison = compare(study, Base::matched);
    // The samples to a goal are a result of each size; its rate is predicted.
    comparison.rates = comparison.rates || study.scaling == Scaling::to_goal;
    const std::vector<RowSeries> series = make_row_series(study, comparison);
    for (RowSeries each : series) {
      std::erase_if(each.rows, [&](const Row* row) {
        return options.up_to && row->first()->layout.gpus > *options.up_to;
      });
      if (each.rows.empty()) continue;
      Prediction one = SeriesPrediction(study, each, comparison.rates, collectives, options).make();
      if (!one.predictor().why_not.empty()) {
        ++without;
        if (reason.empty()) reason = why_not(one);
        continue;
      }
      one.title = study_title(study);
      one.studies = study_names(study);
      if (!each.name.empty()) one.title += ": " + each.name;
      one.warnings.insert(one.warnings.end(), study.warnings.begin(), study.warnings.end());
      all.push_back(std::move(one));
    }
  }
  if (all.empty()) {
    if (reason.empty()) reason = "no row has what its table compares";
    const auto& rejected = content.rejected;  // may hold the sizes that lack
    throw input_error("nothing can be predicted: " + reason,
                      rejected.empty() ? "" : "ignored record: " + rejected.front().reason,
                      "docs/predict.md says what each predictor needs");
  }
  if (without > 0) {
    all.back().notes.push_back(
        fmt::format("{} other series cannot be predicted, the first because: {}", without, reason));
  }
  return all;
}

}  // namespace paceline
