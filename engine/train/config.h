// The resolved configuration of a training run, with all defaults filled in.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "engine/device/update.h"
#include "engine/facts/fact.h"
#include "engine/input/decode/image.h"
#include "engine/train/schedule.h"

namespace paceline {

// A goal that ends training before its last epoch: a good enough evaluation.

struct Goal {
  Metric metric = Metric::test_accuracy;  // of the test set
  double value = 0;                       // minimum for shares of samples, maximum for the loss

  bool met_by(const EpochFacts& quality) const;
  std::string text() const;  // "test_accuracy>=0.98"
};

// Parses "test_accuracy=0.98" or ">="; "test_loss=0.1" or "<=". Throws usage.
Goal parse_goal(std::string_view text);

enum class RateRule { none, linear, sqrt };
RateRule parse_rate_rule(const std::string& name);  // throws usage

enum class Evaluate { none, end, epoch };

constexpr int kManyEpochs = 1 << 20;  // if only steps are given

// Running averages of batch_norm in evaluation: their mean over replicas, or each rank's own on its
// share of the test set.
enum class NormStatistics { averaged, local };

// Settings are set from parameters of their names, the others in run/config.cpp.
struct TrainConfig {
  int replicas = 1;
  PACELINE_SETTING(int, batch_per_replica, 64);  // samples per forward pass
  int epochs = 1;
  std::size_t step_limit = 0;       // maximum number of steps; 0: none
  std::size_t steps_per_epoch = 0;  // from an endless stream; 0: one pass
  Optimizer optimizer = Optimizer::adam;
  PACELINE_SETTING(double, learning_rate, 0.001);  // for one replica
  RateRule rate_rule = RateRule::none;
  PACELINE_SETTING(double, momentum, 0.9);
  PACELINE_SETTING(double, beta2, 0.999);
  PACELINE_SETTING(std::uint64_t, seed, 1);
  bool drop_last = false;
  PACELINE_SETTING(std::size_t, shuffle_buffer, 0);
  Evaluate evaluate = Evaluate::end;
  NormStatistics norm_statistics = NormStatistics::averaged;
  std::filesystem::path weights;  // initial weights; empty: random from the seed
  PACELINE_SETTING(double, bucket_mb, 8);
  PACELINE_SETTING(double, last_bucket_mb, 1);
  PACELINE_SETTING(bool, overlap, true);
  PACELINE_SETTING(bool, update, true);
  PACELINE_SETTING(std::size_t, log_every, 0);    // steps; 0: by time
  bool check_replicas = true;                     // equal parameters on all ranks at the end
  PACELINE_SETTING(std::size_t, check_every, 0);  // and every so many steps; 0: no

  // The recipe; docs/training.md.
  ScheduleSpec schedule;
  PACELINE_SETTING(double, weight_decay, 0);
  bool decoupled_decay = true;               // false: l2, see engine/device/update.h
  PACELINE_SETTING(double, clip_norm, 0);    // 0: none
  PACELINE_SETTING(int, evaluate_every, 1);  // epochs, of Evaluate::epoch; the last one always
  std::optional<Goal> until;                 // ends the training; of Evaluate::epoch
  int accumulate = 1;                        // batches of a replica in one step
  Augmentation augment;                      // of training samples
  PACELINE_END_FACTS
};

// The samples of one step, over all replicas.
inline std::size_t compute_global_batch(const TrainConfig& config) {
  return static_cast<std::size_t>(config.batch_per_replica) *
         static_cast<std::size_t>(config.replicas) * static_cast<std::size_t>(config.accumulate);
}

// learning_rate, times replicas (linear) or their square root.
double scaled_rate(const TrainConfig& config);
// What of the run's length decides: all its epochs, even if a limit of steps ends it before; where
// only that is given, as many epochs as its steps are.
Schedule make_schedule(const TrainConfig& config, std::size_t steps_per_epoch);

}  // namespace paceline
