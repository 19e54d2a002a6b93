// Rows that lost runs, or that ran where or when no other row did.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "analysis/findings/run_order.h"
#include "analysis/study/labels.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

constexpr std::size_t kMostListed = 4;

using Places = std::set<std::string>;

std::string name_list(std::vector<std::string> names) {
  if (names.size() > kMostListed) {
    const std::size_t more = names.size() - kMostListed;
    names.resize(kMostListed);
    names.push_back(fmt::format("{} more", more));
  }
  return join(names, ", ");
}

// Rows that share places, directly or by way of others.
class PlaceGroups {
 public:
  explicit PlaceGroups(std::size_t rows) : group_(rows) {
    std::iota(group_.begin(), group_.end(), std::size_t{0});
  }

  void add(std::size_t row, const Places& places) {
    for (const std::string& place : places) {
      const auto [first, is_new] = first_at_.emplace(place, row);
      if (!is_new) group_[root(row)] = root(first->second);
    }
  }

  std::size_t root(std::size_t row) {
    while (group_[row] != row) row = group_[row] = group_[group_[row]];
    return row;
  }

 private:
  std::vector<std::size_t> group_;
  std::map<std::string, std::size_t> first_at_;
};

struct PlaceKind {
  FindingKind finding;
  const char *on, *own;  // in sentences
};

struct PlacedRow {
  std::string name;
  int gpus = 1;
  Places nodes, sessions;
};

// Says which rows share no place with the most rows, or of equally many with the smaller ones.
// Rows without known places are left out.
std::vector<Finding> own_places(const std::vector<PlacedRow>& placed, Places PlacedRow::*which,
                                const PlaceKind& kind) {
  std::vector<Places> places;
  for (const PlacedRow& row : placed) places.push_back(row.*which);
  PlaceGroups groups(places.size());
  for (std::size_t i = 0; i < places.size(); ++i) groups.add(i, places[i]);
  std::map<std::size_t, std::vector<std::size_t>> members;
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (!places[i].empty()) members[groups.root(i)].push_back(i);
  }
  if (members.size() < 2) return {};
  const auto least_gpus = [&](const std::vector<std::size_t>& rows) {
    int least = placed[rows.front()].gpus;
    for (const std::size_t row : rows) least = std::min(least, placed[row].gpus);
    return least;
  };
  const auto most =
      std::max_element(members.begin(), members.end(), [&](const auto& a, const auto& b) {
        return a.second.size() != b.second.size() ? a.second.size() < b.second.size()
                                                  : least_gpus(a.second) > least_gpus(b.second);
      });
  std::vector<Finding> found;
  for (const auto& [root, rows] : members) {
    if (root == most->first) continue;
    std::vector<std::string> of_rows;
    Places where;
    for (const std::size_t row : rows) {
      of_rows.push_back(placed[row].name);
      where.insert(places[row].begin(), places[row].end());
    }
    found.push_back(
        {kind.finding,
         fmt::format("{} ran only {} {}, no other row did: what is due to it cannot "
                     "be distinguished from what is due to the row{}",
                     name_list(of_rows), kind.on, name_list({where.begin(), where.end()}),
                     rows.size() == 1 ? "" : "s")});
  }
  if (found.size() <= kMostListed) return found;
  return {{kind.finding,
           fmt::format("rows ran {}: what these differ in cannot be distinguished from what rows do",
                       kind.own)}};
}

}  // namespace

std::vector<Finding> survivor_findings(const Study& study, const std::vector<std::string>& names) {
  std::vector<Finding> found;
  for (std::size_t i = 0; i < study.rows.size(); ++i) {
    const Row& row = study.rows[i];
    if (row.lost == 0) continue;
    found.push_back(
        {FindingKind::survivors,
         fmt::format("{}: {}{}; its numbers are of these alone", names[i], survivors_text(row),
                     row.why_lost.empty() ? "" : " (" + row.why_lost + ")")});
  }
  if (found.size() <= kMostListed) return found;
  return {
      {FindingKind::survivors,
       fmt::format("{} rows lost runs (column label): their numbers are of those that completed",
                   found.size())}};
}

std::vector<Finding> own_rows_findings(const Study& study, const std::vector<std::string>& names) {
  std::map<std::string, std::vector<PlacedRow>> systems;
  for (std::size_t i = 0; i < study.rows.size(); ++i) {
    const Row& row = study.rows[i];
    if (row.first().kind != "measured") continue;
    PlacedRow& placed = systems[row.first().system].emplace_back();
    placed.name = names[i];
    placed.gpus = row.first().gpus;
    for (const Run& run : row.runs) {
      const auto& hosts = run.record->provenance.hosts;
      placed.nodes.insert(hosts.begin(), hosts.end());
      // Of a single run a session says no more than the run.
      if (row.runs.size() > 1 && !run.session.empty()) placed.sessions.insert(run.session);
    }
  }
  std::vector<Finding> found;
  for (const auto& [system, rows] : systems) {
    for (const auto& own :
         {own_places(rows, &PlacedRow::nodes,
                     {FindingKind::own_nodes, "on", "on nodes of their own"}),
          own_places(rows, &PlacedRow::sessions,
                     {FindingKind::own_session, "in session", "in sessions of their own"})}) {
      found.insert(found.end(), own.begin(), own.end());
    }
  }
  return found;
}

}  // namespace paceline
