#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/core/json.h"
#include "engine/core/text.h"
#include "engine/facts/json.h"
#include "engine/facts/rank.h"
#include "results/run_record.h"
#include "results/step_samples.h"

namespace paceline {

namespace {

constexpr std::size_t kFewestRanks = 8;  // more than these are folded
constexpr std::size_t kOutliersOfAKind = 4;

struct Statistic {
  const char* name;
  RankFacts RankSpread::*facts;
  std::optional<double> quantile;  // none: the mean
};

const std::array<Statistic, 6> kStatistics = {{{"mean", &RankSpread::mean, {}},
                                               {"min", &RankSpread::min, 0},
                                               {"p05", &RankSpread::p05, 0.05},
                                               {"p50", &RankSpread::p50, 0.5},
                                               {"p95", &RankSpread::p95, 0.95},
                                               {"max", &RankSpread::max, 1}}};

struct RankList {
  std::string fact;
  Json::json_pointer place;  // in a record
};

// One for each fact of a rank.
const std::vector<RankList>& rank_lists() {
  static const std::vector<RankList> all = [] {
    std::vector<RankList> made;
    RankFacts rank;
    visit_facts(rank, [&](const FactInfo& fact, const auto&) {
      const std::string place = fact.rule.list ? fact.rule.list : std::string("/") + fact.name;
      made.push_back({fact.name, Json::json_pointer(place)});
    });
    return made;
  }();
  return all;
}

// Seven digits, as elsewhere in a record.
Json rounded(double value) {
  return to_real(fmt::format("{:.7g}", value)).value_or(value);
}

const Json* list_at(const Json& record, const Json::json_pointer& list) {
  if (!record.contains(list)) return nullptr;
  const Json& found = record.at(list);
  return found.is_array() && found.size() > kFewestRanks ? &found : nullptr;
}

// Adds the spread of the numbers among `values` below `path`, as "/p50", of each statistic, and
// below their keys that of the objects.
void add_spread(Json& spread, const std::vector<Json>& values, const std::string& path) {
  std::vector<double> numbers;
  std::map<std::string, std::vector<Json>> members;
  for (const Json& value : values) {
    if (value.is_number()) numbers.push_back(value.get<double>());
    if (!value.is_object()) continue;
    for (const auto& [key, member] : value.items()) members[key].push_back(member);
  }
  for (const auto& [key, member] : members) add_spread(spread, member, path + "/" + key);
  if (numbers.empty()) return;
  std::sort(numbers.begin(), numbers.end());
  double mean = 0;
  for (const double number : numbers) mean += number / static_cast<double>(numbers.size());
  for (const auto& [name, facts, share] : kStatistics) {
    spread[Json::json_pointer(std::string("/") + name + path)] =
        rounded(share ? quantile(numbers, *share) : mean);
  }
}

// The ranks whose steps, computing or input took longest, and those that waited least for the
// others, which waited for them.
std::vector<Json> find_outliers(const std::vector<Json>& ranks) {
  std::set<std::size_t> chosen;
  const auto choose = [&](int sign, std::initializer_list<const char*> parts) {
    std::vector<std::pair<double, std::size_t>> order;
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      double seconds = 0;
      for (const char* part : parts) seconds += ranks[r].value(Json::json_pointer(part), 0.0);
      order.emplace_back(-sign * seconds, r);
    }
    const std::size_t most = std::min(kOutliersOfAKind, order.size());
    std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(most),
                      order.end());
    if (order.front().first == order[most - 1].first && most > 1) return;  // none stands out
    for (std::size_t i = 0; i < most; ++i) chosen.insert(order[i].second);
  };
  choose(1, {"/step_seconds/p50"});
  choose(1, {"/phases/forward", "/phases/backward", "/phases/update"});
  choose(1, {"/phases/input"});
  choose(-1, {"/phases/communication"});
  return mapped(chosen, [&](std::size_t r) { return ranks[r]; });
}

}  // namespace

