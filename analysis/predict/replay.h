// Predicts a training step by replaying its events: what each replica computes, when the gradients
// of each bucket are ready, and the all-reduces, one after another on the communication lane.
//
// Needs measured runs of at least one size, with phases. It uses, as far as records have them:
//   step samples     the seconds of each phase of each step and rank, drawn anew for p replicas, so
//                    that the slowest of p is felt (else: quantiles of steps)
//   plan.gradients   when each gradient is ready (else: in proportion to bytes; a note says so)
//   collective       alpha and beta of all-reduces, of `bench allreduce` or imported (else: of the
//                    runs' own communication, or of a described network)
// A call never sees runs that it is not given, so a caller holds sizes out by leaving rows away.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analysis/predict/network.h"
#include "analysis/predict/replay_facts.h"
#include "analysis/statistics/statistics.h"
#include "analysis/study/study.h"

namespace paceline {

struct ReplaySources {
  std::vector<const Row*> rows;        // of one series: one backend, one set of axes; any order
  Scaling scaling = Scaling::weak;     // how the batch and the steps follow from the size
  std::vector<Run> collectives;        // records with a section `collective`; others are ignored
  std::optional<LinkNetwork> network;  // described links, instead of the measured ones
};

struct ReplayedStep {
  int gpus = 1;
  double step_seconds = 0;  // mean over steps
  double samples_per_second = 0;
  std::optional<double> fit_seconds;     // empty: the runs have none
  Interval samples_per_second_interval;  // 90 %, of the median of as many runs as a row has
  std::optional<Interval> fit_seconds_interval;
};

class Replay {
 public:
  explicit Replay(ReplaySources sources);
  ~Replay();
  Replay(Replay&&) noexcept;

  // One sentence why there is nothing to replay; empty: at() may be called.
  const std::string& why_not() const;
  // What was estimated for lack of records, one sentence each.
  const std::vector<std::string>& notes() const;
  // Throws usage for what the runs cannot tell: another size of buckets where sizes of gradients
  // are unknown, a batch that is not a whole number.
  ReplayedStep at(int gpus, const WhatIf& what_if = {}) const;

 private:
  struct Facts;
  std::unique_ptr<Facts> facts_;
};

}  // namespace paceline
