#include "analysis/history/series.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>

#include "analysis/study/comparison.h"
#include "analysis/study/cost.h"
#include "analysis/study/labels.h"
#include "analysis/study/rounds.h"
#include "analysis/study/scaling_series.h"
#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/facts/timing.h"

namespace paceline {

namespace {

using BySession = std::map<std::string, Row>;
using OptionalValue = std::optional<double>;

OptionalValue compute_mean(const Row& row, const RunFact& fact) {
  std::vector<double> values;
  for (const Run& run : row.runs) {
    if (const OptionalValue value = fact(run); value && *value > 0) values.push_back(*value);
  }
  return values.empty() ? OptionalValue() : geometric_mean(values).value;
}

OptionalValue measure_cost(const Row& row, bool rates) {
  const OptionalValue mean =
      compute_mean(row, rates ? RunFact(&Run::samples_per_second) : &Run::fit_seconds);
  return rates && mean ? OptionalValue(1 / *mean) : mean;
}

OptionalValue day_of_session(const Row& row) {
  OptionalValue first;
  for (const Run& run : row.runs) {
    OptionalValue day = parse_day(run->provenance.started_at);
    if (!day) day = parse_day(run->session);
    if (day) first = std::min(first.value_or(*day), *day);
  }
  return first;
}

HistorySession make_session(const Row& row, double day, double value) {
  HistorySession session{row.first()->session, day, value, row.runs.size(), busy_runs(row)};
  for (const Run& run : row.runs) {
    const std::vector<std::string> hosts = run->host_names();
    session.hosts.insert(hosts.begin(), hosts.end());
  }
  for (const auto& fact : row.first().origin) {
    if (fact.first != "hosts" && fact.first != "source" && fact.first != "system") {
      session.origin.push_back(fact);
    }
  }
  return session;
}

class SeriesMaker {
 public:
  SeriesMaker(const Study& study, const HistoryOptions& options, HistoryStudy& made)
      : study_(study), comparison_(compare(study, Base::matched)), options_(options), made_(made) {
    for (const Row& row : study.rows) units_.push_back(runs_by_session(row));
  }

  void make() {
    const std::vector<std::string> names = point_names(study_);
    for (std::size_t i = 0; i < study_.rows.size(); ++i) {
      for (const HistoryMetric metric : list_metrics(i)) add(i, metric, names[i]);
    }
    if (undated_ > 0) {
      made_.notes.push_back(fmt::format("{} without a date {} left out",
                                        counted(undated_, "session of a point"),
                                        undated_ == 1 ? "is" : "are"));
    }
    if (single_ > 0) {
      made_.notes.push_back(
          fmt::format("{} of a single session {} left out",
                      single_ == 1 ? "1 series" : fmt::format("{} series", single_),
                      single_ == 1 ? "is" : "are"));
    }
  }

 private:
  std::vector<HistoryMetric> list_metrics(std::size_t i) const {
    if (!options_.metrics.empty()) return options_.metrics;
    const auto has = [&](HistoryMetric metric) {
      return std::ranges::any_of(
          units_[i], [&](const auto& unit) { return measure_value(i, metric, unit).has_value(); });
    };
    std::vector<HistoryMetric> all;
    using enum HistoryMetric;
    if (study_.unit.is_own()) {
      all.push_back(study_.unit.better == "less" ? result : throughput);
    } else {
      all.push_back(has(time) ? time : throughput);
    }
    all.push_back(has(serial_fraction) ? serial_fraction : efficiency);
    all.insert(all.end(), {exposed_communication, energy, accuracy});
    return all;
  }

  OptionalValue compute_speed_up(std::size_t i, const BySession::value_type& unit) const {
    if (!comparison_.speed_ups[i] || study_.rows[i].first()->layout.gpus == 1) return {};
    const BySession& bases = units_[comparison_.speed_ups[i]->base];
    const auto base = bases.find(unit.first);
    if (base == bases.end()) return {};
    const OptionalValue above = measure_cost(base->second, comparison_.rates);
    const OptionalValue below = measure_cost(unit.second, comparison_.rates);
    return above && below ? OptionalValue(*above / *below) : OptionalValue();
  }

