#include "analysis/study/rounds.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>

#include "analysis/statistics/robust.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

using ByRound = std::map<int, std::pair<double, int>>;  // sum of logarithms and number of runs

bool has_order(const Row& row) {
  return row.first()->kind == "measured" && !row.tainted;
}

// Seconds, unless a run has none: then seconds per sample.
std::optional<double> log_time(const Run& run, bool rates) {
  if (rates) {
    return run.samples_per_second ? std::optional(-std::log(*run.samples_per_second))
                                  : std::nullopt;
  }
  return run.fit_seconds() ? std::optional(std::log(*run.fit_seconds())) : std::nullopt;
}

bool lacks_seconds(const std::vector<Row>& rows) {
  return std::any_of(rows.begin(), rows.end(), [](const Row& row) {
    return has_order(row) && std::any_of(row.runs.begin(), row.runs.end(),
                                         [](const Run& run) { return !run.fit_seconds(); });
  });
}

std::map<std::string, std::map<std::size_t, ByRound>> by_session(const std::vector<Row>& rows) {
  const bool rates = lacks_seconds(rows);
  std::map<std::string, std::map<std::size_t, ByRound>> sessions;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!has_order(rows[i])) continue;
    for (const Run& run : rows[i].runs) {
      const auto time = log_time(run, rates);
      if (!time || run->session.empty() || run->round < 1) continue;
      auto& [sum, count] = sessions[run->session][i][run->round];
      sum += *time;
      ++count;
    }
  }
  return sessions;
}

std::vector<int> rounds_in(const ByRound& row) {
  return mapped(row, [](const auto& round) { return round.first; });
}

std::vector<int> most_common_rounds(const std::map<std::size_t, ByRound>& rows) {
  std::map<std::vector<int>, std::size_t> counts;
  for (const auto& [row, rounds] : rows) counts[rounds_in(rounds)] += rounds.size();
  return std::ranges::max_element(counts, {}, [](const auto& each) { return each.second; })->first;
}

// The rows of `of` that are in `rows`.
RoundMatrix select_rows(const SessionRounds& of, const std::vector<std::size_t>& rows) {
  RoundMatrix logs;
  for (std::size_t i = 0; i < of.rows.size(); ++i) {
    if (std::binary_search(rows.begin(), rows.end(), of.rows[i])) logs.push_back(of.logs[i]);
  }
  return logs;
}

std::vector<double> first_quantity(const RowValues& row) {
  return mapped(row.values, [](const std::vector<double>& unit) { return unit.front(); });
}

}  // namespace

std::map<std::string, Row> runs_by_session(const Row& row) {
  std::map<std::string, Row> sessions;
  for (const Run& run : row.runs) {
    std::string key =
        run->session.empty() ? run->provenance.started_at.substr(0, 10) : run->session;
    add_to_key(key, run->build());
    add_to_key(key, run->provenance.libraries);
    sessions[key].runs.push_back(run);
  }
  return sessions;
}

std::vector<SessionRounds> session_rounds(const std::vector<Row>& rows) {
  std::vector<SessionRounds> all;
  for (const auto& [session, members] : by_session(rows)) {
    const std::vector<int> rounds = most_common_rounds(members);
    SessionRounds& made = all.emplace_back(SessionRounds{session, {}, {}, rounds});
    for (const auto& [row, runs] : members) {
      if (rounds_in(runs) != rounds) continue;
      made.rows.push_back(row);
      std::vector<double>& logs = made.logs.emplace_back();
      for (const auto& [round, sum] : runs) logs.push_back(sum.first / sum.second);
    }
  }
  return all;
}

std::vector<SessionDifference> session_differences(const std::vector<SessionRounds>& sessions) {
  std::vector<SessionDifference> all;
  for (std::size_t i = 1; i < sessions.size(); ++i) {
    for (std::size_t earlier = 0; earlier < i; ++earlier) {
      const SessionRounds &first = sessions[earlier], &second = sessions[i];
      SessionDifference difference{i + 1, earlier + 1, second.session, {}, {}};
      std::set_intersection(first.rows.begin(), first.rows.end(), second.rows.begin(),
                            second.rows.end(), std::back_inserter(difference.rows));
      difference.shift =
          session_shift(select_rows(first, difference.rows), select_rows(second, difference.rows),
                        kSessionLevel / static_cast<double>(sessions.size() - 1));
      if (difference.shift.rest_rows == 0) continue;
      all.push_back(std::move(difference));
      break;
    }
  }
  return all;
}

bool should_pool(const std::vector<Row>& rows, Pooling pooling) {
  if (pooling != Pooling::by_sessions) return pooling == Pooling::always;
  std::size_t measured = 0, several = 0;
  for (const Row& row : rows) {
    if (row.first()->kind != "measured") continue;
    ++measured;
    several += count_sessions(row) > 1 ? 1 : 0;
  }
  return 2 * several > measured;
}

Difference trimmed_contrast(const RowValues& base, const RowValues& row) {
  const std::vector<RowValues> rows = within_sessions({base, row});
  std::vector<double> differences;
  const auto sessions = distinct(rows[0].units, [](const auto& unit) { return unit.first; });
  for (const RowMeans& means : paired_means(rows)) {
    differences.push_back(means[1][0] - means[0][0]);
  }
  Difference result = differences.empty()
                          ? trimmed_difference(first_quantity(rows[1]), first_quantity(rows[0]))
                          : trimmed_difference(differences);
  const bool is_valid = std::ranges::all_of(rows, [](const RowValues& each) {
    return !each.tainted && each.stopping == Stopping::fixed;
  });
  // Runs of several sessions that make no pairs also differ by how their sessions do.
  if (!is_valid || (differences.empty() && sessions.size() > 1)) result.degrees_of_freedom = 0;
  return result;
}

}  // namespace paceline
