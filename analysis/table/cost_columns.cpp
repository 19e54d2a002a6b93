// GPU-hours, memory and share of the peak: --columns cost.
#include "analysis/study/cost.h"
#include "analysis/table/definition.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

Cell hours_cell(const RowFacts& facts, std::optional<double> (*hours)(const Run&)) {
  const auto value = estimate(*facts.row, hours);
  return value ? estimate_cell(*value, significant_digits(value->value)) : Cell{};
}

Cell bytes_cell(const RowFacts& facts, std::optional<double> (*quantity)(const Run&)) {
  const auto bytes = mean(*facts.row, quantity);
  return bytes ? Cell{format_bytes(*bytes), bytes, {}} : Cell{};
}

}  // namespace

void add_cost(std::vector<Definition>& all) {
  constexpr char kHours[] =
      "GPU-hours, core-hours: what the job held, or else what the replicas had, times setup, "
      "training, evaluation and checkpoints";
  all.push_back({extra("cost", interval_column("gpu_hours", "GPU-\nhours"), kHours),
                 [](const RowFacts& f) { return hours_cell(f, gpu_hours); }});
  all.push_back({extra("cost", interval_column("core_hours", "core-\nhours"), kHours),
                 [](const RowFacts& f) { return hours_cell(f, core_hours); }});
  all.push_back({extra("cost", real_column("gpu_memory_bytes", "GPU\nmemory"),
                       "GPU memory: the largest use of a GPU, by all processes"),
                 [](const RowFacts& f) { return bytes_cell(f, gpu_memory); }});
  all.push_back({extra("cost", real_column("share_of_probe", "of probe's\nFLOP/s"),
                       "of probe's FLOP/s: the model's operations a second over those that matrix "
                       "products reached beside the run"),
                 [](const RowFacts& f) { return percent(mean(*f.row, share_of_probe)); }});
  all.push_back({extra("cost", real_column("share_of_data_sheet", "of data\nsheet"),
                       "of data sheet: the same over the GPU's dense peak at this precision"),
                 [](const RowFacts& f) { return percent(mean(*f.row, share_of_data_sheet)); }});
  all.push_back({extra("cost", real_column("node_memory_bytes", "node\nmemory"),
                       "node memory: largest resident memory of a node's processes, summed; what "
                       "they share counts in each"),
                 [](const RowFacts& f) { return bytes_cell(f, node_memory); }});
}

}  // namespace paceline
