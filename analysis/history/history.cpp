#include "analysis/history/history.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "analysis/gate/weigh.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

HistoryTest test_for(std::size_t sessions) {
  return sessions >= kFewestInSeries   ? HistoryTest::permutation
         : sessions >= kFewestForSplit ? HistoryTest::split
                                       : HistoryTest::none;
}

LevelShifts one_level(std::span<const double> values) {
  const Difference level = paired_difference(values);
  LevelShifts found;
  found.levels.push_back({0, values.size(), level.mean, level.interval()});
  found.now = level.mean;
  found.noise = level.standard_error * std::sqrt(static_cast<double>(values.size()));
  return found;
}

// Empty `shifts`: the split has no date, or what has none explains the values as well.
LevelShifts two_levels(std::span<const double> values, const BestSplit& split) {
  const Difference& difference = split.difference;
  // The noise of a session follows from the error of the difference of both means.
  const auto n1 = static_cast<double>(split.at);
  const double n2 = static_cast<double>(values.size()) - n1;
  LevelShifts found;
  found.noise = difference.standard_error / std::sqrt(1 / n1 + 1 / n2);
  StepDates dates{split.at, split.at};
  if (values.size() >= kFewestForResemblance) {
    const double variance = found.noise * found.noise;
    const ScaledSeries series{{values.begin(), values.end()},
                              std::vector<double>(values.size(), 1)};
    dates = plausible_dates(series, split.at, variance, 0);
    const auto rival = find_rival(series, {}, {std::span(&split.at, 1), 0, 0}, variance);
    if (rival || !has_date(dates, values.size())) {
      LevelShifts undated = one_level(values);
      undated.undated.push_back(rival ? rival->change
                                      : UndatedChange{UndatedKind::vague, dates.earliest - 1,
                                                      dates.latest, difference.mean, 0, 0});
      return undated;
    }
  }
  for (const auto& [begin, end] :
       {std::pair{std::size_t{0}, split.at}, {split.at, values.size()}}) {
    const Difference level{average(values.subspan(begin, end - begin)),
                           found.noise / std::sqrt(static_cast<double>(end - begin)),
                           difference.degrees_of_freedom, end - begin};
    found.levels.push_back({begin, end, level.mean, level.interval()});
  }
  found.now = found.levels[1].mean;
  found.shifts.push_back({split.at, dates.earliest, dates.latest, difference.mean,
                          found.levels[0].mean, found.now, difference.interval()});
  return found;
}

std::size_t find_largest_change(std::span<const double> values) {
  std::size_t largest = 1;
  for (std::size_t i = 2; i < values.size(); ++i) {
    const double change = std::abs(values[i] - values[i - 1]);
    if (change > std::abs(values[largest] - values[largest - 1])) largest = i;
  }
  return largest;
}

// The splits of series that are too short for permutations.
class Splits {
 public:
  // Adds the series of one metric of a study, which share what is known about their noise.
  void add(const std::vector<SeriesHistory*>& all) {
    std::vector<BestSplit> splits = mapped(
        all, [](const SeriesHistory* each) { return best_split(each->series->scaled_values()); });
    moderate(mapped(splits, [](BestSplit& split) { return &split.difference; }));
    for (std::size_t i = 0; i < all.size(); ++i) splits_.push_back({all[i], splits[i]});
  }

  void decide(double level) {
    const std::vector<bool> found = decide(level, &BestSplit::p_value);
    const std::vector<bool> possible = decide(level, &BestSplit::p_if_independent);
    for (std::size_t k = 0; k < splits_.size(); ++k) {
      SeriesHistory& series = *splits_[k].series;
      const BestSplit& split = splits_[k].split;
      const std::vector<double> values = series.series->scaled_values();
      const LevelShifts two = two_levels(values, split);
      series.found = found[k] ? two : one_level(values);
      if (possible[k] && !found[k]) series.found.possible = two.shifts;
      series.found.plausible_resemblance = split.plausible_resemblance;
      series.found.detectable = detectable_split(split, level);
      if (series.found.shifts.empty()) series.largest_change = find_largest_change(values);
    }
  }

 private:
  struct Split {
    SeriesHistory* series = nullptr;
    BestSplit split;
  };

  // `level`: of one of them.
  std::vector<bool> decide(double level, double (BestSplit::*p_value)() const) const {
    const auto p_values = mapped(splits_, [&](const Split& one) { return (one.split.*p_value)(); });
    return find_discoveries(p_values, level * static_cast<double>(p_values.size()));
  }

  std::vector<Split> splits_;
};

// Which of the watched points a shift touches.
std::string touched_text(const std::vector<const HistorySeries*>& touched,
                         const std::vector<const HistorySeries*>& others) {
  const std::size_t all = touched.size() + others.size();
  if (others.empty()) return all == 1 ? "the only point" : fmt::format("all {} points", all);
  std::string text = fmt::format("{} of {} points", touched.size(), all);
  const auto gpus = [](const HistorySeries* series) { return series->gpus; };
  const auto [least, most] = std::ranges::minmax(touched, {}, gpus);
  const auto [other_least, other_most] = std::ranges::minmax(others, {}, gpus);
  if (least->gpus == 0) return text;  // parts of a screen
  if (other_most->gpus < least->gpus) {
    text += fmt::format(", all those of {} replicas or more", least->gpus);
  } else if (most->gpus < other_least->gpus) {
    text += most->gpus == 1 ? ", all those of one replica"
                            : fmt::format(", all those of at most {} replicas", most->gpus);
  } else if (most->gpus == least->gpus && touched.size() > 1) {
    text += fmt::format(", each of {}", counted(most->gpus, "replica"));
  }
  return text;
}

