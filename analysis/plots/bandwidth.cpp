// All-reduce by message size, as nccl-tests draws it.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "analysis/plots/study_plots.h"
#include "engine/core/text.h"
#include "results/machine.h"

namespace paceline {

namespace {

constexpr std::size_t kMostCurves = 8;
constexpr double kGiga = 1e9;

using Curve = std::map<double, double>;  // bytes -> GB/s

// busbw = bytes / seconds * 2 (n-1)/n; of one rank the bytes it would copy.
Curve make_curve(const std::vector<CollectiveRow>& rows, int ranks,
                 std::optional<double> (*to_seconds)(const CollectiveRow&)) {
  const double factor = ranks > 1 ? 2.0 * (ranks - 1) / ranks : 1;
  Curve curve;
  for (const CollectiveRow& row : rows) {
    const auto bytes = static_cast<double>(row.bytes);
    if (const auto seconds = to_seconds(row)) curve[bytes] = bytes / *seconds * factor / kGiga;
  }
  return curve;
}

void add(Lines& lines, PlotSeries series, const Curve& curve) {
  if (curve.size() < 2 || lines.series.size() == kMostCurves) return;
  for (const auto& [bytes, rate] : curve) series.points.push_back({bytes, rate, std::nullopt});
  lines.series.push_back(std::move(series));
}

std::string size_name(double bytes) {
  for (const auto& [unit, name] :
       {std::pair{1073741824.0, "GiB"}, {1048576.0, "MiB"}, {1024.0, "KiB"}}) {
    if (bytes >= unit) return fmt::format("{:g} {}", bytes / unit, name);
  }
  return fmt::format("{:g} B", bytes);
}

// Powers of two, about seven of them.
std::vector<Tic> tics(const Lines& lines) {
  double least = lines.series.front().points.front().x, most = least;
  for (const PlotSeries& series : lines.series) {
    least = std::min(least, series.points.front().x);
    most = std::max(most, series.points.back().x);
  }
  std::vector<double> powers;
  for (double power = 1; power <= most; power *= 2) {
    if (power >= least) powers.push_back(power);
  }
  std::vector<Tic> result;
  const std::size_t step = std::max<std::size_t>(1, (powers.size() + 6) / 7);
  for (std::size_t i = 0; i < powers.size(); i += step) {
    result.push_back({powers[i], size_name(powers[i])});
  }
  return result;
}

}  // namespace

std::vector<Plot> bandwidth_plots(const std::vector<Record>& records) {
  Lines lines{.log_x = true, .log_y = 10};
  const std::vector<std::string> machine_names =
      name_machines(mapped(records, [](const Record& record) { return identify_machine(record); }));
  for (std::size_t i = 0; i < records.size(); ++i) {
    const Record& record = records[i];
    const CollectiveFacts& block = *record->collective;
    if (!block.operation.empty() && block.operation != "all_reduce") continue;
    const int ranks = record->layout.gpus;
    const Provenance& made = record->provenance;
    const std::string& backend =
        made.imported && !made.libraries.empty() ? made.libraries : made.backend_requested;
    std::vector<std::string> parts = {machine_names[i], backend.empty() ? "all-reduce" : backend,
                                      fmt::format("{} ranks", ranks), block.placement,
                                      record->kind == "imported" ? "imported" : ""};
    std::erase(parts, "");
    add(lines, {.name = join(parts, ", "), .machine = machine_names[i]},
        make_curve(block.rows, ranks,
                   [](const CollectiveRow& row) { return std::optional(row.seconds); }));
  }
  if (lines.series.empty()) return {};
  lines.x_tics = tics(lines);
  const bool any_imported =
      std::ranges::any_of(records, [](const Record& record) { return record->kind == "imported"; });
  return {{.name = "bandwidth",
           .title = "all-reduce by message size",
           .subtitle = fmt::format("bus bandwidth: bytes / {}seconds × 2 (n-1)/n",
                                   any_imported ? "" : "median "),
           .x_label = "bytes of one rank",
           .y_label = "GB/s",
           .body = std::move(lines)}};
}

}  // namespace paceline
