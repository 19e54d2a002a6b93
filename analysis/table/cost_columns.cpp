// GPU-hours, memory and share of the peak: --columns cost.
#include "analysis/study/amounts.h"
#include "analysis/study/cost.h"
#include "analysis/table/definition.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

using RunQuantity = std::optional<double> (*)(const Run&);

Cell hours_cell(const RowFacts& facts, RunQuantity hours) {
  const auto value = mean_amount(*facts.row, hours);
  return value ? estimate_cell(*value, decimals_for(value->value, 3)) : Cell{};
}

Cell bytes_cell(const RowFacts& facts, RunQuantity quantity) {
  const auto bytes = mean(*facts.row, quantity);
  return bytes ? Cell{format_bytes(*bytes), bytes, {}} : Cell{};
}

Cell share_cell(const RowFacts& facts, RunQuantity possible) {
  const auto share = ratio_of_sums(*facts.row, model_operations, possible);
  return share ? percent(share->value) : Cell{};
}

}  // namespace

void add_cost(std::vector<Definition>& all) {
  constexpr char kHours[] =
      "GPU-hours, core-hours: what the job held, or else what the replicas had, times setup, "
      "training, evaluation and checkpoints of the run, without the job's start and what is "
      "between "
      "runs; arithmetic means, as hours add up";
  const auto add = [&](Column column, std::string note, auto cell, RunQuantity of) {
    all.push_back({extra("cost", std::move(column), std::move(note)),
                   [=](const RowFacts& facts) { return cell(facts, of); }, false, of});
  };
  add(interval_column("gpu_hours", "GPU-\nhours"), kHours, hours_cell, gpu_hours);
  add(interval_column("core_hours", "core-\nhours"), kHours, hours_cell, core_hours);
  add(real_column("gpu_memory_bytes", "GPU\nmemory"),
      "GPU memory: the largest use of a GPU, by all processes; mean over runs", bytes_cell,
      gpu_memory);
  add(real_column("share_of_probe", "of probe's\nFLOP/s"),
      "of probe's FLOP/s: the model's operations over those that matrix products could have done "
      "meanwhile, at their speed beside the run; over all runs together",
      share_cell, probe_operations);
  add(real_column("share_of_data_sheet", "of data\nsheet"),
      "of data sheet: the same over the GPU's dense peak at this precision", share_cell,
      data_sheet_operations);
  add(real_column("node_memory_bytes", "node\nmemory"),
      "node memory: largest resident memory of a node's processes, summed; what they share counts "
      "in each; mean over runs",
      bytes_cell, node_memory);
}

}  // namespace paceline
