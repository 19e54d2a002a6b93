// Findings about the runs themselves: on which nodes, in which sessions and in which order they
// were made. Their levels (statistics/run_order.h) make at most one table of independent runs in
// twenty have any of the tested findings.
#pragma once

#include <string>
#include <vector>

#include "analysis/findings/findings.h"
#include "analysis/study/rounds.h"

namespace paceline {

// In this order: rows whose runs differ widely, that lost runs, or that have nodes or a session to
// themselves; how sessions differ; trends and resemblance over rounds; whether there is but one
// session.
std::vector<Finding> findings_about_runs(const Study& study, const Comparison& comparison,
                                         const std::vector<RowFacts>& facts);

// Rows that lost runs, or ran where or when no other did (own_rows.cpp).
std::vector<Finding> survivor_findings(const Study& study, const std::vector<std::string>& names);
std::vector<Finding> own_rows_findings(const Study& study, const std::vector<std::string>& names);

std::vector<Finding> session_findings(const Study& study,
                                      const std::vector<SessionRounds>& sessions,
                                      const std::vector<std::string>& names);

// A trend, else a slow first round, else resemblance: one of them would show in the tests of the
// others.
std::vector<Finding> round_findings(const std::vector<SessionRounds>& sessions);

// What the record says of why runs of a row differ widely; else the question.
std::string why_unlike(const Row& row);

}  // namespace paceline
