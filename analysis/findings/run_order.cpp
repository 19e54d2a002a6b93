#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "analysis/findings/findings.h"
#include "analysis/study/labels.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

// "10.0 %", "0.043 %": of a difference of logarithms, without its sign.
std::string size_text(double logarithm) {
  const double percent = 100 * std::abs(std::expm1(logarithm));
  return percent >= 0.1 || percent == 0 ? fmt::format("{:.1f} %", percent)
                                        : fmt::format("{:.2g} %", percent);
}

// " [2.9, 3.1]", in percent; for a negative difference, of its absolute value.
std::string interval_text(const Difference& difference) {
  const auto interval = difference.interval();
  if (!interval) return "";
  const double sign = difference.mean < 0 ? -1 : 1;
  double low = sign * 100 * std::expm1(interval->low),
         high = sign * 100 * std::expm1(interval->high);
  if (low > high) std::swap(low, high);
  return fmt::format(" [{:.1f}, {:.1f}]", low, high);
}

std::string slower_text(double logarithm) {
  return size_text(logarithm) + (logarithm < 0 ? " faster" : " slower");
}

std::string which_rows(std::size_t alike, std::size_t all) {
  if (all == 1) return "in the one row";
  return alike == all ? fmt::format("in all {} rows", all)
                      : fmt::format("in {} of {} rows", alike, all);
}

// "in 3 of 4 rows": those that change as all do. Weights of rounds: a session and a round give one.
template <typename Weight>
std::string describe_rows(const std::vector<SessionRounds>& sessions, double sign, Weight weight) {
  std::map<std::size_t, double> sums;
  for (std::size_t s = 0; s < sessions.size(); ++s) {
    for (std::size_t i = 0; i < sessions[s].rows.size(); ++i) {
      const std::vector<double>& logs = sessions[s].logs[i];
      for (std::size_t k = 0; k < logs.size(); ++k) {
        sums[sessions[s].rows[i]] += weight(s, k) * (logs[k] - average(logs));
      }
    }
  }
  const auto alike =
      std::ranges::count_if(sums, [sign](const auto& each) { return each.second * sign > 0; });
  return which_rows(static_cast<std::size_t>(alike), sums.size());
}

// "times rise by 1.0 % a round [0.6, 1.3]", "runs take 8.0 % longer [7.1, 8.9] from round 7 on",
// "rounds 3 and 8 take 8.0 % longer [7.1, 8.9]".
std::string describe_pattern(const RoundPattern& pattern,
                             const std::vector<SessionRounds>& sessions) {
  const double size = pattern.size.mean;
  const std::string of_size = size_text(size), interval = interval_text(pattern.size);
  if (pattern.shape == RoundPattern::line) {
    return fmt::format("times {} by {} a round{}", size > 0 ? "rise" : "fall", of_size, interval);
  }
  const SessionRounds& session = sessions[pattern.session];
  const std::string in =
      sessions.size() > 1 ? fmt::format(" of session {}", pattern.session + 1) : "";
  const std::string longer =
      fmt::format("{} {}{}", of_size, size > 0 ? "longer" : "less", interval);
  const std::vector<std::string> numbers = mapped(
      pattern.rounds, [&](std::size_t round) { return std::to_string(session.rounds[round]); });
  if (pattern.shape == RoundPattern::step) {
    return fmt::format("runs take {} from round {}{} on", longer, numbers.front(), in);
  }
  return numbers.size() == 1
             ? fmt::format("round {}{} takes {} than the others", numbers.front(), in, longer)
             : fmt::format("rounds {}{} take {} than the others", join(numbers, ", "), in, longer);
}

std::vector<Finding> pattern_findings(const std::vector<RoundPattern>& patterns,
                                      const std::vector<SessionRounds>& sessions) {
  if (patterns.empty()) return {};
  const RoundPattern& best = patterns.front();
  std::vector<std::string> texts = mapped(
      patterns, [&](const RoundPattern& pattern) { return describe_pattern(pattern, sessions); });
  const auto weight = [&](std::size_t session, std::size_t round) {
    if (best.shape == RoundPattern::line) return static_cast<double>(round);
    return session == best.session && std::ranges::count(best.rounds, round) > 0 ? 1.0 : 0.0;
  };
  const FindingKind kind = best.shape == RoundPattern::line   ? FindingKind::rounds_trend
                           : best.shape == RoundPattern::step ? FindingKind::rounds_step
                                                              : FindingKind::slow_rounds;
  return {{kind, fmt::format("{}, {}; {}intervals of times are wider for it", join(texts, ", or "),
                             describe_rows(sessions, best.size.mean, weight),
                             texts.size() > 1 ? "these runs do not show which; " : "")}};
}

bool differs(const Difference& difference, double level) {
  return difference.p_value() < level;
}

// How the other rows differ, where some differ from the earlier session in ways of their own.
std::string rest_text(const SessionDifference& difference, double level) {
  const SessionShift& shift = difference.shift;
  const std::string rest = shift.rest_rows == 1 ? "the other row" : "the other rows";
  return differs(shift.rest, level)
             ? fmt::format("{} {}{}", rest, slower_text(shift.rest.mean), interval_text(shift.rest))
             : fmt::format("{} cannot be distinguished from session {}", rest, difference.earlier);
}

