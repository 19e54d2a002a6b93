// What a run leaves: the other ranks' times, and what was trained.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

#include "engine/core/clock.h"
#include "engine/train/evaluation.h"
#include "engine/train/outcome.h"
#include "engine/train/trainer.h"
#include "engine/train/weights.h"

namespace paceline {

// When backward has finished each gradient, as far as the program has timed its operations.
std::vector<ReadyGradients> Trainer::ready_gradients() const {
  const std::vector<double> seconds = program_->backward_seconds();
  std::vector<ReadyGradients> ready;
  int operation = last_operation();
  double sum = 0;
  for (const ReadyPoint& point : plan_.ready) {
    for (; !seconds.empty() && operation >= point.operation; --operation) {
      sum += seconds[static_cast<std::size_t>(operation)];
    }
    ready.push_back({point.elements * size_of(plan_.real), seconds.empty() ? -1 : sum});
  }
  return ready;
}

void Trainer::gather(TrainingOutcome& outcome) {
  const auto size = static_cast<std::size_t>(communicator_.size());
  const std::array<double, 3> sums = {reducer_->busy_seconds() - summed_before_,
                                      outcome.ranks[0].input_ready, compile_seconds_};
  std::vector<double> all_sums(sums.size() * size);
  communicator_.all_gather(sums.data(), sizeof sums, all_sums.data());
  outcome.ranks.resize(size);
  gather_steps(communicator_, clock_->steps(), outcome.ranks);
  for (std::size_t r = 0; r < size; ++r) {
    outcome.ranks[r].communication_busy = all_sums[sums.size() * r];
    outcome.ranks[r].input_ready = all_sums[sums.size() * r + 1];
    outcome.compile_seconds = std::max(outcome.compile_seconds, all_sums[sums.size() * r + 2]);
  }
  std::vector<double> epochs(outcome.epoch_seconds.size() * size);
  communicator_.all_gather(outcome.epoch_seconds.data(),
                           outcome.epoch_seconds.size() * sizeof(double), epochs.data());
  for (std::size_t i = 0; i < epochs.size(); ++i) {
    double& slowest = outcome.epoch_seconds[i % outcome.epoch_seconds.size()];
    slowest = std::max(slowest, epochs[i]);
  }
  outcome.fit_seconds = std::accumulate(outcome.epoch_seconds.begin(), outcome.epoch_seconds.end(),
                                        outcome.compile_seconds);
  outcome.parameter_checksum = parameter_checksum(*program_, plan_);
  outcome.global_batch = stream_.global_batch;
  outcome.learning_rate = schedule_->full();
  for (const Bucket& bucket : reducer_->buckets()) {
    outcome.bucket_bytes.push_back((bucket.end - bucket.begin) * size_of(plan_.real));
  }
  outcome.gradients = ready_gradients();
  outcome.parameter_count = plan_.parameter_count;
  outcome.flops_per_sample = plan_.flops_per_sample;
  outcome.memory = memory_;
  outcome.overlapped = overlap_;
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
