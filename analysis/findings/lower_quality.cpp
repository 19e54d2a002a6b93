#include "analysis/findings/lower_quality.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "analysis/study/point_names.h"
#include "engine/core/text.h"

namespace paceline {

std::string lower_quality_line(const Study& study, const std::vector<RowFacts>& facts) {
  constexpr std::size_t kMostNamed = 3;
  const bool any = std::any_of(facts.begin(), facts.end(), [](const RowFacts& row) {
    return row.speed_up && row.speed_up->lost;
  });
  if (!any) return "";
  std::vector<const Row*> rows;
  for (const Row& row : study.rows) rows.push_back(&row);
  const std::vector<std::string> names = point_names(study, rows);
  std::vector<std::string> named;
  std::set<std::string> labels;
  std::size_t count = 0;
  for (const RowFacts& row : facts) {
    if (!row.speed_up || !row.speed_up->lost) continue;
    const QualityLoss& lost = *row.speed_up->lost;
    labels.insert(lost.label());
    if (++count > kMostNamed) continue;
    named.push_back(fmt::format(
        "{} ({})", names[static_cast<std::size_t>(row.row - study.rows.data())], lost.text()));
  }
  return fmt::format("{} {} {} than {} base: {}{}; speed-ups in brackets are of worse networks",
                     counted(count, "row"), count == 1 ? "has" : "have",
                     join({labels.begin(), labels.end()}, " or "), count == 1 ? "its" : "their",
                     join(named, ", "), count > kMostNamed ? ", ..." : "");
}

}  // namespace paceline
