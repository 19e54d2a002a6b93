#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "analysis/document/columns.h"
#include "analysis/history/history.h"
#include "analysis/study/comparison.h"
#include "analysis/study/labels.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

constexpr std::size_t kMostMembers = 4, kMostOutlying = 4, kMostFew = 3, kMostPatterns = 4;
constexpr double kDaysOfMonth = 30;

void shorten(std::vector<std::string>& details, std::size_t most) {
  if (details.size() <= most) return;
  const std::size_t more = details.size() - most;
  details.resize(most);
  details.push_back(fmt::format("and {} more (--json has all)", more));
}

const LevelShift& find_shift(const StudyHistory& study, const HistoryEvent::Member& member) {
  return study.series[member.series].found.shifts[member.shift];
}

std::string day_of_session(const SeriesHistory& series, std::size_t i) {
  return date_text(series.series->sessions[i].day);
}

// The date of the first session after, and how well it is known.
std::string shift_date(const SeriesHistory& series, const LevelShift& shift) {
  const std::string at = day_of_session(series, shift.at);
  const std::string before = day_of_session(series, shift.earliest - 1);
  if (shift.earliest == shift.latest) {
    return fmt::format("{} (the session before: {})", at, before);
  }
  return fmt::format("about {} (after {}, by {})", at, before,
                     day_of_session(series, shift.latest));
}

std::string member_text(const StudyHistory& study, const HistoryEvent::Member& member) {
  const SeriesHistory& series = study.series[member.series];
  const LevelShift& shift = find_shift(study, member);
  const SeriesLevel& before = series.found.levels[member.shift];
  const SeriesLevel& after = series.found.levels[member.shift + 1];
  return fmt::format("{}: {} -> {}, {} ({} and {})", series.series->point,
                     history_value_text(series.value(shift.before), *series.series),
                     history_value_text(series.value(shift.after), *series.series),
                     change_text(series, shift.size, shift.interval),
                     counted(before.end - before.begin, "session"), after.end - after.begin);
}

Statement event_statement(const StudyHistory& study, const HistoryEvent& event) {
  const HistoryEvent::Member& lead = event.members.front();
  const SeriesHistory& series = study.series[lead.series];
  const LevelShift& shift = find_shift(study, lead);
  Statement statement(fmt::format(
      "{}: {} {} ({}), {}", shift_date(series, shift), metric_info(event.metric).heading,
      change_text(series, shift.size, shift.interval),
      is_worse(event.metric, shift.size) ? "worse" : "better", event.touches));
  for (const HistoryEvent::Member& member : event.members) {
    statement.details.push_back(member_text(study, member));
  }
  shorten(statement.details, kMostMembers);
  for (std::string& sentence : make_sentences(event.changes)) {
    statement.details.push_back(std::move(sentence));
  }
  return statement;
}

double level_at(const LevelShifts& found, std::size_t i) {
  for (const SeriesLevel& level : found.levels) {
    if (i < level.end) return level.mean;
  }
  return found.levels.back().mean;
}

// Outlying sessions in a row, on the same side of their level: [first, last].
using OutlyingRun = std::pair<std::size_t, std::size_t>;

double distance_from_level(const SeriesHistory& series, std::size_t i) {
  return series.series->scaled_values()[i] - level_at(series.found, i);
}

std::vector<OutlyingRun> outlying_runs(const SeriesHistory& series) {
  std::vector<OutlyingRun> runs;
  for (const std::size_t i : series.found.outlying) {
    const bool goes_on =
        !runs.empty() && runs.back().second + 1 == i &&
        (distance_from_level(series, i) > 0) == (distance_from_level(series, i - 1) > 0);
    if (goes_on) {
      runs.back().second = i;
    } else {
      runs.emplace_back(i, i);
    }
  }
  return runs;
}