  OptionalValue measure_value(std::size_t i, HistoryMetric metric,
                              const BySession::value_type& unit) const {
    const Row& row = unit.second;
    switch (metric) {
      case HistoryMetric::time:
        return compute_mean(row, &Run::fit_seconds);
      case HistoryMetric::throughput:
      case HistoryMetric::result: {
        const bool is_less = study_.unit.better == "less";
        if (is_less != (metric == HistoryMetric::result)) return {};
        const OptionalValue rate = compute_mean(row, &Run::samples_per_second);
        return rate ? OptionalValue(study_.unit.shown(*rate)) : rate;
      }
      case HistoryMetric::energy:
        return compute_mean(row,
                            compares_rates(study_.scaling) ? joules_per_sample : energy_joules);
      case HistoryMetric::accuracy:
        return mean(row, &Run::test_accuracy);
      case HistoryMetric::exposed_communication:
        if (row.first()->layout.gpus == 1) return {};
        return share_of_step(row, &PhaseSeconds::communication);
      case HistoryMetric::speed_up:
      case HistoryMetric::efficiency:
      case HistoryMetric::serial_fraction:
        break;
      case HistoryMetric::slowness:  // of screens alone
        return {};
    }
    const OptionalValue speed_up = compute_speed_up(i, unit);
    if (!speed_up) return {};
    if (metric == HistoryMetric::speed_up) return speed_up;
    const SpeedUp& known = *comparison_.speed_ups[i];
    if (metric == HistoryMetric::efficiency) return *speed_up / known.ideal;
    return known.karp_flatt ? OptionalValue(karp_flatt(*speed_up, known.ideal)) : OptionalValue();
  }

  void add(std::size_t i, HistoryMetric metric, const std::string& name) {
    const Run& first = study_.rows[i].first();
    HistorySeries series{name, metric, first->layout.gpus, first->layout.nodes, {}, study_.unit};
    for (const auto& unit : units_[i]) {
      const OptionalValue value = measure_value(i, metric, unit);
      if (!value) continue;
      const OptionalValue day = day_of_session(unit.second);
      undated_ += day ? 0 : 1;
      if (!day || (options_.since && *day < *options_.since)) continue;
      series.sessions.push_back(make_session(unit.second, *day, *value));
    }
    single_ += series.sessions.size() == 1 ? 1 : 0;
    if (series.sessions.size() < 2) return;
    std::ranges::stable_sort(series.sessions, {}, &HistorySession::day);
    take_out_nodes(series);
    made_.series.push_back(std::move(series));
  }

