#include "run/lost_records.h"

#include <nlohmann/json.hpp>

namespace paceline {

void add_lost_records(Json& json, const std::vector<LostRecords>& lost) {
  constexpr std::size_t kMostPlaces = 5;
  std::size_t records = 0;
  Json places = Json::array();
  for (const LostRecords& one : lost) {
    records += one.count.value_or(0);
    if (places.size() < kMostPlaces) places.push_back(one.text());
  }
  json["lost_records"] = records;
  json["lost_places"] = places;
}

}  // namespace paceline