std::string outlying_text(const SeriesHistory& series, const OutlyingRun& run) {
  const HistoryMetric metric = series.series->metric;
  const std::size_t count = run.second - run.first + 1;
  double distance = 0, busy = 0;
  std::set<std::string> hosts;
  for (std::size_t i = run.first; i <= run.second; ++i) {
    const HistorySession& session = series.series->sessions[i];
    distance += distance_from_level(series, i) / static_cast<double>(count);
    busy += session.busy > 0 ? 1 : 0;
    hosts.insert(session.hosts.begin(), session.hosts.end());
  }
  const std::string first = day_of_session(series, run.first);
  std::string text =
      count == 1 ? fmt::format(
                       "{}: {} {}, ", first, metric_info(metric).heading,
                       history_value_text(series.series->sessions[run.first].value, *series.series))
                 : fmt::format("{} sessions from {} to {}: {} ", count, first,
                               day_of_session(series, run.second), metric_info(metric).heading);
  text += fmt::format("{} from {} level; {}", change_text(series, distance, {}),
                      count == 1 ? "its" : "their", series.series->point);
  if (busy > 0) text += count == 1 ? "; its machine was busy" : "; the machine was busy";
  std::vector<std::string> own;
  for (const std::string& host : hosts) {
    const auto uses = std::ranges::count_if(
        series.series->sessions, [&](const auto& other) { return other.hosts.contains(host); });
    if (uses == 1) own.push_back(host);
  }
  if (!own.empty()) text += "; the only session on " + join(own, ", ");
  return text;
}

Statement outlying_statement(const StudyHistory& study) {
  std::vector<std::string> details;
  std::size_t count = 0;
  for (const SeriesHistory& series : study.series) {
    count += series.found.outlying.size();
    for (const OutlyingRun& run : outlying_runs(series)) {
      details.push_back(outlying_text(series, run));
    }
  }
  shorten(details, kMostOutlying);
  return {count == 1 ? "1 outlying session value, which is not a shift"
                     : fmt::format("{} outlying session values, which are no shifts", count),
          std::move(details)};
}

Statement possible_statement(const StudyHistory& study) {
  Statement statement{
      "not judged: a level shift if sessions are independent, or chance if they resemble their "
      "neighbours",
      {}};
  for (const SeriesHistory& series : study.series) {
    for (const LevelShift& shift : series.found.possible) {
      statement.details.push_back(fmt::format(
          "{}: {} {}, {}; {} cannot exclude a correlation of neighbours of {:.2f}",
          shift_date(series, shift), metric_info(series.series->metric).heading,
          change_text(series, shift.size, shift.interval), series.series->point,
          counted(series.series->sessions.size(), "session"), series.found.plausible_resemblance));
    }
  }
  return statement;
}

std::string undated_text(const SeriesHistory& series, const UndatedChange& change) {
  const HistoryMetric metric = series.series->metric;
  const auto apart = [&] {
    return change_number(series.change(change.size), metric).substr(1) + unit_of_change(metric);
  };
  if (change.kind == UndatedKind::wave) {
    return fmt::format("up and down by {}, like a wave of {} sessions", apart(), change.period);
  }
  if (change.kind == UndatedKind::modes) {
    return fmt::format("{} of {} sessions are higher by {}, in turn with the others", change.high,
                       series.series->sessions.size(), apart());
  }
  return fmt::format("{} ({}) between {} and {}, at once or little by little",
                     change_text(series, change.size, {}),
                     is_worse(metric, change.size) ? "worse" : "better",
                     day_of_session(series, change.begin), day_of_session(series, change.end));
}

Statement undated_statement(const StudyHistory& study) {
  Statement statement{"changes without a date, which are no shifts", {}};
  for (const SeriesHistory& each : study.series) {
    for (const UndatedChange& change : each.found.undated) {
      statement.details.push_back(fmt::format("{}, {}: {}",
                                              metric_info(each.series->metric).heading,
                                              each.series->point, undated_text(each, change)));
    }
  }
  shorten(statement.details, kMostMembers);
  return statement;
}

std::string weekdays_text(const SeriesHistory& series) {
  static constexpr const char* kNames[] = {"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"};
  std::vector<std::string> parts;
  for (std::size_t k = 0; k < 7; ++k) {
    const double effect = (*series.found.weekdays)[k];
    if (effect == 0) continue;  // no session on this day
    parts.push_back(fmt::format("{} {}", kNames[k], change_text(series, effect, {})));
  }
  return join(parts, ", ");
}

