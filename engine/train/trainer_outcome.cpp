// What a run leaves: the other ranks' times, and what was trained.

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "engine/core/clock.h"
#include "engine/core/hash.h"
#include "engine/facts/step_times.h"
#include "engine/train/evaluation.h"
#include "engine/train/gather.h"
#include "engine/train/outcome.h"
#include "engine/train/trainer.h"
#include "engine/train/weights.h"

namespace paceline {

// When backward has finished each gradient, as far as the program has timed its operations.
std::vector<ReadyGradientsFacts> Trainer::ready_gradients() const {
  const std::vector<double> seconds = program_->backward_seconds();
  std::vector<ReadyGradientsFacts> ready;
  int operation = last_operation();
  double sum = 0;
  for (const ReadyPoint& point : plan_.ready) {
    for (; !seconds.empty() && operation >= point.operation; --operation) {
      sum += seconds[static_cast<std::size_t>(operation)];
    }
    ready.push_back({static_cast<std::int64_t>(point.elements * size_of(plan_.real)),
                     seconds.empty() ? std::nullopt : fact::Real(sum)});
  }
  return ready;
}

void Trainer::gather(TrainingOutcome& outcome, RankFacts mine) {
  Timing& timing = outcome.timing;
  outcome.ranks.resize(static_cast<std::size_t>(communicator_.size()));
  gather_steps(communicator_, clock_->steps(), outcome.ranks);
  mine.phases = sum_phases({clock_->steps(), reducer_->busy_seconds() - summed_before_});
  outcome.each_rank = paceline::gather(communicator_, mine);
  for (const Timing& rank : paceline::gather(communicator_, timing)) {
    timing.compile_seconds = std::max(timing.compile_seconds, rank.compile_seconds);
    for (std::size_t i = 0; i < rank.epoch_seconds.size(); ++i) {
      timing.epoch_seconds[i] = std::max(timing.epoch_seconds[i], rank.epoch_seconds[i]);
    }
  }
  timing.first_epoch_seconds = timing.epoch_seconds.front();
  timing.fit_seconds = std::accumulate(timing.epoch_seconds.begin(), timing.epoch_seconds.end(),
                                       *timing.compile_seconds);
  timing.checkpoint_seconds = outcome.checkpoints.blocked_seconds;
  timing.warmup_steps_excluded = count_warmup(outcome);
  QualityFacts& quality = outcome.quality;
  quality.parameter_checksum = to_hex(parameter_checksum(*program_, plan_));
  if (!quality.epochs.empty()) {
    quality.test_accuracy = quality.epochs.back().test_accuracy;
    quality.test_top5 = quality.epochs.back().test_top5;
  }
  PlanFacts& plan = outcome.plan;
  plan.global_batch = static_cast<double>(stream_.global_batch);
  plan.learning_rate = schedule_->full();
  for (const Bucket& bucket : reducer_->buckets()) {
    plan.bucket_bytes.push_back(
        static_cast<std::int64_t>((bucket.end - bucket.begin) * size_of(plan_.real)));
  }
  plan.gradients = ready_gradients();
  plan.parameter_count = plan_.parameter_count;
  plan.flops_per_sample = plan_.flops_per_sample;
  if (plan_.reads_tokens()) plan.tokens_per_sample = plan_.labels_per_sample;
  plan.memory_bytes = memory_.facts();
  plan.overlapped = overlap_;
  outcome.implementations = program_->implementations();
  outcome.device_description = setup_.device->description();
}

// What a trainer tells the optimizer in each step, and when it evaluates and ends.

// In samples, so that a schedule does not depend on the world's size.
double Trainer::epochs_done() const {
  const std::size_t samples =
      stream_.steps_per_epoch ? stream_.steps_per_epoch * stream_.global_batch : stream_.samples;
  return progress_.epoch +
         static_cast<double>(progress_.position_in_epoch) / static_cast<double>(samples);
}

UpdateRule Trainer::rule_of_step() {
  rate_ = schedule_->rate(epochs_done());
  UpdateRule rule =
      update_rule(config_.optimizer, rate_, config_.momentum, ++progress_.updates, config_.beta2);
  (config_.decoupled_decay ? rule.decay : rule.l2) =
      config_.weight_decay * (config_.decoupled_decay ? rate_ : 1);
  rule.clip_norm = config_.clip_norm;
  return rule;
}

// The norm is of the whole gradient: every bucket must be reduced before the first update.
void Trainer::measure_gradients(const UpdateRule& rule) {
  for (std::size_t i = 0; i < reducer_->buckets().size(); ++i) reducer_->finish(i);
  if (communicator_.size() > 1) clock_->end(Phase::communication);
  program_->measure_gradients(rule);
  clock_->end(Phase::update);
}

// Every rank has the same sums of an epoch, so the rate falls on all of them.
void Trainer::lower_rate_on_plateau() {
  if (!schedule_->end_epoch(outcome_.quality.epochs.back()) || !setup_.notify) return;
  setup_.notify(fmt::format("{} did not improve: the learning rate falls to {:.4g} after epoch {}",
                            to_string(config_.schedule.metric), schedule_->rate(progress_.epoch),
                            progress_.epoch));
}

bool Trainer::evaluates_after_epoch() const {
  const bool last = progress_.step >= total_steps_;
  if (config_.evaluate == Evaluate::end) return last;
  return config_.evaluate == Evaluate::epoch &&
         (last || progress_.epoch % config_.evaluate_every == 0);
}

void Trainer::evaluate_now() {
  const double start = now_seconds();
  const RunPart before = enter(RunPart::evaluation);
  Evaluation result;
  const auto measure = [&] {
    result = evaluate(*program_, setup_.data->test, communicator_, feeding_);
  };
  if (config_.norm_statistics == NormStatistics::averaged) {
    with_averaged_statistics(*program_, plan_, communicator_, measure);
  } else {
    measure();
  }
  evaluation_ += result.input;
  outcome_.quality.epochs.back().test_loss = result.loss;
  outcome_.quality.epochs.back().test_accuracy = result.accuracy;
  if (counts_top5()) outcome_.quality.epochs.back().test_top5 = result.top5;
  enter(before);
  *outcome_.timing.evaluation_seconds += now_seconds() - start;
}

// Every rank has the same sums of an evaluation, so all of them end with the same step.
void Trainer::end_if_goal_is_reached() {
  if (!config_.until || outcome_.quality.epochs.empty()) return;
  if (!config_.until->met_by(outcome_.quality.epochs.back())) return;
  outcome_.goal_reached = true;
  total_steps_ = progress_.step;
}

}  // namespace paceline
