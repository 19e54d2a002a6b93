#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "analysis/history/history.h"
#include "analysis/study/comparison.h"
#include "engine/core/json.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

const char* to_string(HistoryTest test) {
  return test == HistoryTest::permutation ? "permutation"
         : test == HistoryTest::split     ? "split"
                                          : "none";
}

const char* to_string(UndatedKind kind) {
  switch (kind) {
    case UndatedKind::ramp:
      return "ramp";
    case UndatedKind::decay:
      return "decay";
    case UndatedKind::wave:
      return "wave";
    case UndatedKind::modes:
      return "modes";
    case UndatedKind::vague:
      return "vague";
  }
  return "";
}

Json change_json(const SeriesHistory& series, const LevelShift& shift) {
  Json json = {{"change", series.change(shift.size)}};
  if (shift.interval) {
    json["change_low"] = series.change(shift.interval->low);
    json["change_high"] = series.change(shift.interval->high);
  }
  return json;
}

Json shift_json(const StudyHistory& study, const HistoryEvent::Member& member) {
  const SeriesHistory& series = study.series[member.series];
  const LevelShift& shift = series.found.shifts[member.shift];
  Json json = change_json(series, shift);
  json["point"] = series.series->point;
  json["before"] = series.value(shift.before);
  json["after"] = series.value(shift.after);
  return json;
}

const char* describe_software_change(const Changes& changes) {
  for (const ChangedFact& fact : changes.facts) {
    if (fact.is_software) return "changed";
  }
  return changes.knows_software ? "no recorded change" : "not recorded";
}

Json event_json(const StudyHistory& study, const HistoryEvent& event) {
  const SeriesHistory& lead = study.series[event.members.front().series];
  const LevelShift& shift = lead.found.shifts[event.members.front().shift];
  Json points = Json::array(), changes = Json::array();
  for (const HistoryEvent::Member& member : event.members)
    points.push_back(shift_json(study, member));
  for (const ChangedFact& fact : event.changes.facts) {
    changes.push_back({{"name", fact.name},
                       {"before", fact.before},
                       {"after", fact.after},
                       {"separation", fact.separation},
                       {"elsewhere", fact.elsewhere},
                       {"at_shift", fact.at_shift}});
  }
  return {{"metric", metric_info(event.metric).key},
          {"date", date_text(lead.series->sessions[shift.at].day)},
          {"after", date_text(event.first_day)},
          {"by", date_text(event.last_day)},
          {"touches", event.touches},
          {"worse", (shift.size > 0) == metric_info(event.metric).more_is_worse},
          {"points", points},
          {"software", describe_software_change(event.changes)},
          {"changes", changes}};
}