void add_rank_lists(Json& record, const std::vector<RankFacts>& ranks) {
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const Json facts = facts_to_json(ranks[r]);
    for (const auto& [name, list] : rank_lists()) {
      if (facts.contains(name)) record[list][r] = facts[name];
    }
  }
  for (const auto& [name, list] : rank_lists()) {
    if (!record.contains(list) || !record.at(list).empty()) continue;
    Json& section = record.at(list.parent_pointer());
    section.erase(list.back());
    if (section.empty()) record.erase(list.parent_pointer().back());
  }
}

std::vector<RankFacts> read_rank_lists(const Json& record, const std::string& where) {
  std::vector<const Json*> entries;  // of each fact; null: none
  std::size_t count = 0;
  for (const auto& [name, list] : rank_lists()) {
    const Json* found = record.contains(list) ? &record.at(list) : nullptr;
    if (found && found->is_null()) found = nullptr;
    if (found && !found->is_array()) FactPlace{where, list.to_string()}.fail("should be a list");
    if (found) count = std::max(count, found->size());
    entries.push_back(found);
  }
  std::vector<RankFacts> ranks(count);
  for (std::size_t r = 0; r < count; ++r) {
    std::size_t i = 0;
    visit_facts(ranks[r], [&](const FactInfo& fact, auto& member) {
      const Json* list = entries[i++];
      if (!list || r >= list->size() || (*list)[r].is_null()) return;
      const std::string key = (rank_lists()[i - 1].place / r).to_string();
      value_from_json((*list)[r], member, fact.rule, {where, key});
    });
  }
  return ranks;
}

Json fact_to_json(const RankSpread& spread) {
  Json json = Json::object();
  for (const Statistic& statistic : kStatistics) {
    const Json facts = facts_to_json(spread.*statistic.facts);
    for (const auto& [name, value] : facts.items()) json[name][statistic.name] = value;
  }
  return json;
}

void fact_from_json(const Json& ranks, RankSpread& spread, const FactPlace& place) {
  for (const Statistic& statistic : kStatistics) {
    visit_facts(spread.*statistic.facts, [&](const FactInfo& fact, auto& member) {
      const Json::json_pointer at = Json::json_pointer() / fact.name / statistic.name;
      if (!ranks.contains(at) || ranks.at(at).is_null()) return;
      value_from_json(ranks.at(at), member, fact.rule, {place.file, place.key + at.to_string()});
    });
  }
}

std::size_t size_of_rank_lists(const Json& record, std::size_t (*size_of)(const Json&)) {
  std::size_t size = 0;
  for (const auto& [name, list] : rank_lists()) {
    if (const Json* found = list_at(record, list)) size += size_of(*found);
  }
  return size;
}

std::string fold_rank_lists(Json& record) {
  std::vector<Json> ranks;  // what each list says of a rank
  Json folded = {{"count", 0}};
  for (const auto& [name, list] : rank_lists()) {
    const Json* found = list_at(record, list);
    if (found == nullptr) continue;
    if (found->size() > ranks.size()) ranks.resize(found->size(), Json::object());
    for (std::size_t r = 0; r < found->size(); ++r) ranks[r][name] = (*found)[r];
    Json spread;
    add_spread(spread, std::vector<Json>(found->begin(), found->end()), "");
    if (!spread.is_null()) folded[name] = std::move(spread);
    if (name == "host") folded["hosts"] = std::set<Json>(found->begin(), found->end()).size();
    record.at(list.parent_pointer()).erase(list.back());
  }
  std::string lines;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    lines += fmt::format("{}{},\"facts\":{}}}\n", kRankLine, r, json_text(ranks[r]));
    ranks[r]["rank"] = r;
  }
  folded["count"] = ranks.size();
  folded["outliers"] = find_outliers(ranks);
  record["ranks"] = std::move(folded);
  return lines;
}

}  // namespace paceline
