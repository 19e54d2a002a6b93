// What a point's efficiency was lost to, against its base, as far as the phases of the records say.
//
// The loss is what a sample costs more than at the base, in seconds of all ranks, as a share of its
// cost here. The growth of the cost's logarithm is divided among the parts by the logarithmic mean
// of both costs, so the parts add up to the whole in every run and on average. B. W. Ang, "The LMDI
// approach to decomposition analysis", Energy Policy 33, 2005.
//
// Each part is judged for itself, whether or not the whole is a loss: parts may cancel.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/study/contrast.h"

namespace paceline {

// Seconds per sample, of all ranks together.
struct Costs {
  double input = 0, launch = 0, communication = 0, straggler = 0, compute = 0;
  double outside = 0;  // outside of steps: start-up, choice of algorithms, time between epochs
  // What the steps would save if the rank that computes longest took as long as the next one. Part
  // of `straggler` and `compute`.
  double of_slowest = 0;
  double in_steps() const { return input + launch + communication + straggler + compute; }
  double total() const { return in_steps() + outside; }
};

// Of totals of ranks, of which communication and stragglers cannot be distinguished.
constexpr char kWaiting[] = "communication or straggler";

// One entry for each run, of the sums in its record. Empty if a run has no phases, or if rates
// leave out steps that the phases contain.
std::optional<std::vector<Costs>> record_costs(const Row& row, bool rates);

// A part of the efficiency that was lost, as a share. Negative: a gain.
struct Loss {
  std::string label;  // input, communication, straggler, launch, compute, outside of steps
  Judged share;
  double p = 1;  // that it is none, for itself
};

// "communication 20.1 [18.0, 22.2], compute 5.2, others 0.3": in points, largest first. They add up
// to `all`. With `as_gain` the signs are turned.
std::string parts_text(const std::vector<Loss>& parts, double all, bool as_gain = false);
// "17.4 [16.9, 17.9]", in points.
std::string points_text(const Judged& share, bool as_gain = false);

class LossParts {
 public:
  // `is_bound`: stragglers are part of communication.
  LossParts(const Row& base, const std::vector<Costs>& base_costs, const Row& row,
            const std::vector<Costs>& costs, bool is_bound);

  const Judged& all() const { return all_; }
  const std::vector<Loss>& parts() const { return parts_; }

  // The largest certain losses and gains, first the largest; tested together (Holm), with those of
  // as many `points`.
  std::vector<Loss> certain_losses(std::size_t points = 1) const;
  std::vector<Loss> certain_gains(std::size_t points = 1) const;

  // The largest part, and all that are losses beyond the noise and cannot be distinguished from it.
  // Empty: the largest is within the noise.
  std::vector<std::string> largest() const;

  // The cost of computing a sample, over the base's.
  Judged compute_ratio() const;
  // What is lost over a base that computed a sample as fast as the row does.
  Judged all_but_compute() const;
  // What mending the slowest rank would give back; see Costs::of_slowest.
  Judged given_back() const;
  // The samples over the base's, and what this took beyond what a sample costs more: logarithms.
  Judged samples() const;
  Judged samples_beyond_cost() const;

 private:
  using Indices = std::vector<std::size_t>;  // of the costs that are one part

  Difference growth(const Indices& costs) const;
  Judged judged_by(const OfMeans& what) const;
  std::vector<Loss> certain(std::size_t points, double sign) const;

  std::vector<RowValues> rows_;
  WeakEvidence doubt_;
  std::vector<Indices> costs_;  // of each part
  Judged all_;
  double scale_ = 1;  // of the growth of a part: that it is a share of the cost
  std::vector<Loss> parts_;
};

}  // namespace paceline