std::string noise_text(const SeriesHistory& series) {
  const HistoryMetric metric = series.series->metric;
  std::vector<std::string> parts;
  for (const NoiseLevel& level : series.found.noise_levels) {
    const std::string noise = change_number(series.change(level.noise), metric).substr(1);
    parts.push_back(fmt::format("{}{} from {} on", noise, unit_of_change(metric),
                                day_of_session(series, level.begin)));
  }
  return join(parts, ", ");
}

void add_patterns(const StudyHistory& study, std::vector<Statement>& all) {
  Statement noises{"noise that changes, which is not a shift (standard deviations)", {}};
  Statement drifts{"drifts within levels, which are no shifts", {}};
  Statement weeks{"patterns of weekdays, removed before shifts are looked for", {}};
  Statement nodes{
      "sessions on other nodes, whose difference is removed before shifts are looked for", {}};
  Statement alike{"neighbouring sessions resemble each other, so shifts need more evidence", {}};
  for (const SeriesHistory& each : study.series) {
    const std::string name =
        fmt::format("{}, {}", metric_info(each.series->metric).heading, each.series->point);
    if (const auto& drift = each.found.drift) {
      const Interval month{kDaysOfMonth * drift->interval.low, kDaysOfMonth * drift->interval.high};
      drifts.details.push_back(fmt::format(
          "{}: {} in 30 days", name, change_text(each, kDaysOfMonth * drift->per_day, month)));
    }
    if (!each.found.noise_levels.empty()) {
      noises.details.push_back(name + ": " + noise_text(each));
    }
    if (each.found.weekdays) weeks.details.push_back(name + ": " + weekdays_text(each));
    for (const NodeDifference& node : each.series->node_differences) {
      nodes.details.push_back(
          fmt::format("{}: {} on {} than on {}, {} of {} sessions", name,
                      change_text(each, node.difference.mean, node.difference.interval()),
                      node.nodes, node.usual, node.sessions, each.series->sessions.size()));
    }
    if (each.found.resemblance > 0) {
      alike.details.push_back(fmt::format("{}: correlation {:.2f}", name, each.found.resemblance));
    }
  }
  for (Statement* each : {&nodes, &noises, &drifts, &weeks, &alike}) {
    if (each->details.empty()) continue;
    shorten(each->details, kMostPatterns);
    all.push_back(std::move(*each));
  }
}

double size_of_largest(const SeriesHistory& series) {
  const std::vector<double> values = series.series->scaled_values();
  return values[*series.largest_change] - values[*series.largest_change - 1];
}

std::string few_text(const SeriesHistory& series) {
  const std::size_t at = *series.largest_change;
  const auto& sessions = series.series->sessions;
  const HistoryMetric metric = series.series->metric;
  std::string text = fmt::format("{}: {} {} -> {}, {}; {}, {}", day_of_session(series, at),
                                 metric_info(metric).heading,
                                 history_value_text(sessions[at - 1].value, *series.series),
                                 history_value_text(sessions[at].value, *series.series),
                                 change_text(series, size_of_largest(series), {}),
                                 series.series->point, counted(sessions.size(), "session"));
  const Changes changes = changes_across(*series.series, at - 1, at, at, at + 1);
  for (const ChangedFact& fact : changes.facts) {
    if (fact.is_software) text += fmt::format("; {}: {} -> {}", fact.name, fact.before, fact.after);
  }
  if (changes.knows_software && std::ranges::none_of(changes.facts, &ChangedFact::is_software)) {
    text += "; software as recorded is the same";
  }
  return text;
}

void add_few(const StudyHistory& study, std::vector<Statement>& all) {
  std::vector<const SeriesHistory*> few;
  for (const SeriesHistory& series : study.series) {
    if (series.largest_change && size_of_largest(series) != 0) few.push_back(&series);
  }
  if (few.empty()) return;
  std::ranges::stable_sort(few, [](const auto* a, const auto* b) {
    return std::abs(size_of_largest(*a)) > std::abs(size_of_largest(*b));
  });
  const bool is_tested =
      std::ranges::any_of(few, [](const auto* each) { return each->test != HistoryTest::none; });
  Statement statement{
      fmt::format(
          "{}: {} series; the largest change between neighbours of each{}",
          is_tested ? "no level shift"
                    : "too few sessions to distinguish a shift from noise or from one odd session",
          few.size(), is_tested ? ", which may be one odd session" : ""),
      {}};
  for (const SeriesHistory* series : few) statement.details.push_back(few_text(*series));
  shorten(statement.details, kMostFew);
  all.push_back(std::move(statement));
}

