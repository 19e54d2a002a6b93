#include "slurm/collection.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "engine/core/file.h"
#include "engine/core/json.h"
#include "results/quantiles.h"
#include "sweeps/unfinished.h"

namespace paceline {

namespace {

constexpr double kUnlike = 1.05;

// Slurm's name of the node, which tells virtual ones apart that share a host.
std::string node_name(const RunRecord& record) {
  const Provenance& made = record.provenance;
  if (made.allocation && !made.allocation->node.empty()) return made.allocation->node;
  return made.hosts.empty() || made.hosts.front().empty() ? "unknown" : made.hosts.front();
}

}  // namespace

std::size_t record_lost_runs(const std::filesystem::path& study, const std::vector<RunView>& runs) {
  std::size_t written = 0;
  for (const RunView& run : runs) {
    if (run.phase != RunPhase::failed || run.has_record) continue;
    const Element& element = run.element;
    write_unfinished(study, {element.study, element.workload, element.point, element.point_folder,
                             element.parameters, element.repeat, run.session,
                             run.timed_out ? "timeout" : "failed", "Slurm: " + run.why});
    ++written;
  }
  return written;
}

std::vector<std::string> reference_lines(const std::filesystem::path& study) {
  const std::filesystem::path folder = study.string() + ".reference";
  if (!path_exists(folder)) return {};
  std::map<std::string, std::vector<double>> seconds;  // by node
  std::vector<double> all;
  for (const Record& record : load_store(folder).records) {
    const auto fit = record->timing.fit_seconds;
    if (!record->completed() || !fit) continue;
    seconds[node_name(*record)].push_back(*fit);
    all.push_back(*fit);
  }
  if (all.empty()) return {};
  const double usual = median(all);
  const auto [least, most] = std::minmax_element(all.begin(), all.end());
  std::vector<std::string> lines = {
      fmt::format("reference runs: {} on {} nodes, median {:.4f} s, from {:.4f} to {:.4f} s",
                  all.size(), seconds.size(), usual, *least, *most)};
  for (const auto& [node, times] : seconds) {
    if (median(times) <= kUnlike * usual) continue;
    lines.push_back(fmt::format("note: {} is {:.0f} % slower than the median of all jobs ({} runs)",
                                node, 100 * (median(times) / usual - 1), times.size()));
  }
  return lines;
}

}  // namespace paceline
