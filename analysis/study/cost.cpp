#include "analysis/study/cost.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <vector>

#include "analysis/study/contrast.h"
#include "engine/core/text.h"
#include "engine/facts/timing.h"

namespace paceline {

namespace {

constexpr double kSecondsPerHour = 3600;

// TFLOP/s without sparsity: matrix products of tensor cores, but fp32 of the other cores. By the
// driver's whole name of a card without its brand: a T400 is no T4, and half of the cards of a name
// have other peaks (PCIe, NVL, MIG).
struct GpuPeak {
  std::string_view gpu;
  double fp32, tf32, bf16, fp16;
};

// NVIDIA's data sheets: H200 and H200 NVL (2024), H100 SXM (2023), GH200 (2023), A100 (2021), L40S
// (2023), V100 SXM2 (2020), T4 (2019). Those of H100, H200, GH200 and L40S print tf32, bf16 and
// fp16 with sparsity, which is twice as much.
constexpr std::array kPeaks = {GpuPeak{"GH200 480GB", 67, 494.5, 989.5, 989.5},
                               GpuPeak{"GH200 120GB", 67, 494.5, 989.5, 989.5},
                               GpuPeak{"GH200 144G HBM3e", 67, 494.5, 989.5, 989.5},
                               GpuPeak{"H200", 67, 494.5, 989.5, 989.5},
                               GpuPeak{"H200 NVL", 60, 417.5, 835.5, 835.5},
                               GpuPeak{"H100 80GB HBM3", 67, 494.5, 989.5, 989.5},
                               GpuPeak{"A100-SXM4-40GB", 19.5, 156, 312, 312},
                               GpuPeak{"A100-SXM4-80GB", 19.5, 156, 312, 312},
                               GpuPeak{"A100-PCIE-40GB", 19.5, 156, 312, 312},
                               GpuPeak{"A100-PCIE-80GB", 19.5, 156, 312, 312},
                               GpuPeak{"A100 80GB PCIe", 19.5, 156, 312, 312},
                               GpuPeak{"L40S", 91.6, 183, 362.05, 362.05},
                               GpuPeak{"V100-SXM2-16GB", 15.7, 0, 0, 125},
                               GpuPeak{"V100-SXM2-32GB", 15.7, 0, 0, 125},
                               GpuPeak{"T4", 8.1, 0, 0, 65}};

std::string_view without_brand(std::string_view gpu) {
  for (const std::string_view brand : {"NVIDIA ", "Tesla "}) {
    if (gpu.starts_with(brand)) gpu.remove_prefix(brand.size());
  }
  return gpu;
}

// Without those that are not known; at least the training.
std::optional<double> seconds_held(const Run& run) {
  const Timing& timing = *run->timing;
  const auto& program = run->provenance.program;
  if (program && program->seconds) {  // a log of another run states more
    return std::max(*program->seconds, timing.fit_seconds.value_or(0));
  }
  if (!timing.fit_seconds) return std::nullopt;
  return run->whole_seconds() + timing.checkpoint_seconds.value_or(0) +
         timing.events_seconds.value_or(0) + timing.consistency_seconds.value_or(0);
}

std::optional<double> compute_hours(const Run& run, std::optional<double> units) {
  const auto seconds = seconds_held(run);
  if (!seconds || !units) return std::nullopt;
  return *seconds * *units / kSecondsPerHour;
}

// Of the run's samples at its rate; a second of them where their number is not known.
std::optional<double> seconds_at_rate(const Run& run) {
  if (!run.samples_per_second || *run.samples_per_second <= 0) return std::nullopt;
  return run.samples() ? *run.samples() / *run.samples_per_second : 1;
}

std::optional<double> replica_operations(const Run& run, std::optional<double> per_second) {
  const auto seconds = seconds_at_rate(run);
  if (!seconds || !per_second || *per_second <= 0) return std::nullopt;
  return *per_second * *seconds * run->layout.gpus;
}

std::optional<double> one_run(const Run&) {
  return 1;
}

struct RunSums {
  std::vector<double> above, below;  // of each run, or of each session if they are pooled
};

RunSums sum_runs(const Row& row, const RunFact& above, const RunFact& below) {
  RunSums result;
  std::map<std::string, std::size_t> sessions;
  for (const Run& run : row.runs) {
    const auto a = above(run), b = below(run);
    if (!a || !b) continue;
    const auto [session, is_new] = sessions.emplace(run->session, result.above.size());
    if (!row.pooled || is_new) {
      result.above.push_back(*a);
      result.below.push_back(*b);
    } else {
      result.above[session->second] += *a;
      result.below[session->second] += *b;
    }
  }
  return result;
}

// Values whose mean is the logarithm of the row's ratio, and whose spread is that of its error.
RowValues linearized(const Row& row, const RunFact& above, const RunFact& below) {
  const double ratio = ratio_of_sums(row, above, below)->value;
  double mean_below = 0;
  for (const Run& run : row.runs) mean_below += *below(run) / static_cast<double>(row.runs.size());
  return collect_values(row, [=](const Run& run) {
    const double off = (*above(run) - ratio * *below(run)) / (ratio * mean_below);
    return std::vector<double>{std::log(ratio) + off};
  });
}

}  // namespace

std::optional<double> sum_over_nodes(std::string_view folded) {
  double sum = 0;
  for (const std::string& part : split(folded, ',')) {
    const std::size_t open = part.find("(x");
    const auto count = to_integer(part.substr(0, open));
    const auto times = open == std::string::npos
                           ? std::optional<std::int64_t>(1)
                           : to_integer(part.substr(open + 2, part.size() - open - 3));
    if (!count || !times || *count < 0 || *times < 1) return std::nullopt;
    sum += static_cast<double>(*count) * static_cast<double>(*times);
  }
  return sum;
}

std::optional<double> gpu_hours(const Run& run) {
  if (run.replicas_are_cores()) return std::nullopt;
  double gpus = run->layout.gpus;
  const auto& job = run->provenance.allocation;
  if (job && !job->gpus.empty()) {  // of this node: "0,1"
    const auto here = static_cast<double>(split(job->gpus, ',').size());
    gpus = std::max(gpus, here * run->layout.nodes.value_or(1));
  }
  return compute_hours(run, gpus);
}

std::optional<double> core_hours(const Run& run) {
  const auto& job = run->provenance.allocation;
  if (job && !job->cpus_per_node.empty()) {
    if (const auto cores = sum_over_nodes(job->cpus_per_node)) return compute_hours(run, cores);
  }
  if (!run->layout.cpus_per_task) return std::nullopt;
  return compute_hours(
      run, static_cast<double>(*run->layout.cpus_per_task) * run->layout.ntasks.value_or(1));
}

std::optional<double> node_hours(const Run& run) {
  return compute_hours(run, run->layout.nodes);
}

std::optional<double> gpu_memory(const Run& run) {
  std::optional<double> most;
  for (const GpuFacts& gpu : run->gpus) {
    if (!gpu.memory_bytes) continue;
    most = std::max(most.value_or(0), static_cast<double>(*gpu.memory_bytes));
  }
  return most;
}

std::optional<double> node_memory(const Run& run) {
  const auto& bytes = run->provenance.machine_load.peak_memory_bytes;
  return bytes ? std::optional(static_cast<double>(*bytes) / run->layout.nodes.value_or(1))
               : std::nullopt;
}

Operations count_operations(const Run& run) {
  constexpr double kOfAParameterAndToken = 6;  // Kaplan et al., 2020: forward 2, backward 4
  const Unit unit = find_unit(run);
  const PlanFacts& plan = run->plan;
  const auto stated = run->parameters.real("flops_per_item");
  if (unit.is_own()) return {};
  if (stated && *stated > 0) return {stated, OperationsFrom::statement};
  if (plan.flops_per_sample) {
    return {*plan.flops_per_sample / static_cast<double>(plan.tokens_per_sample.value_or(1)),
            OperationsFrom::plan};
  }
  if (unit.name != "tokens" || !plan.parameter_count) return {};
  return {kOfAParameterAndToken * static_cast<double>(*plan.parameter_count),
          OperationsFrom::parameters};
}

std::optional<double> model_operations(const Run& run) {
  const auto each = count_operations(run).of_item;
  const auto seconds = seconds_at_rate(run);
  if (!each || !seconds) return std::nullopt;
  return *each * *run.samples_per_second * *seconds;
}

std::optional<double> probe_operations(const Run& run) {
  return replica_operations(run, run->probe.flops_per_second);
}

std::optional<double> data_sheet_peak(std::string_view gpu, std::string_view precision) {
  const auto found = std::ranges::find(kPeaks, without_brand(gpu), &GpuPeak::gpu);
  if (found == kPeaks.end()) return std::nullopt;
  const double tera = precision == "tf32"   ? found->tf32
                      : precision == "bf16" ? found->bf16
                      : precision == "fp16" ? found->fp16
                      : precision == "fp32" ? found->fp32
                                            : 0;
  return tera > 0 ? std::optional(tera * 1e12) : std::nullopt;
}

std::optional<double> peak_operations(const Run& run) {
  constexpr double kTera = 1e12;
  const auto stated = run->parameters.real("peak_tflops");
  if (stated && *stated > 0) return replica_operations(run, *stated * kTera);
  if (run->gpus.empty()) return std::nullopt;
  const auto& program = run->provenance.program;
  const bool is_of_program = run.precision.empty() && program;
  return replica_operations(
      run,
      data_sheet_peak(run->gpus.front().name, is_of_program ? program->precision : run.precision));
}

std::optional<Estimate> ratio_of_sums(const Row& row, const RunFact& above, const RunFact& below) {
  const RunSums all = sum_runs(row, above, below);
  if (all.above.empty()) return std::nullopt;
  Estimate result = ratio_of_sums(all.above, all.below, find_stopping(row));
  if (row.tainted) result.interval.reset();
  return result;
}

std::optional<Estimate> mean_amount(const Row& row, const RunFact& amount) {
  return ratio_of_sums(row, amount, one_run);
}

Ratio compare_sums(const Row& base, const Row& row, const RunFact& above, const RunFact& below) {
  return ratio_of_means(linearized(row, above, below), linearized(base, above, below));
}

Ratio compare_amounts(const Row& base, const Row& row, const RunFact& amount) {
  return compare_sums(base, row, amount, one_run);
}

std::size_t runs_with(const Row& row, const RunFact& fact) {
  return count_where(row.runs, [&](const Run& run) { return fact(run).has_value(); });
}

}  // namespace paceline