// "19", "19 to 38"
template <typename Text>
std::string range_text(const std::pair<double, double>& range, const Text& text) {
  const std::string low = text(range.first), high = text(range.second);
  return low == high ? low : low + " to " + high;
}

// What series without a shift would have shown, by metric.
void add_detectable(const StudyHistory& study, std::vector<Statement>& all) {
  struct Found {
    std::size_t series = 0;
    std::pair<double, double> sizes, sessions;
  };
  std::map<HistoryMetric, Found> found;
  for (const SeriesHistory& each : study.series) {
    if (each.test == HistoryTest::none || !each.found.shifts.empty()) continue;
    Found& metric = found[each.series->metric];
    const double size = each.change(each.found.detectable);
    const auto sessions = static_cast<double>(each.series->sessions.size());
    if (metric.series++ == 0) metric = {1, {size, size}, {sessions, sessions}};
    metric.sizes = {std::min(metric.sizes.first, size), std::max(metric.sizes.second, size)};
    metric.sessions = {std::min(metric.sessions.first, sessions),
                       std::max(metric.sessions.second, sessions)};
  }
  for (const auto& [metric, each] : found) {
    const std::string sessions =
        range_text(each.sessions, [](double value) { return fmt::format("{:g}", value); });
    std::string size =
        range_text(each.sizes,
                   [&, m = metric](double value) { return change_number(value, m).substr(1); }) +
        unit_of_change(metric);
    // Of percentages above 100 nobody sees how little they say.
    const bool coarse = metric_info(metric).is_factor && each.sizes.first >= 1;
    if (coarse) {
      size = "a factor of " +
             range_text(each.sizes, [](double value) { return fmt::format("{:.3g}", 1 + value); });
    }
    all.push_back({fmt::format("{}: no level shift{}; {} sessions would have shown {} of {} in "
                               "their middle (with {:g} % probability)",
                               metric_info(metric).heading,
                               each.series == 1 ? "" : fmt::format(" in {} series", each.series),
                               sessions, coarse ? "only one" : "one", size, 100 * kDetectablePower),
                   {}});
  }
}

std::string summarize(const StudyHistory& study) {
  std::size_t least = study.series.front().series->sessions.size(), most = least;
  double first = study.series.front().series->sessions.front().day, last = first;
  for (const SeriesHistory& each : study.series) {
    const auto& sessions = each.series->sessions;
    least = std::min(least, sessions.size());
    most = std::max(most, sessions.size());
    first = std::min(first, sessions.front().day);
    last = std::max(last, sessions.back().day);
  }
  const std::size_t count = study.series.size();
  std::size_t undated = 0;
  for (const SeriesHistory& each : study.series) undated += each.found.undated.size();
  return fmt::format(
      "{} series of {} sessions, {} to {}: {}{}", count,
      least == most ? fmt::format("{}", least) : fmt::format("{} to {}", least, most),
      date_text(first), date_text(last),
      study.events.empty() ? "no level shift" : counted(study.events.size(), "level shift"),
      undated > 0 ? fmt::format(", {} without a date", counted(undated, "change")) : "");
}

// Shifts, outlying sessions, drifts, patterns of weekdays, and the largest changes of series with
// too few sessions.
std::vector<Statement> make_statements(const StudyHistory& study) {
  std::vector<Statement> all;
  for (const HistoryEvent& event : study.events) all.push_back(event_statement(study, event));
  for (const Statement& each :
       {undated_statement(study), possible_statement(study), outlying_statement(study)}) {
    if (!each.details.empty()) all.push_back(each);
  }
  add_detectable(study, all);
  add_patterns(study, all);
  add_few(study, all);
  return all;
}

// By which a shift is read. May be empty.
std::vector<std::string> tested_note(const History& history) {
  if (history.tested == 0) return {};
  return {fmt::format(
      "{} series {} tested; if nothing changed, a call finds a shift with a probability of at most "
      "{:g} %; a level that wanders, as with a season, may have shifts, too",
      history.tested, history.tested == 1 ? "was" : "were", 100 * kFalseShifts)};
}

