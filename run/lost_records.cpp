#include "run/lost_records.h"

namespace paceline {

LostSummary summarize(const std::vector<LostRecords>& lost) {
  constexpr std::size_t kMostPlaces = 5;
  LostSummary summary;
  for (const LostRecords& one : lost) {
    summary.records += static_cast<std::int64_t>(one.count.value_or(0));
    if (summary.places.size() < kMostPlaces) summary.places.push_back(one.text());
  }
  return summary;
}

}  // namespace paceline