Json series_json(const SeriesHistory& each) {
  const HistorySeries& series = *each.series;
  Json sessions = Json::array(), levels = Json::array();
  for (const HistorySession& session : series.sessions) {
    sessions.push_back({{"date", date_text(session.day)},
                        {"session", session.name},
                        {"value", session.value},
                        {"runs", session.runs},
                        {"busy", session.busy},
                        {"outlying", false}});
  }
  for (const std::size_t i : each.found.outlying) sessions[i]["outlying"] = true;
  for (const SeriesLevel& level : each.found.levels) {
    Json json = {{"from", date_text(series.sessions[level.begin].day)},
                 {"to", date_text(series.sessions[level.end - 1].day)},
                 {"value", each.value(level.mean)}};
    if (level.interval) {
      json["low"] = each.value(level.interval->low);
      json["high"] = each.value(level.interval->high);
    }
    levels.push_back(std::move(json));
  }
  Json json = {{"point", series.point},    {"metric", metric_info(series.metric).key},
               {"gpus", series.gpus},      {"test", to_string(each.test)},
               {"sessions", sessions},     {"levels", levels},
               {"noise", each.found.noise}};
  if (each.found.drift) json["drift_per_day"] = each.found.drift->per_day;
  if (each.found.weekdays) json["weekdays"] = *each.found.weekdays;
  if (each.found.resemblance > 0) json["resemblance"] = each.found.resemblance;
  if (each.test != HistoryTest::none && each.found.shifts.empty()) {
    json["detectable"] = each.change(each.found.detectable);
  }
  for (const NoiseLevel& level : each.found.noise_levels) {
    json["noise_levels"].push_back({{"from", date_text(series.sessions[level.begin].day)},
                                    {"to", date_text(series.sessions[level.end - 1].day)},
                                    {"noise", level.noise}});
  }
  for (const UndatedChange& change : each.found.undated) {
    json["undated_changes"].push_back({{"kind", to_string(change.kind)},
                                       {"from", date_text(series.sessions[change.begin].day)},
                                       {"to", date_text(series.sessions[change.end].day)},
                                       {"change", each.change(change.size)}});
  }
  for (const LevelShift& shift : each.found.possible) {
    Json possible = change_json(each, shift);
    possible["date"] = date_text(series.sessions[shift.at].day);
    possible["plausible_resemblance"] = each.found.plausible_resemblance;
    json["possible_shifts"].push_back(std::move(possible));
  }
  if (each.largest_change) {
    const std::size_t at = *each.largest_change;
    const std::vector<double> values = series.scaled_values();
    json["largest_change"] = {{"date", date_text(series.sessions[at].day)},
                              {"change", each.change(values[at] - values[at - 1])}};
  }
  return json;
}

bool is_share(HistoryMetric metric) {
  return metric == HistoryMetric::exposed_communication || metric == HistoryMetric::accuracy;
}

// Decimals of a fraction.
int count_digits(double value) {
  return std::abs(value) < 0.1 ? std::max(4, fraction_digits(std::abs(value))) : 3;
}

}  // namespace

Json history_facts(const StudyHistory& study) {
  Json shifts = Json::array(), series = Json::array();
  for (const HistoryEvent& event : study.events) shifts.push_back(event_json(study, event));
  for (const SeriesHistory& each : study.series) series.push_back(series_json(each));
  return {{"shifts", shifts}, {"series", series}};
}

std::string change_number(double change, HistoryMetric metric) {
  if (metric_info(metric).is_factor || is_share(metric)) {
    return fmt::format("{:+.{}f}", 100 * change, std::abs(change) < 0.01 ? 2 : 1);
  }
  return fmt::format("{:+.{}f}", change, count_digits(change));
}

std::string unit_of_change(HistoryMetric metric) {
  return metric_info(metric).is_factor ? " %" : is_share(metric) ? " points" : "";
}

std::string change_text(const SeriesHistory& series, double size,
                        const std::optional<Interval>& interval) {
  const HistoryMetric metric = series.series->metric;
  std::string text = change_number(series.change(size), metric) + unit_of_change(metric);
  if (interval) {
    text += fmt::format(" [{}, {}]", change_number(series.change(interval->low), metric),
                        change_number(series.change(interval->high), metric));
  }
  return text;
}

std::string history_value_text(double value, const HistorySeries& series) {
  const HistoryMetric metric = series.metric;
  switch (metric) {
    case HistoryMetric::time:
      return value < 1000 ? fmt::format("{:.4g} s", value) : format_seconds(value);
    case HistoryMetric::throughput:
    case HistoryMetric::result:
      return series.unit.text(series.unit.shown(value));
    case HistoryMetric::speed_up:
      return fmt::format("{:.2f}", value);
    case HistoryMetric::serial_fraction:
      return fmt::format("{:.{}f}", value, count_digits(value));
    case HistoryMetric::energy:
      return fmt::format("{:.4g} J", value);
    case HistoryMetric::slowness:
      return fmt::format("{:.3f} times", value);
    case HistoryMetric::efficiency:
    case HistoryMetric::exposed_communication:
    case HistoryMetric::accuracy:
      return fmt::format("{:.{}f} %", 100 * value, metric == HistoryMetric::accuracy ? 2 : 1);
  }
  return "";
}

}  // namespace paceline
