// Laws of scaling: what a run of so many replicas takes where nothing disturbs it, and so what is
// true of every speed-up, every loss and its cause.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "analysis/study/scaling.h"

namespace paceline::laboratory {

// Seconds of one run. All ranks of a run are alike, or late in turn, which their totals do not
// show.
struct Parts {
  double compute = 0, input = 0, communication = 0, launch = 0;
  double outside = 0;  // of steps
  double warm_up = 0;  // of compute, in the first steps

  double in_steps() const { return compute + input + communication + launch; }
  double total() const { return in_steps() + outside; }
};

struct Law {
  std::string name;
  Scaling scaling = Scaling::fixed_epochs;
  std::function<Parts(int replicas)> parts;

  // What is compared: seconds of a run, of weak scaling seconds of a sample.
  double cost(int replicas) const;
  double speed_up(int replicas) const { return cost(1) / cost(replicas); }
  double efficiency(int replicas) const { return speed_up(replicas) / replicas; }
  double fraction(int replicas) const;  // Karp and Flatt's
  // Where the efficiency goes, largest first: the costs of a sample, less those of the base, over
  // the point's cost.
  struct Lost {
    std::string label;  // as explain has it
    double points = 0;  // a share
  };
  std::vector<Lost> losses(int replicas) const;
};

// One training step, in units of what one replica computes in a step of its whole batch. What it
// makes of a run depends on the type of scaling.
struct StepLaw {
  const char* name = "ideal";
  double per_run = 0;     // once, in units of 100 steps
  double per_step = 0;    // in each step of any number of replicas, waiting for the host
  double per_sample = 0;  // of input, by one reader for all: a batch of one replica takes this
  double enough_for = 0;  // replicas that the one reader can feed; 0: all
  double slow_base = 0;   // what one replica takes longer than it should
  int warm_up = 0;        // steps that take three times as long
  std::function<double(double)> slow_many = [](double) { return 0.0; };      // likewise, N > 1
  std::function<double(double)> communication = [](double) { return 0.0; };  // a step, N > 1

  Law law(Scaling scaling) const;
};

const std::vector<StepLaw>& step_laws();
const StepLaw& step_law(const std::string& name);

Law ideal_law();  // of fixed epochs
// Of fixed epochs, all of whose loss is communication: N replicas take overhead(N) times the cost
// of one, a sample.
Law overhead_law(const std::string& name, const std::function<double(double)>& overhead);

constexpr double kLawSeconds = 100;  // of one replica
constexpr double kLawSamples = 6400;

}  // namespace paceline::laboratory
