// What a run leaves: the other ranks' times, and what was trained.
#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

#include "engine/train/gather_steps.h"
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

}  // namespace paceline