class StudyJudge {
 public:
  explicit StudyJudge(StudyHistory& history) : history_(history) {}

  void look_for_levels(double level, Splits& splits) {
    std::map<HistoryMetric, std::vector<SeriesHistory*>> few;
    for (SeriesHistory& each : history_.series) {
      const std::vector<double> values = each.series->scaled_values();
      if (each.test == HistoryTest::permutation) {
        each.found = find_level_shifts(each.series->days(), values, level);
      } else if (each.test == HistoryTest::split) {
        few[each.series->metric].push_back(&each);
      } else {
        each.found = one_level(values);
        each.largest_change = find_largest_change(values);
      }
    }
    for (const auto& [metric, all] : few) splits.add(all);
  }

  void gather_events() {
    std::vector<HistoryEvent::Member> all;
    for (std::size_t i = 0; i < history_.series.size(); ++i) {
      for (std::size_t k = 0; k < history_.series[i].found.shifts.size(); ++k) {
        all.push_back({i, k});
      }
    }
    std::ranges::stable_sort(
        all, [&](const auto& a, const auto& b) { return certainty(a) > certainty(b); });
    for (const HistoryEvent::Member& member : all) {
      if (HistoryEvent* event = event_for(member)) {
        event->members.push_back(member);
        continue;
      }
      const auto [first, last] = shift_days(member);
      history_.events.push_back(
          {history_.series[member.series].series->metric, {member}, 0, {}, first, last, {}});
    }
    for (HistoryEvent& event : history_.events) describe(event);
    std::ranges::stable_sort(history_.events, {}, &HistoryEvent::last_day);
  }

 private:
  const LevelShift& find_shift(const HistoryEvent::Member& member) const {
    return history_.series[member.series].found.shifts[member.shift];
  }
  // The day of the last session that may be before, and of the first that is certainly after.
  std::pair<double, double> shift_days(const HistoryEvent::Member& member) const {
    const auto& sessions = history_.series[member.series].series->sessions;
    const LevelShift& shift = find_shift(member);
    return {sessions[shift.earliest - 1].day, sessions[shift.latest].day};
  }
  double certainty(const HistoryEvent::Member& member) const {
    const LevelShift& shift = find_shift(member);
    if (!shift.interval) return 0;
    return std::abs(shift.size) / std::max(shift.interval->high - shift.interval->low, kRounding);
  }

  // One that a more certain shift of another series began, in the same days and direction.
  HistoryEvent* event_for(const HistoryEvent::Member& member) {
    const auto [first, last] = shift_days(member);
    const bool rises = find_shift(member).size > 0;
    for (HistoryEvent& event : history_.events) {
      const bool fits =
          event.metric == history_.series[member.series].series->metric && first < event.last_day &&
          last > event.first_day && rises == (find_shift(event.members.front()).size > 0) &&
          std::ranges::none_of(event.members,
                               [&](const auto& known) { return known.series == member.series; });
      if (fits) return &event;
    }
    return nullptr;
  }

  void describe(HistoryEvent& event) const {
    std::vector<const HistorySeries*> touched, others;
    for (std::size_t i = 0; i < history_.series.size(); ++i) {
      const SeriesHistory& each = history_.series[i];
      const auto& sessions = each.series->sessions;
      const bool is_member = std::ranges::any_of(
          event.members, [&](const auto& member) { return member.series == i; });
      const bool is_watched =
          each.test != HistoryTest::none && each.series->metric == event.metric &&
          sessions.front().day <= event.first_day && sessions.back().day >= event.last_day;
      if (is_member) touched.push_back(each.series);
      if (is_watched && !is_member) others.push_back(each.series);
    }
    event.watched = touched.size() + others.size();
    event.touches = touched_text(touched, others);
    const HistoryEvent::Member& lead = event.members.front();
    const SeriesHistory& series = history_.series[lead.series];
    const LevelShift& shift = find_shift(lead);
    const SeriesLevel& before = series.found.levels[lead.shift];
    const SeriesLevel& after = series.found.levels[lead.shift + 1];
    event.changes =
        changes_across(*series.series, before.begin, std::max(shift.earliest, before.begin + 1),
                       std::min(shift.latest, after.end - 1), after.end);
  }

  StudyHistory& history_;
};

}  // namespace

double SeriesHistory::value(double scaled) const {
  return metric_info(series->metric).is_factor ? std::exp(scaled) : scaled;
}

double SeriesHistory::change(double scaled) const {
  return metric_info(series->metric).is_factor ? std::expm1(scaled) : scaled;
}

bool is_worse(HistoryMetric metric, double size) {
  return (size > 0) == metric_info(metric).more_is_worse;
}

bool History::has_worse() const {
  return std::ranges::any_of(studies, [](const StudyHistory& study) {
    return std::ranges::any_of(study.events, [&](const HistoryEvent& event) {
      const HistoryEvent::Member& lead = event.members.front();
      return is_worse(event.metric, study.series[lead.series].found.shifts[lead.shift].size);
    });
  });
}

History find_history(std::vector<HistoryStudy> studies) {
  History history;
  for (HistoryStudy& study : studies) {
    StudyHistory& made = history.studies.emplace_back();
    made.study = std::move(study);
  }
  for (StudyHistory& each : history.studies) {
    for (const HistorySeries& series : each.study.series) {
      each.series.push_back({&series, test_for(series.sessions.size()), {}, {}});
      history.tested += each.series.back().test != HistoryTest::none ? 1 : 0;
    }
  }
  Splits splits;
  for (StudyHistory& each : history.studies) {
    StudyJudge(each).look_for_levels(history.level(), splits);
  }
  splits.decide(history.level());
  for (StudyHistory& each : history.studies) StudyJudge(each).gather_events();
  return history;
}

}  // namespace paceline
