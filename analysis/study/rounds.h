// The runs of a table by session, row and round: what the order of runs can be judged by.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "analysis/statistics/run_order.h"
#include "analysis/study/contrast.h"
#include "analysis/study/study.h"

namespace paceline {

// By session, or by day where none is known. Two builds or libraries in one session are two.
std::map<std::string, Row> runs_by_session(const Row& row);

struct SessionRounds {
  std::string session;
  std::vector<std::size_t> rows;  // indices of the rows that have all rounds
  RoundMatrix logs;               // one vector for each of them
  std::vector<int> rounds;        // their numbers, as recorded
};

// Undisturbed measured runs, in the order of their sessions. Of a session whose rows have different
// rounds, those rounds that make the most runs.
std::vector<SessionRounds> session_rounds(const std::vector<Row>& rows);

// How a session differs from an earlier one, by the rows that both have.
struct SessionDifference {
  std::size_t number = 2, earlier = 1;  // of the sessions, counted from 1
  std::string session;
  std::vector<std::size_t> rows;  // that both have; the shift's indices are into these
  SessionShift shift;
};

// One for each session after the first: from the first of those with which it shares rows.
std::vector<SessionDifference> session_differences(const std::vector<SessionRounds>& sessions);

// Whether sessions, not runs, are the unit of the rows' intervals.
bool should_pool(const std::vector<Row>& rows, Pooling pooling);

// Rows compared by trimmed means, beside contrast(): see statistics/robust.h.

// The trimmed mean of the first quantity of `row` less that of `base`. Paired as contrast() is. The
// error is unknown for tainted rows, for fewer than kFewestTrimmed units, for runs of several
// sessions that make no pairs, and where the number of runs depended on their results.
Difference trimmed_contrast(const RowValues& base, const RowValues& row);

}  // namespace paceline