Finding describe_session(const SessionDifference& difference, double level,
                         const std::vector<std::string>& names) {
  const SessionShift& shift = difference.shift;
  const std::string session = fmt::format("session {} ({})", difference.number, difference.session);
  if (!shift.apart.empty()) {
    std::vector<std::string> rows;
    for (const auto& [index, row] : shift.apart) {
      rows.push_back(fmt::format("{} {}{}", names[difference.rows[index]], slower_text(row.mean),
                                 interval_text(row)));
    }
    return {FindingKind::sessions_differ,
            fmt::format("in {} rows differ from session {} in different ways: {}; {}", session,
                        difference.earlier, join(rows, ", "), rest_text(difference, level))};
  }
  if (differs(shift.rest, level)) {
    return {FindingKind::sessions_differ,
            fmt::format("{} was {} than session {} throughout{}, {}", session,
                        slower_text(shift.rest.mean), difference.earlier, interval_text(shift.rest),
                        shift.rest_rows == 1 ? "in the one row that both have"
                                             : fmt::format("over {} rows", shift.rest_rows))};
  }
  return {FindingKind::sessions_alike,
          fmt::format("{} cannot be distinguished from session {}: {} over {}{}", session,
                      difference.earlier, slower_text(shift.rest.mean),
                      counted(shift.rest_rows, "row"), interval_text(shift.rest))};
}

// Intervals over runs know nothing of how sessions differ.
std::vector<Finding> describe_intervals(const Study& study) {
  std::set<std::string> sessions;
  std::size_t most = 0;
  for (const Row& row : study.rows) {
    if (row.first()->kind != "measured") continue;
    for (const Run& run : row.runs) sessions.insert(run->session);
    if (!row.tainted) most = std::max(most, row.pooled ? 0 : units_in(row));
  }
  if (sessions.contains("") || most < 2) return {};
  return {
      {FindingKind::one_session,
       fmt::format("all runs are of {}: another may differ by more than these intervals",
                   sessions.size() == 1 ? "one session" : counted(sessions.size(), "session"))}};
}

}  // namespace

std::vector<Finding> session_findings(const Study& study,
                                      const std::vector<SessionRounds>& sessions,
                                      const std::vector<std::string>& names) {
  constexpr std::size_t kMostSessions = 3;
  const auto differences = session_differences(sessions);
  const double others = sessions.empty() ? 1 : static_cast<double>(sessions.size()) - 1;
  const double level = kSessionLevel / std::max(1.0, others);
  std::vector<Finding> found = mapped(differences, [&](const SessionDifference& difference) {
    return describe_session(difference, level, names);
  });
  const bool pooled = std::ranges::any_of(study.rows, [](const Row& row) { return row.pooled; });
  // Intervals over sessions include how these differ.
  if (pooled && sessions.size() > 2) found.clear();
  if (found.size() > kMostSessions) found.resize(kMostSessions);
  return found;
}

std::vector<Finding> round_findings(const std::vector<SessionRounds>& sessions) {
  const std::vector<RoundMatrix> all = mapped(sessions, &SessionRounds::logs);
  const Difference first = first_round_excess(all);
  if (first.mean > 0 && first.p_value() / 2 < kFirstRoundLevel) {
    const auto is_first = [](std::size_t, std::size_t round) { return round == 0 ? 1.0 : 0.0; };
    return {{FindingKind::slow_first_round,
             fmt::format("the first round is {} than the others{} {}; caches may be cold then",
                         slower_text(first.mean), interval_text(first),
                         describe_rows(sessions, 1, is_first))}};
  }
  std::vector<Finding> found = pattern_findings(find_patterns(all), sessions);
  if (!found.empty()) return found;
  const Resemblance resemblance = resemblance_of_rounds(all);
  if (resemblance.p >= kCorrelationLevel) return {};
  return {{FindingKind::rounds_resemble,
           fmt::format("intervals are too narrow: runs resemble those of the round before "
                       "(correlation {:.1f}, p = {:.1g}), as on a machine that drifts",
                       resemblance.correlation, resemblance.p)}};
}

std::string why_unlike(const Row& row) {
  const std::size_t busy = busy_runs(row);
  if (busy > 0) {
    return fmt::format("; the machine was busy in {} of {} runs", busy, row.runs.size());
  }
  const auto before = [](const Run& a, const Run& b) {
    return std::tie(a->session, a->round, a->provenance.started_at) <
           std::tie(b->session, b->round, b->provenance.started_at);
  };
  const auto faster = [](const Run& a, const Run& b) {
    return a.fit_seconds().value_or(0) < b.fit_seconds().value_or(0);
  };
  const auto slowest = std::ranges::max_element(row.runs, faster);
  const bool is_first = slowest->fit_seconds() && slowest->record->round > 0 &&
                        slowest == std::ranges::min_element(row.runs, before);
  const std::string first =
      is_first ? "; its first run is the slowest: caches may be cold then" : "";
  const bool recorded = std::ranges::all_of(
      row.runs, [](const Run& run) { return run->provenance.machine_load.busy.has_value(); });
  if (!recorded) return first + (is_first ? "" : ": was the machine busy?");
  return first + (is_first ? "" : "; the machine was busy in none of them");
}

std::vector<Finding> findings_about_runs(const Study& study, const Comparison& comparison,
                                         const std::vector<RowFacts>& facts) {
  const std::vector<std::string> names = point_names(study, mapped(facts, &RowFacts::row));
  const std::vector<SessionRounds> sessions = session_rounds(study.rows);
  std::vector<Finding> found = unlike_runs(study, comparison, facts);
  const auto append = [&](const std::vector<Finding>& more) {
    found.insert(found.end(), more.begin(), more.end());
  };
  append(survivor_findings(study, names));
  append(session_findings(study, sessions, names));
  append(round_findings(sessions));
  append(describe_intervals(study));
  return found;
}

}  // namespace paceline
