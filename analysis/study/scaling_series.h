// A series of increasing numbers of replicas: one line of a plot, and the subject of a finding.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/study/comparison.h"

namespace paceline {

// A row's means over its runs, for the columns of a table.

struct RowFacts {
  const Row* row = nullptr;
  const SpeedUp* speed_up = nullptr;    // null without a base
  const Standing* among_all = nullptr;  // see Comparison
  std::optional<Estimate> fit_seconds, samples_per_second;
  std::optional<Estimate> samples_per_second_per_replica;
  std::optional<Estimate> efficiency;         // see SpeedUp::efficiency
  std::optional<Estimate> utilization;        // of GPUs, 0 to 1
  std::optional<Estimate> energy_efficiency;  // samples per joule over the base's
  std::optional<double> step_seconds;
  // Shares of the step, over ranks and runs: waiting for input, waiting for communication.
  std::optional<double> input_stall, exposed_communication;

  // "lower accuracy"; empty: as good as its base and as the others, or not known.
  std::string quality_label() const {
    if (speed_up && !speed_up->standing.label.empty()) return speed_up->standing.label;
    if (!is_worse_than_others()) return "";
    return among_all->label + (among_all->has_far_runs ? "" : " than others");
  }
  // Its speed-up is in brackets.
  bool is_barred() const { return speed_up && speed_up->standing.is_barred(); }
  bool is_worse_than_others() const { return among_all && among_all->is_barred(); }
  std::optional<Estimate> ratio() const {
    return speed_up ? std::optional(speed_up->ratio.estimate) : std::nullopt;
  }
  std::string interval_kind() const {  // of the ratio: "paired", "welch"; empty without one
    if (!speed_up || !speed_up->ratio.estimate.interval) return "";
    return speed_up->ratio.kind == RatioKind::paired ? "paired" : "welch";
  }
  const Run& run() const { return row->first(); }
};

// Over the runs that know the fact. Empty if none does. `estimate`: a geometric mean with its
// interval.
std::optional<double> mean(const Row& row, const RunFact& fact);
std::optional<Estimate> estimate(const Row& row, const RunFact& fact);

// Of the time of its runs' steps; empty without phases.
std::optional<double> share_of_step(const Row& row, double PhaseSeconds::*phase);

RowFacts row_facts(const Study& study, const Comparison& comparison, std::size_t index);

struct SizeGroup {
  int gpus = 1;
  std::vector<const RowFacts*> rows;  // with a speed-up; never empty

  bool is_base() const;  // no row has more replicas than its base
};

struct ScalingSeries {
  std::string name;  // backend, system, CPUs, axes: what distinguishes it from the others
  std::vector<SizeGroup> groups;  // sorted by gpus; includes the base's
  std::vector<int> gaps;          // sizes of the study's gaps that belong to this series

  const std::string& machine() const { return groups.back().rows.front()->run().system; }
};

// Whether rows that cannot stand beside their base belong to a series.
enum class Quality { any, held };

// Base best: one series per system, made of its fastest rows. Others: one per system, backend
// and set of axes, with `by_cpus` also per number of CPUs, and where a size ran on several numbers
// of nodes, per number of nodes. Omits series of a single group,
// which show no scaling. Empty if the base
// is a setting other than a size.
std::vector<ScalingSeries> make_scaling_series(const Study& study, const Comparison& comparison,
                                               const std::vector<RowFacts>& facts, bool by_cpus,
                                               Quality quality = Quality::any);

// The same of rows, whether or not they have a base: the fastest row of each size. Includes series
// of one size.
struct RowSeries {
  std::string name;
  std::vector<const Row*> rows;  // sorted by gpus
};

// By base matched and with CPUs. Rows that miss their goal, or lack what `comparison` compares, are
// left out. A series without one replica begins with the base of its rows, if that has one.
std::vector<RowSeries> make_row_series(const Study& study, const Comparison& comparison);

}  // namespace paceline
