// A row's means over its runs, for the columns of a table.
#pragma once

#include <optional>
#include <string>

#include "analysis/study/comparison.h"

namespace paceline {

struct RowFacts {
  const Row* row = nullptr;
  const SpeedUp* speed_up = nullptr;  // null without a base
  std::optional<Estimate> fit_seconds, samples_per_second;
  std::optional<Estimate> samples_per_second_per_replica;
  std::optional<Estimate> efficiency;         // see SpeedUp::efficiency
  std::optional<Estimate> utilization;        // of GPUs, 0 to 1
  std::optional<Estimate> energy_efficiency;  // samples per joule over the base's
  std::optional<double> step_seconds;
  // Shares of the step, over ranks and runs: waiting for input, waiting for communication.
  std::optional<double> input_stall, exposed_communication;

  // "lower accuracy"; empty: as good as its base, as far as is known.
  std::string lower_quality() const {
    return speed_up && speed_up->lost ? speed_up->lost->label() : "";
  }
  const Run& run() const { return row->first(); }
};

// Over the runs that know the fact. Empty if none does. `estimate`: a geometric mean with its
// interval.
std::optional<double> mean(const Row& row, const RunFact& fact);
std::optional<Estimate> estimate(const Row& row, const RunFact& fact);

RowFacts row_facts(const Study& study, const Comparison& comparison, std::size_t index);

}  // namespace paceline
