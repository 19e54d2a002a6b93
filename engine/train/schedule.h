// The learning rate as a function of how far the training is, in epochs of samples: so it is the
// same in every world size, and after a run went on.
//
// First a warm-up over E epochs, a straight line from the rate of one replica to the scaled rate:
// with s = full / first,
//
//   rate = first (1 + (e / E) (s - 1))
//
// as Horovod's LearningRateWarmupCallback has it (after Goyal et al., arXiv 1706.02677, section
// 2.2), but for the epoch e at a step's begin where Horovod takes its end. A rate that does not
// grow with replicas (rule none) is warmed up from 0.
//
// Then what the decay says, r being the full rate, z the end rate, and t going from 0 at the
// warm-up's end to 1 at the run's:
//
//   constant    r
//   step        r f^n, n of the given epochs being past, counted from the run's begin
//   cosine      z + (r - z) (1 + cos(pi t)) / 2     (Loshchilov and Hutter, arXiv 1608.03983, (5))
//   polynomial  z + (r - z) (1 - t)^p               (Keras' PolynomialDecay)
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace paceline {

enum class Decay { constant, step, cosine, polynomial };
Decay decay_of(const std::string& name);  // throws usage

struct ScheduleSpec {
  Decay decay = Decay::constant;
  double warmup_epochs = 0;            // may be a fraction; 0: none
  std::vector<double> decay_epochs{};  // of step, growing
  double decay_factor = 0.1;           // of step
  double end_rate = 0;                 // of cosine and polynomial, for one replica
  double power = 1;                    // of polynomial
};

// "30,60,80". Throws usage where these are no growing numbers above zero.
std::vector<double> decay_epochs_of(std::string_view text);

class Schedule {
 public:
  // `first`: what a warm-up begins with; `full`: what it ends with; `end`: the spec's end rate,
  // scaled as the full one is. `epochs`: the run's length.
  Schedule(ScheduleSpec spec, double first, double full, double end, double epochs);

  // After `epochs` of training. At the end and beyond: the last rate.
  double rate(double epochs) const;
  double full() const { return full_; }

 private:
  double decayed(double epochs) const;

  ScheduleSpec spec_;
  double first_, full_, end_, epochs_;
};

}  // namespace paceline
