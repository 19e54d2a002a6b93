// What a trainer tells the optimizer in each step, and when it evaluates and ends.
#include <fmt/format.h>

#include "engine/core/clock.h"
#include "engine/train/evaluation.h"
#include "engine/train/statistics.h"
#include "engine/train/trainer.h"

namespace paceline {

// In samples, so that a schedule does not depend on the world's size.
double Trainer::epochs_done() const {
  const std::size_t samples =
      stream_.steps_per_epoch ? stream_.steps_per_epoch * stream_.global_batch : stream_.samples;
  return progress_.epoch +
         static_cast<double>(progress_.position_in_epoch) / static_cast<double>(samples);
}

UpdateRule Trainer::rule_of_step() {
  rate_ = schedule_->rate(epochs_done());
  UpdateRule rule = update_rule(config_.optimizer, rate_, config_.momentum, ++progress_.updates);
  (config_.decoupled_decay ? rule.decay : rule.l2) =
      config_.weight_decay * (config_.decoupled_decay ? rate_ : 1);
  rule.clip_norm = config_.clip_norm;
  rule.clip_value = config_.clip_value;
  return rule;
}

// The norm is of the whole gradient: every bucket must be reduced before the first update.
void Trainer::measure_gradients(const UpdateRule& rule) {
  for (std::size_t i = 0; i < reducer_->buckets().size(); ++i) reducer_->finish(i);
  clock_->end(Phase::communication);
  program_->measure_gradients(rule);
  clock_->end(Phase::update);
}

// Every rank has the same sums of an epoch, so the rate falls on all of them.
void Trainer::lower_rate_on_plateau() {
  if (!schedule_->end_epoch(outcome_.epochs.back()) || !setup_.notify) return;
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
  outcome_.epochs.back().test_loss = result.loss;
  outcome_.epochs.back().test_accuracy = result.accuracy;
  if (counts_top5()) outcome_.epochs.back().test_top5 = result.top5;
  enter(before);
  outcome_.evaluation_seconds += now_seconds() - start;
}

// Every rank has the same sums of an evaluation, so all of them end with the same step.
void Trainer::end_if_goal_is_reached() {
  if (!config_.until || outcome_.epochs.empty()) return;
  if (!config_.until->met_by(outcome_.epochs.back())) return;
  outcome_.goal_reached = true;
  total_steps_ = progress_.step;
}

}  // namespace paceline
