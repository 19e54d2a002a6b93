// The learning rate as a function of progress, measured in epochs of samples. So it is the same for
// every world size and after a resume.
//
// First an optional linear warm-up over E epochs, from the rate of one replica to the scaled rate.
// With s = full / first,
//
//   rate = first (1 + (e / E) (s - 1))
//
// as in Horovod's LearningRateWarmupCallback (after Goyal et al., arXiv 1706.02677, section 2.2),
// except that e is the epoch at the start of a step, while Horovod uses its end. A rate that does
// not scale with replicas (rule none) warms up from 0.
//
// Then the decay. r is the full rate, z the end rate, and t goes from 0 at the end of the warm-up
// to 1 at the end of the run:
//
//   constant    r
// step        r f^n, n being the number of given epochs that have passed since the start
//   cosine      z + (r - z) (1 + cos(pi t)) / 2     (Loshchilov and Hutter, arXiv 1608.03983, (5))
//   plateau     r, multiplied by f, down to z, after each epoch that ends a plateau of a metric
//
// A plateau is what Keras' ReduceLROnPlateau takes for one. An epoch improves the metric if it is
// better than the best so far by more than min_delta. After `patience` epochs in a row that do not,
// the rate falls, and the next `cooldown` epochs are not counted. It is a function of the epochs'
// quality, which is the same on all ranks and in every checkpoint.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/facts/training.h"

namespace paceline {

// The measures of quality that decide something in a run: its end, or its learning rate.

enum class Metric { test_loss, test_accuracy, train_loss, train_accuracy };

std::string_view to_string(Metric metric);  // "test_loss"
std::optional<Metric> find_metric(std::string_view name);

// Negative: not measured in this epoch.
std::optional<double> metric_at(const EpochFacts& quality, Metric metric);

bool is_loss(Metric metric);  // smaller is better; of the others, larger
bool is_of_test(Metric metric);

enum class Decay { constant, step, cosine, plateau };
Decay parse_decay(const std::string& name);  // throws usage

struct ScheduleSpec {
  Decay decay = Decay::constant;
  PACELINE_SETTING(double, warmup_epochs, 0);   // may be fractional; 0: none
  std::vector<double> decay_epochs{};           // for step; increasing
  PACELINE_SETTING(double, decay_factor, 0.1);  // for step and plateau
  PACELINE_SETTING(double, end_rate, 0);        // for cosine and plateau, for one replica
  Metric metric = Metric::test_loss;            // for plateau, and what follows
  PACELINE_SETTING(int, patience, 10);
  PACELINE_SETTING(double, min_delta, 1e-4);
  PACELINE_SETTING(int, cooldown, 0);
  PACELINE_END_FACTS
};

// Parses "30,60,80". Throws usage unless the numbers are positive and increasing.
std::vector<double> parse_decay_epochs(std::string_view text);

class Schedule {
 public:
  // `first` is the start of the warm-up and `full` its end. `end` is the spec's end rate, scaled
  // like the full rate. `epochs` is the length of the run.
  Schedule(ScheduleSpec spec, double first, double full, double end, double epochs);

  // The rate after `epochs` of training. Constant after the end.
  double rate(double epochs) const;
  double full() const { return full_; }
  // Call after each epoch, and on resume for those before. Returns true if the rate falls now.
  bool end_epoch(const EpochFacts& quality);

 private:
  double decayed(double epochs) const;

  ScheduleSpec spec_;
  double first_, full_, end_, epochs_;
  double fallen_;               // for plateau: the rate after the warm-up
  std::optional<double> best_;  // of the metric
  int waited_ = 0, resting_ = 0;
};

}  // namespace paceline
