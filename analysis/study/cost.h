// What a run took, beside its time: GPU-hours, core-hours, memory, and its share of the hardware's
// peak.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "analysis/evidence/run.h"
#include "analysis/statistics/statistics.h"
#include "analysis/study/study.h"

namespace paceline {

// Allocated GPUs or cores times the run's seconds: setup, training, evaluation, checkpoints. Those
// of the job where the record names one, else the layout's. A job pays for more: for its start,
// staging, and what is between runs.
// GPU-hours are empty for replicas on cores.
std::optional<double> gpu_hours(const Run& run);
std::optional<double> core_hours(const Run& run);
// Of the nodes on which the run's processes were, each as a whole.
std::optional<double> node_hours(const Run& run);

// Largest use of a GPU's memory by all processes, in bytes.
std::optional<double> gpu_memory(const Run& run);

// Largest resident memory of the processes of a node, in bytes: their sum over all nodes, divided
// by the nodes. Memory that processes share counts in each.
std::optional<double> node_memory(const Run& run);

// Of training on what its rate counts: as the study states them, as Paceline planned them, or 6 for
// each parameter and token.
enum class OperationsFrom { statement, plan, parameters };
struct Operations {
  std::optional<double> of_item = {};
  OperationsFrom from = OperationsFrom::plan;
};
Operations count_operations(const Run& run);

// Floating-point operations of the model in a run, at its rate.
std::optional<double> model_operations(const Run& run);
// What its replicas could have done meanwhile at the speed that a probe of matrix products reached
// beside the run, or at the dense peak that the study states, or of the GPU's data sheet at the
// run's precision.
std::optional<double> probe_operations(const Run& run);
std::optional<double> peak_operations(const Run& run);

// FLOP/s without sparsity of a card by its full name, "NVIDIA H200". Empty: not in the table.
std::optional<double> data_sheet_peak(std::string_view gpu, std::string_view precision);

// 6 of "4(x1),2": Slurm's numbers by node. Empty: no such list.
std::optional<double> sum_over_nodes(std::string_view folded);

// What adds up over runs: hours, joules, operations. A mean is a sum over a sum, never a mean of
// ratios, nor a geometric one as of times and rates: five runs of a budget take five times the
// mean.

// The sum of `above` over that of `below`, over the runs that know both. Empty if none does.
std::optional<Estimate> ratio_of_sums(const Row& row, const RunFact& above, const RunFact& below);
// The sum of `amount` over the number of runs that know it.
std::optional<Estimate> mean_amount(const Row& row, const RunFact& amount);

// That of `row` over that of `base`, where every run knows them. Paired as speed-ups are.
Ratio compare_sums(const Row& base, const Row& row, const RunFact& above, const RunFact& below);
Ratio compare_amounts(const Row& base, const Row& row, const RunFact& amount);

std::size_t runs_with(const Row& row, const RunFact& fact);

// What a run's energy says, and where rows can be compared by it.

inline constexpr double kWattHour = 3600;  // joules

// Of training, without evaluation and checkpoints; idle power is part of it. Empty: not known.
std::optional<double> energy_joules(const Run& run);
std::optional<double> joules_per_sample(const Run& run);
std::optional<double> energy_seconds(const Run& run);  // for which the meters ran
std::optional<double> idle_watts(const Run& run);
std::optional<double> joules_beside_training(const Run& run);  // evaluation and checkpoints
// Joules times seconds (energy-delay product).
std::optional<double> energy_delay(const Run& run);

// "GPUs + CPUs", "node, shared with other jobs". "unlike": not the same for all runs. Empty: no run
// has an energy.
std::string energy_covers(const Row& row);

// Samples per joule of `row` over those of `base`. Empty unless the same meters cover both, and
// nobody else.
std::optional<Ratio> energy_efficiency(const Row& base, const Row& row);

// Why runs have no figure: "12 runs without a meter". Empty: all have one.
std::string missing_energy(const Study& study);

// Meters of the same thing that differ by more than a tenth: "GPUs: GPU power counts 12 % more than
// GPU counter (5 runs)". May be empty.
std::string unlike_meters(const Study& study);

}  // namespace paceline
