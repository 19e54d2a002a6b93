// What a run took, beside its time: GPU-hours, core-hours, memory, and its share of the hardware's
// peak.
#pragma once

#include <optional>

#include "analysis/study/run.h"

namespace paceline {

// Allocated GPUs or cores times the run's seconds: setup, training, evaluation, checkpoints. Those
// of the job where the record names one, else the layout's. A job pays for more: for its start,
// staging, and what is between runs.
// GPU-hours are empty for replicas on cores.
std::optional<double> gpu_hours(const Run& run);
std::optional<double> core_hours(const Run& run);

// Largest use of a GPU's memory by all processes, in bytes.
std::optional<double> gpu_memory(const Run& run);

// Largest resident memory of the processes of a node, in bytes: their sum over all nodes, divided
// by the nodes. Memory that processes share counts in each.
std::optional<double> node_memory(const Run& run);

// Floating-point operations of the model in a run, at its rate.
std::optional<double> model_operations(const Run& run);
// What its replicas could have done meanwhile at the speed that a probe of matrix products reached
// beside the run, or at the data sheet's dense peak of the GPU at the run's precision.
std::optional<double> probe_operations(const Run& run);
std::optional<double> data_sheet_operations(const Run& run);

// FLOP/s without sparsity of a card by its full name, "NVIDIA H200". Empty: not in the table.
std::optional<double> data_sheet_peak(std::string_view gpu, std::string_view precision);

// 6 of "4(x1),2": Slurm's numbers by node. Empty: no such list.
std::optional<double> sum_over_nodes(std::string_view folded);

}  // namespace paceline