  const Study& study_;
  const Comparison comparison_;
  const HistoryOptions& options_;
  HistoryStudy& made_;
  std::vector<BySession> units_;  // by row
  std::size_t undated_ = 0, single_ = 0;
};

// Without what a published row states of its session: its date and its software.
Record without_session(const Record& record) {
  RunRecord facts = *record;
  std::string& stack = facts.provenance.stack;
  for (const std::string* part : {&facts.provenance.libraries, &facts.session}) {
    if (part->empty()) continue;
    const std::size_t at = stack.find(*part);
    if (at == std::string::npos) continue;
    stack.erase(at, part->size());
    const std::size_t comma = stack.find(", ", at == 0 ? 0 : at - std::min<std::size_t>(at, 2));
    if (comma != std::string::npos) stack.erase(comma, 2);
  }
  return {std::move(facts), record.where()};
}

void add_left_out(const std::vector<std::string>& lines, std::vector<std::string>& notes) {
  constexpr std::size_t kMost = 5;
  for (std::size_t i = 0; i < std::min(lines.size(), kMost); ++i) notes.push_back(lines[i]);
  if (lines.size() > kMost) {
    notes.push_back(
        fmt::format("{} more records are left out; report lists them", lines.size() - kMost));
  }
}

}  // namespace

const std::vector<HistoryMetricInfo>& history_metrics() {
  using enum HistoryMetric;
  static const std::vector<HistoryMetricInfo> all = {
      {time, "time", "time", true, true},
      {throughput, "throughput", "throughput", true, false},
      {result, "result", "result", true, true},
      {speed_up, "speed-up", "speed-up", true, false},
      {efficiency, "efficiency", "efficiency", true, false},
      {serial_fraction, "serial-fraction", "Karp-Flatt fraction", false, true},
      {exposed_communication, "exposed-communication", "exposed communication", false, true},
      {energy, "energy", "energy", true, true},
      {accuracy, "accuracy", "test accuracy", false, false},
      {slowness, "slowness", "slowness", true, true}};
  return all;
}

const HistoryMetricInfo& metric_info(HistoryMetric metric) {
  return *std::ranges::find(history_metrics(), metric, &HistoryMetricInfo::metric);
}

HistoryMetric parse_history_metric(const std::string& key) {
  std::vector<std::string> known;
  for (const HistoryMetricInfo& info : history_metrics()) {
    if (info.metric == HistoryMetric::slowness) continue;  // of screens alone
    if (key == info.key) return info.metric;
    known.emplace_back(info.key);
  }
  throw usage_error("unknown metric \"" + key + "\"", "--metric", suggestion(key, known));
}

std::vector<double> HistorySeries::days() const {
  return mapped(sessions, &HistorySession::day);
}

std::vector<double> HistorySeries::scaled_values() const {
  std::vector<double> all;
  const bool is_factor = metric_info(metric).is_factor;
  for (const HistorySession& session : sessions) {
    all.push_back((is_factor ? std::log(session.value) : session.value) - session.due_to_nodes);
  }
  return all;
}

std::vector<HistoryStudy> make_history(StoreContent content, const HistoryOptions& options) {
  for (Record& record : content.records) {
    if (record->kind == "published") record = without_session(record);
  }
  std::vector<HistoryStudy> all;
  for (const Study& study :
       make_studies(content, options.points, {}, Pooling::always, EvidencePolicy::history())) {
    HistoryStudy made{study_title(study), study_names(study), {}, study.warnings, {}};
    SeriesMaker(study, options, made).make();
    add_left_out(study.left_out, made.notes);
    if (!made.series.empty()) all.push_back(std::move(made));
  }
  if (!all.empty()) return all;
  const bool is_narrowed = !options.metrics.empty() || options.since;
  throw input_error(fmt::format("no point has {} two dated sessions",
                                options.metrics.empty() ? "completed runs in" : "this metric in"),
                    "the folders named",
                    fmt::format("name the folders of several sessions{}",
                                is_narrowed ? ", or choose another --metric or --since" : ""));
}

std::optional<double> parse_day(std::string_view text) {
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  std::string date(text);
  if (digits == 8) date = date.substr(0, 4) + '-' + date.substr(4, 2) + '-' + date.substr(6);
  const auto number = [&](std::size_t at, std::size_t length) {
    return at + length <= date.size() ? to_integer(date.substr(at, length)) : std::nullopt;
  };
  const auto year = number(0, 4), month = number(5, 2);
  if (!year || !month || date[4] != '-' || *year < 1970) return std::nullopt;
  const bool has_day = date.size() > 7;
  const auto day = has_day && date[7] == '-' ? number(8, 2) : std::nullopt;
  if (has_day && !day) return std::nullopt;
  const std::chrono::year_month_day calendar{
      std::chrono::year(static_cast<int>(*year)), std::chrono::month(static_cast<unsigned>(*month)),
      std::chrono::day(static_cast<unsigned>(day.value_or(1)))};
  if (!calendar.ok()) return std::nullopt;
  double result = std::chrono::sys_days(calendar).time_since_epoch().count();
  if (date.size() < 17 || date[10] != 'T') return result;
  const bool has_colons = date[13] == ':';
  const auto hour = number(11, 2), minute = number(has_colons ? 14 : 13, 2);
  if (hour && minute)
    result += static_cast<double>(*hour) / 24 + static_cast<double>(*minute) / 1440;
  return result;
}

std::string date_text(double day) {
  const std::chrono::year_month_day calendar{
      std::chrono::sys_days(std::chrono::days(static_cast<int>(std::floor(day))))};
  return fmt::format("{:04}-{:02}-{:02}", static_cast<int>(calendar.year()),
                     static_cast<unsigned>(calendar.month()),
                     static_cast<unsigned>(calendar.day()));
}

}  // namespace paceline
