#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "engine/core/json.h"
#include "engine/core/text.h"
#include "results/run_record.h"
#include "results/step_samples.h"

namespace paceline {

namespace {

constexpr std::size_t kFewestRanks = 8;  // more than these are folded
constexpr std::size_t kOutliersOfAKind = 4;

struct RankList {
  Json::json_pointer path;
  std::string name;  // of a rank's own entry
};

template <HasFacts Facts>
void find_rank_lists(Facts& facts, const std::string& path, std::vector<RankList>& found) {
  visit_facts(facts, [&]<typename T>(const FactInfo& fact, T& member) {
    const std::string here = path + "/" + fact.name;
    if (fact.rule.of_rank) {
      const std::string name = fact.name;
      found.push_back({Json::json_pointer(here), name == "hosts" ? "host" : name});
    }
    if constexpr (HasFacts<T>) find_rank_lists(member, here, found);
  });
}

const std::vector<RankList>& rank_lists() {
  static const std::vector<RankList> lists = [] {
    std::vector<RankList> found;
    RunRecord record;
    find_rank_lists(record, "", found);
    return found;
  }();
  return lists;
}

const Json* list_at(const Json& record, const RankList& list) {
  if (!record.contains(list.path)) return nullptr;
  const Json& found = record.at(list.path);
  return found.is_array() && found.size() > kFewestRanks ? &found : nullptr;
}

// Seven digits, as elsewhere in a record.
Json rounded(double value) {
  return to_real(fmt::format("{:.7g}", value)).value_or(value);
}

// Adds the spread of `values` below `path`, "" or "/p50", of each statistic.
void add_spread(Json& spread, std::vector<double> values, const std::string& path) {
  if (values.empty()) return;
  std::sort(values.begin(), values.end());
  double mean = 0;
  for (const double value : values) mean += value / static_cast<double>(values.size());
  const auto put = [&](const char* name, double value) {
    spread[Json::json_pointer(std::string("/") + name + path)] = rounded(value);
  };
  put("mean", mean);
  put("min", quantile(values, 0));
  put("p05", quantile(values, 0.05));
  put("p50", quantile(values, 0.5));
  put("p95", quantile(values, 0.95));
  put("max", quantile(values, 1));
}

Json compute_spread(const Json& list) {
  Json spread;
  std::vector<double> plain;
  std::set<std::string> keys;
  for (const Json& entry : list) {
    if (entry.is_number()) plain.push_back(entry.get<double>());
    if (!entry.is_object()) continue;
    for (const auto& [key, value] : entry.items()) {
      if (value.is_number()) keys.insert(key);
    }
  }
  add_spread(spread, plain, "");
  for (const std::string& key : keys) {
    std::vector<double> values;
    for (const Json& entry : list) {
      if (entry.is_object() && entry.contains(key) && entry[key].is_number()) {
        values.push_back(entry[key].get<double>());
      }
    }
    add_spread(spread, std::move(values), "/" + key);
  }
  return spread;
}

double number_in(const Json& facts, const char* section, const char* key) {
  if (!facts.contains(section) || !facts[section].is_object()) return 0;
  const Json& entry = facts[section];
  return entry.contains(key) && entry[key].is_number() ? entry[key].get<double>() : 0;
}

double compute_seconds(const Json& facts) {
  return number_in(facts, "phases", "forward") + number_in(facts, "phases", "backward") +
         number_in(facts, "phases", "update");
}

// The ranks whose steps, computing or input took longest, and those that waited least for the
// others, which waited for them.
std::vector<Json> find_outliers(const std::vector<Json>& ranks) {
  std::set<std::size_t> chosen;
  const auto choose = [&](auto&& measure) {
    std::vector<std::pair<double, std::size_t>> order;
    for (std::size_t r = 0; r < ranks.size(); ++r) order.emplace_back(-measure(ranks[r]), r);
    const std::size_t most = std::min(kOutliersOfAKind, order.size());
    std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(most),
                      order.end());
    if (order.front().first == order[most - 1].first && most > 1) return;  // none stands out
    for (std::size_t i = 0; i < most; ++i) chosen.insert(order[i].second);
  };
  choose([](const Json& facts) { return number_in(facts, "step_seconds", "p50"); });
  choose([](const Json& facts) { return compute_seconds(facts); });
  choose([](const Json& facts) { return number_in(facts, "phases", "input"); });
  choose([](const Json& facts) { return -number_in(facts, "phases", "communication"); });
  std::vector<Json> outliers;
  for (const std::size_t r : chosen) outliers.push_back(ranks[r]);
  return outliers;
}

// An object a rank: what each list says of it.
std::vector<Json> by_rank(const Json& record) {
  std::vector<Json> ranks;
  for (const RankList& list : rank_lists()) {
    const Json* entries = list_at(record, list);
    if (entries == nullptr) continue;
    if (entries->size() > ranks.size()) ranks.resize(entries->size(), Json::object());
    for (std::size_t r = 0; r < entries->size(); ++r) ranks[r][list.name] = (*entries)[r];
  }
  for (std::size_t r = 0; r < ranks.size(); ++r) ranks[r]["rank"] = r;
  return ranks;
}

}  // namespace

std::size_t size_of_rank_lists(const Json& record, std::size_t (*size_of)(const Json&)) {
  std::size_t size = 0;
  for (const RankList& list : rank_lists()) {
    if (const Json* found = list_at(record, list)) size += size_of(*found);
  }
  return size;
}

std::string fold_rank_lists(Json& record) {
  const std::vector<Json> ranks = by_rank(record);
  Json folded = {{"count", ranks.size()}};
  for (const RankList& list : rank_lists()) {
    const Json* found = list_at(record, list);
    if (found == nullptr) continue;
    if (list.name == "host") {
      folded["hosts"] = std::set<Json>(found->begin(), found->end()).size();
    } else if (Json spread = compute_spread(*found); !spread.is_null()) {
      folded[list.name] = std::move(spread);
    }
    record.at(list.path.parent_pointer()).erase(list.path.back());
  }
  folded["outliers"] = find_outliers(ranks);
  record["ranks"] = std::move(folded);
  std::string lines;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    Json rest = ranks[r];
    rest.erase("rank");
    lines += fmt::format("{}{},\"facts\":{}}}\n", kRankLine, r, json_text(rest));
  }
  return lines;
}

}  // namespace paceline