// How they were tested, and how to read it.
std::vector<std::string> history_notes(const History& history) {
  std::vector<std::string> notes;
  bool any_long = false, any_split = false, any_shift = false;
  for (const StudyHistory& study : history.studies) {
    any_shift = any_shift || !study.events.empty();
    for (const SeriesHistory& each : study.series) {
      any_long = any_long || each.test == HistoryTest::permutation;
      any_split = any_split || each.test == HistoryTest::split;
    }
  }
  if (any_long) {
    notes.push_back(fmt::format(
        "{} sessions or more: circular binary segmentation with a permutation test; a drift that "
        "begins or ends, a slow wave, a spike of up to 3 sessions, a noise that changes and "
        "weekdays are no shifts",
        kFewestInSeries));
  }
  if (any_split) {
    notes.push_back(
        fmt::format("{} to {} sessions: one shift at most, between levels of at least 2 sessions, "
                    "by moderated t tests that assume normal noise, similar in all such series; "
                    "fewer than {} sessions are assumed to be independent and without drift",
                    kFewestForSplit, kFewestInSeries - 1, kFewestForResemblance));
  }
  if (any_shift) {
    notes.push_back(
        "[ ] are 95 % intervals of the change; what changed with a shift need not be its cause");
  }
  return notes;
}

std::string shifts_text(const SeriesHistory& series) {
  std::vector<std::string> shifts = mapped(series.found.shifts, [&](const LevelShift& shift) {
    return day_of_session(series, shift.at) + ' ' + change_text(series, shift.size, {});
  });
  if (!shifts.empty()) return join(shifts, ", ");
  return series.test == HistoryTest::none ? "too few sessions" : "none found";
}

Table series_table(const std::vector<SeriesHistory>& series) {
  using Row = const SeriesHistory&;
  const auto level = [](Row r) {
    const double level = r.value(r.found.now);
    return Cell{history_value_text(level, *r.series), level};
  };
  const auto noise = [](Row r) {
    const HistoryMetric metric = r.series->metric;
    const std::string noise = change_number(r.change(r.found.noise), metric).substr(1);
    return Cell{noise + unit_of_change(metric), r.found.noise};
  };
  Table table =
      ColumnsOf<SeriesHistory>()
          .text("point", "point", [](Row r) { return r.series->point; })
          .text("metric", "metric", [](Row r) { return metric_info(r.series->metric).heading; })
          .real("level", "level now", level)
          .text("shifts", "shifts", shifts_text)
          .real("noise", "noise", noise)
          .text("since", "level since",
                [](Row r) { return day_of_session(r, r.found.levels.back().begin); })
          .whole("sessions", "sessions", [](Row r) { return r.series->sessions.size(); })
          .table(series, "");  // JSON has the series
  table.in_text = false;
  return table;
}

}  // namespace

Document history_document(const History& history) {
  std::set<std::string> studies;
  for (const StudyHistory& each : history.studies) studies.merge(std::set(each.study.studies));
  Document document{.name = "history",
                    .title = "History" + of_studies(studies),
                    .is_brief = true,
                    .list = "history"};
  const bool is_one = history.studies.size() == 1;
  if (is_one) document.title += ": " + history.studies.front().study.title;
  document.facts =
      make_facts({{"false_shift_probability", kFalseShifts}, {"series_tested", history.tested}});
  std::size_t plots = 0;
  for (const StudyHistory& study : history.studies) {
    Section& section = document.sections.emplace_back();
    if (!is_one) section.title = study.study.title;
    section.headline = summarize(study);
    section.warnings = study.study.warnings;
    section.table = series_table(study.series);
    section.findings = make_statements(study);
    section.notes = history_notes(history);
    section.caveats = study.study.notes;
    std::ranges::move(tested_note(history),
                      std::back_inserter(study.events.empty() ? section.notes : section.caveats));
    section.plots = history_plots(study, plots + 1);
    section.facts = make_facts(history_facts(study));
    plots += section.plots.size();
  }
  return document;
}

}  // namespace paceline
