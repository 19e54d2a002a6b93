// Level shifts in simulated series of nights: what is found, and what is not.
#include "analysis/statistics/level_shifts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>
#include <string>

#include "engine/core/random.h"

namespace paceline {
namespace {

constexpr double kFirstDay = 20454;  // 2026-01-01, a Thursday

struct Nights {
  std::vector<double> days, values;

  void shift(std::size_t from, double size) {
    for (std::size_t i = from; i < values.size(); ++i) values[i] += size;
  }
  LevelShifts shifts(double level = 0.05) const { return find_level_shifts(days, values, level); }
};

struct Kind {
  std::string name;
  double drift = 0;          // over the year, in units of the noise
  double weekend = 0;        // the same
  double season = 0;         // amplitude, the same
  double missing = 0;        // share of nights
  double spikes = 0;         // share of nights, ten times the noise
  double resemblance = 0;    // of neighbours
  bool heavy_tails = false;  // Student's t with three degrees of freedom
  double second_mode = 0;    // share of nights, four times the noise
  double wider = 1;          // noise from the middle of the year on
  int spike = 0;             // nights in a row, five times the noise
};

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all = {
      {.name = "noise"},
      {.name = "drift", .drift = 3},
      {.name = "strong drift", .drift = 10},
      {.name = "season", .season = 2},
      {.name = "weekends", .weekend = 2},
      {.name = "missing nights", .missing = 0.15},
      {.name = "spikes", .spikes = 0.03},
      {.name = "resemblance", .resemblance = 0.4},
      {.name = "heavy tails", .heavy_tails = true},
      {.name = "all", .drift = 3, .weekend = 2, .missing = 0.15, .spikes = 0.03},
      {.name = "two modes", .second_mode = 0.3},
      {.name = "wider noise", .wider = 6},
      {.name = "much resemblance", .resemblance = 0.8},
      {.name = "spike of two", .spike = 2},
      {.name = "spike of three", .spike = 3}};
  return all;
}

const Kind& kind_named(const std::string& name) {
  return *std::ranges::find(kinds(), name, &Kind::name);
}

Nights nights(const Kind& kind, double noise, std::uint32_t number, int count = 365) {
  RandomSequence random(20301, Stream::synthetic, number);
  Nights made;
  double kept = random.normal();
  const int spike_at = count / 2 + 7;
  for (int i = 0; i < count; ++i) {
    double deviation = random.normal();
    if (kind.heavy_tails) {
      double squares = 0;
      for (int k = 0; k < 3; ++k) squares += std::pow(random.normal(), 2);
      deviation /= std::sqrt(squares);
    }
    kept = kind.resemblance * kept + std::sqrt(1 - kind.resemblance * kind.resemblance) * deviation;
    double value = kept + kind.drift * i / 365 +
                   kind.season * std::sin(2 * std::numbers::pi * i / 365) +
                   ((i + 3) % 7 >= 5 ? kind.weekend : 0);
    if (random.uniform() < kind.spikes) value += 10;
    if (kind.second_mode > 0 && random.uniform() < kind.second_mode) value += 4;
    if (i >= count / 2) value *= kind.wider;
    if (i >= spike_at && i < spike_at + kind.spike) value += 5;
    if (random.uniform() < kind.missing) continue;
    made.days.push_back(kFirstDay + i);
    made.values.push_back(noise * value);
  }
  return made;
}

double false_shifts_a_year(const Kind& kind, double noise, std::uint32_t years) {
  double count = 0;
  for (std::uint32_t i = 0; i < years; ++i) {
    count += static_cast<double>(nights(kind, noise, i).shifts().shifts.size());
  }
  return count / years;
}

// Share of series with a shift.
double named(const Kind& kind, int count, std::uint32_t series) {
  double found = 0;
  for (std::uint32_t i = 0; i < series; ++i) {
    found += nights(kind, 0.01, 20000 + i, count).shifts().shifts.empty() ? 0 : 1;
  }
  return found / series;
}

// Share of series in which a shift on a random day is found when five nights have passed since.
double found_within_five(const Kind& kind, double noise, double size, std::uint32_t series) {
  double found = 0;
  for (std::uint32_t i = 0; i < series; ++i) {
    RandomSequence random(7, Stream::synthetic, i);
    Nights made = nights(kind, noise, 5000 + i);
    const std::size_t at = 60 + random.below(static_cast<std::uint32_t>(made.values.size()) - 66);
    made.shift(at, i % 2 == 0 ? size : -size);
    for (const std::size_t passed : {4, 5}) {
      Nights until{{made.days.begin(), made.days.begin() + static_cast<long>(at + passed)},
                   {made.values.begin(), made.values.begin() + static_cast<long>(at + passed)}};
      const bool seen = std::ranges::any_of(until.shifts().shifts, [&](const LevelShift& shift) {
        return shift.at + 2 >= at && (shift.size > 0) == (i % 2 == 0);
      });
      if (!seen) continue;
      ++found;
      break;
    }
  }
  return found / series;
}

TEST(LevelShifts, AreRareWhereNothingChanged) {
  for (const double noise : {0.01, 0.05}) {
    for (const Kind& kind : kinds()) {
      EXPECT_LE(false_shifts_a_year(kind, noise, 20), 0.3) << kind.name;
    }
  }
}

TEST(LevelShifts, OfThreeTimesTheNoiseAreFoundWithinFiveNights) {
  EXPECT_GE(found_within_five(kinds()[0], 0.01, 0.03, 60), 0.93);
}

TEST(LevelShifts, HaveADateAndASizeWithItsInterval) {
  int named = 0, sizes = 0, dates = 0, more = 0;
  for (std::uint32_t i = 0; i < 40; ++i) {
    Nights made = nights(kinds()[0], 0.01, 300 + i, 120);
    made.shift(80, 0.03);
    const LevelShifts found = made.shifts();
    if (found.shifts.empty()) continue;
    ++named;
    const LevelShift& shift = *std::ranges::min_element(found.shifts, {}, [](const auto& each) {
      return std::abs(static_cast<double>(each.at) - 80);
    });
    EXPECT_TRUE(shift.earliest <= shift.at && shift.at <= shift.latest);
    EXPECT_NEAR(shift.size, 0.03, 0.012);
    EXPECT_NEAR(found.noise, 0.01, 0.003);
    ASSERT_EQ(found.levels.size(), found.shifts.size() + 1);
    sizes += shift.interval->low <= 0.03 && shift.interval->high >= 0.03;
    dates += shift.earliest <= 80 && shift.latest >= 80;
    more += found.shifts.size() > 1;
  }
  EXPECT_GE(named, 32);  // the others may be ramps
  EXPECT_GE(sizes, named * 34 / 40);
  EXPECT_GE(dates, named * 34 / 40);
  EXPECT_LE(more, 6);  // each level is tested again
}

TEST(LevelShifts, ASpellHasABeginningAndAnEnd) {
  Nights made = nights(kinds()[0], 0.01, 11);
  made.shift(200, 0.05);
  made.shift(208, -0.05);
  const LevelShifts found = made.shifts();
  ASSERT_EQ(found.shifts.size(), 2U);
  EXPECT_NEAR(static_cast<double>(found.shifts[0].at), 200, 1);
  EXPECT_NEAR(static_cast<double>(found.shifts[1].at), 208, 1);
}

TEST(LevelShifts, ASpikeIsOutlyingAndNoShift) {
  for (const std::size_t nights_long : {1, 2, 3}) {
    Nights made = nights(kinds()[0], 0.01, 12);
    made.shift(200, 0.2);
    made.shift(200 + nights_long, -0.2);
    const LevelShifts found = made.shifts();
    EXPECT_TRUE(found.shifts.empty()) << nights_long;
    EXPECT_EQ(found.outlying.size(), nights_long);
    EXPECT_EQ(found.outlying.front(), 200U);
    EXPECT_NEAR(found.levels[0].mean, 0, 0.003);  // it is in no level
  }
}

TEST(LevelShifts, ADriftIsReportedAndAStepInItIsFound) {
  Nights made = nights(kinds()[2], 0.01, 13);
  LevelShifts found = made.shifts();
  EXPECT_TRUE(found.shifts.empty());
  ASSERT_TRUE(found.drift);
  EXPECT_NEAR(found.drift->per_day, 0.1 / 365, 0.1 / 365 * 0.1);
  EXPECT_LT(found.drift->interval.low, 0.1 / 365);
  EXPECT_GT(found.drift->interval.high, 0.1 / 365);
  made.shift(250, 0.05);
  found = made.shifts();
  ASSERT_EQ(found.shifts.size(), 1U);
  EXPECT_NEAR(found.shifts[0].size, 0.05, 0.01);  // without the drift
}

TEST(LevelShifts, WeekdaysAreNamedAndLeaveTheLevel) {
  const LevelShifts found = nights(kinds()[4], 0.01, 14).shifts();
  EXPECT_TRUE(found.shifts.empty());
  ASSERT_TRUE(found.weekdays);
  const double workday = (*found.weekdays)[0], saturday = (*found.weekdays)[5];
  EXPECT_NEAR(saturday - workday, 0.02, 0.005);
  EXPECT_FALSE(nights(kinds()[0], 0.01, 15).shifts().weekdays);
}

TEST(LevelShifts, NeighboursThatResembleEachOtherNeedMoreEvidence) {
  EXPECT_GT(nights(kind_named("resemblance"), 0.01, 16).shifts().resemblance, 0.15);
  EXPECT_EQ(nights(kinds()[0], 0.01, 17).shifts().resemblance, 0);
  for (const int count : {20, 40, 59}) {
    EXPECT_LE(named(kind_named("much resemblance"), count, 60), 0.12) << count;
  }
}

TEST(LevelShifts, OfTwoModesAreRare) {
  EXPECT_LE(named(kind_named("two modes"), 90, 60), 0.12);
}

TEST(LevelShifts, OfANoiseThatGetsWiderAreRareAndTheNoiseIsNamed) {
  EXPECT_LE(named(kind_named("wider noise"), 90, 60), 0.12);
  const LevelShifts found = nights(kind_named("wider noise"), 0.01, 21).shifts();
  EXPECT_TRUE(found.shifts.empty());
  ASSERT_EQ(found.noise_levels.size(), 2U);
  EXPECT_NEAR(static_cast<double>(found.noise_levels[1].begin), 182, 20);
  EXPECT_NEAR(found.noise_levels[0].noise, 0.01, 0.003);
  EXPECT_NEAR(found.noise_levels[1].noise, 0.06, 0.015);
  EXPECT_TRUE(nights(kinds()[0], 0.01, 22).shifts().noise_levels.empty());
}

TEST(LevelShifts, ASmallSpikeIsOutlyingAndNoShift) {
  for (const char* name : {"spike of two", "spike of three"}) {
    EXPECT_LE(named(kind_named(name), 120, 60), 0.12) << name;
  }
}

// Ten percent of the nights are four percent slower, at a noise of 0.3 %: outlying nights in a row
// leave no session of a level.
TEST(LevelShifts, EachLevelHasSessionsThatAreNotOutlying) {
  for (std::uint32_t i = 0; i < 60; ++i) {
    Nights made = nights({.name = "some slow nights", .second_mode = 0.1}, 0.01, 700 + i);
    RandomSequence random(5, Stream::synthetic, i);
    for (double& value : made.values) value = 0.003 * random.normal() + (value > 0.025 ? 0.04 : 0);
    for (const SeriesLevel& level : made.shifts().levels) EXPECT_GE(level.end - level.begin, 4U);
  }
}

// What changes over `count` nights without a date, in units of the noise.
struct Undated {
  const char* name;
  int count;
  std::function<double(double)> at;
  bool is_said = true;  // it is far beyond noise
};

const std::vector<Undated>& undated() {
  static const std::vector<Undated> all = {
      {"rises for 45 nights, then stays", 90, [](double t) { return 4 * std::min(t / 45, 1.0); }},
      {"stays, then falls for 45", 90, [](double t) { return -4 * std::max(t / 45 - 1, 0.0); }},
      {"decay", 90, [](double t) { return 5 * std::exp(-t / 20); }},
      {"a ramp of 30", 120, [](double t) { return 4 * std::clamp((t - 45) / 30, 0.0, 1.0); }},
      {"2 in 30 of 60", 60, [](double t) { return 2 * std::min(t / 30, 1.0); }, false},
      {"wave of 30", 120, [](double t) { return std::sin(t * std::numbers::pi / 15); }, false},
      {"wave of 60", 120, [](double t) { return std::sin(t * std::numbers::pi / 30); }},
      {"wave of 120", 365, [](double t) { return std::sin(t * std::numbers::pi / 60); }, false}};
  return all;
}

Nights nights_of(const Undated& kind, std::uint32_t number, double noise = 0.01) {
  Nights made = nights(kinds()[0], noise, number, kind.count);
  for (std::size_t i = 0; i < made.values.size(); ++i) {
    made.values[i] += 0.01 * kind.at(static_cast<double>(i));
  }
  return made;
}

TEST(LevelShifts, WhatChangesWithoutADateRarelyGetsOne) {
  constexpr int kSeries = 60;
  for (const Undated& kind : undated()) {
    int dated = 0, said = 0;
    for (std::uint32_t i = 0; i < kSeries; ++i) {
      const LevelShifts found = nights_of(kind, 40000 + i).shifts();
      dated += found.shifts.empty() ? 0 : 1;
      said += found.undated.empty() ? 0 : 1;
    }
    EXPECT_LE(dated, kSeries / 6) << kind.name;  // 10 %, and two standard errors
    EXPECT_TRUE(!kind.is_said || said >= kSeries / 2) << kind.name << ": " << said;
  }
}

TEST(LevelShifts, OfSpellsOnTwoLevelsAreRare) {
  int dated = 0, said = 0;
  for (std::uint32_t i = 0; i < 60; ++i) {
    RandomSequence random(6, Stream::synthetic, i);
    Nights made = nights(kinds()[0], 0.005, 41000 + i, 90);
    bool slow = false;
    for (double& value : made.values) {
      slow = random.uniform() < (slow ? 2.0 / 3 : 1.0 / 7);
      value += slow ? 0.04 : 0;
    }
    const LevelShifts found = made.shifts();
    dated += found.shifts.empty() ? 0 : 1;
    said += std::ranges::any_of(found.undated, [](const UndatedChange& change) {
      return change.kind == UndatedKind::modes && std::abs(change.size - 0.04) < 0.005;
    });
  }
  EXPECT_LE(dated, 8);
  EXPECT_GT(said, 5);
}

TEST(LevelShifts, AStepBesideWhatHasNoDateIsFound) {
  for (const Undated& kind : {undated()[0], undated()[6]}) {
    int found = 0;
    for (std::uint32_t i = 0; i < 30; ++i) {
      Nights made = nights_of(kind, 42000 + i);
      const std::size_t at = made.values.size() * 2 / 3;
      made.shift(at, 0.05);
      found += std::ranges::any_of(made.shifts().shifts, [&](const LevelShift& shift) {
        return shift.at + 2 >= at && shift.at <= at + 2 && shift.size > 0;
      });
    }
    EXPECT_GE(found, 27) << kind.name;
  }
}

TEST(LevelShifts, LevelsBesideADateGoTheWayOfTheShift) {
  Nights made = nights(kinds()[2], 0.01, 13);
  made.shift(180, -0.04);  // against a drift that makes up for it
  const LevelShifts found = made.shifts();
  ASSERT_FALSE(found.shifts.empty());
  for (const LevelShift& shift : found.shifts) {
    EXPECT_NEAR(shift.after - shift.before, shift.size, 1e-12);
  }
  EXPECT_NEAR(found.shifts[0].before, 0.1 * 180 / 365, 0.01);
}

TEST(LevelShifts, ADateThatMayBeAnyOfATenthIsNone) {
  const StepDates dates{40, 49};
  EXPECT_FALSE(has_date(dates, 90));
  EXPECT_TRUE(has_date(dates, 200));
  EXPECT_TRUE(has_date({4, 6}, 12));
}

// What a series says it would have shown, it shows.
TEST(LevelShifts, OfTheDetectableSizeAreFound) {
  for (const int count : {20, 60, 200}) {
    int found = 0;
    for (std::uint32_t i = 0; i < 60; ++i) {
      const double size = nights(kinds()[0], 0.01, 400 + i, count).shifts().detectable;
      Nights made = nights(kinds()[0], 0.01, 500 + i, count);
      made.shift(static_cast<std::size_t>(count / 2), size);
      found += made.shifts().shifts.empty() ? 0 : 1;
    }
    EXPECT_GE(found, 51) << count;
  }
}

TEST(LevelShifts, OfSeriesWithoutNoise) {
  Nights made = nights(kinds()[0], 0, 18, 30);
  EXPECT_TRUE(made.shifts().shifts.empty());
  EXPECT_TRUE(made.shifts().outlying.empty());
  made.shift(20, 0.01);
  const LevelShifts found = made.shifts();
  ASSERT_EQ(found.shifts.size(), 1U);
  EXPECT_EQ(found.shifts[0].at, 20U);
  EXPECT_EQ(found.shifts[0].earliest, 20U);
  EXPECT_EQ(found.shifts[0].latest, 20U);
}

TEST(LevelShifts, AreTheSameEachTime) {
  Nights made = nights(kind_named("all"), 0.01, 19);
  made.shift(100, 0.02);
  const LevelShifts first = made.shifts(), again = made.shifts();
  ASSERT_EQ(first.shifts.size(), again.shifts.size());
  for (std::size_t k = 0; k < first.shifts.size(); ++k) {
    EXPECT_EQ(first.shifts[k].at, again.shifts[k].at);
    EXPECT_EQ(first.shifts[k].size, again.shifts[k].size);
  }
}

TEST(BestSplit, LeavesTwoOnEachSide) {
  const std::vector<double> values = {1.0, 1.01, 1.0, 2.0, 2.01};
  const BestSplit split = best_split(values);
  EXPECT_EQ(split.at, 3U);
  EXPECT_EQ(split.splits, 2U);
  EXPECT_NEAR(split.difference.mean, 1.0017, 0.0005);
  const std::vector<double> odd_last = {1.0, 1.01, 1.0, 1.02, 3.0};
  EXPECT_EQ(best_split(odd_last).at, 3U);  // it cannot stand alone
  EXPECT_GT(best_split(odd_last).difference.p_value(), 0.05);
}

double named_splits(const Kind& kind, int count, std::uint32_t series) {
  double found = 0;
  for (std::uint32_t i = 0; i < series; ++i) {
    found += best_split(nights(kind, 0.01, 30000 + i, count).values).p_value() <= 0.05 ? 1 : 0;
  }
  return found / series;
}

TEST(BestSplit, OfSessionsThatResembleEachOtherIsRarelyCertain) {
  for (const int count : {8, 19}) {
    EXPECT_LE(named_splits(kinds()[0], count, 1000), 0.05) << count;
    EXPECT_LE(named_splits(kind_named("much resemblance"), count, 1000), 0.07) << count;
  }
}

TEST(BestSplit, OfTheDetectableSizeIsFound) {
  for (const int count : {8, 19}) {
    int found = 0;
    for (std::uint32_t i = 0; i < 500; ++i) {
      const double size =
          detectable_split(best_split(nights(kinds()[0], 0.01, 400 + i, count).values), 0.05);
      Nights made = nights(kinds()[0], 0.01, 5000 + i, count);
      made.shift(static_cast<std::size_t>(count / 2), size);
      found += best_split(made.values).p_value() <= 0.05 ? 1 : 0;
    }
    EXPECT_GE(found, 450) << count;
  }
}

// The whole promise, in minutes: ctest -L long. Rates are in its XML.
TEST(LevelShifts, DISABLED_KeepThePromisedRates) {
  for (const Kind& kind : kinds()) {  // whatever the noise: the method knows no scale
    for (const int count : {20, 40, 59, 90, 365}) {
      const double rate = named(kind, count, 1000);
      // 5 % and two standard errors. A season moves the level.
      EXPECT_LE(rate, kind.season > 0 ? 0.15 : 0.065) << kind.name << " " << count;
      RecordProperty(kind.name + " " + std::to_string(count), std::to_string(rate));
    }
  }
  for (const char* name : {"noise", "resemblance", "much resemblance"}) {
    for (const int count : {8, 12, 19}) {
      const double rate = named_splits(kind_named(name), count, 4000);
      EXPECT_LE(rate, 0.06) << name << " " << count;
      RecordProperty(std::string(name) + " " + std::to_string(count), std::to_string(rate));
    }
  }
  for (const char* name : {"noise", "missing nights", "heavy tails"}) {
    const double rate = found_within_five(kind_named(name), 0.01, 0.03, 2000);
    EXPECT_GE(rate, 0.95) << name;
    RecordProperty(std::string("found, ") + name, std::to_string(rate));
  }
  // Where nothing changed, with looks after each night.
  double count = 0;
  constexpr std::uint32_t kYears = 40;
  for (std::uint32_t i = 0; i < kYears; ++i) {
    const Nights made = nights(kinds()[0], 0.01, 9000 + i);
    std::vector<std::size_t> seen;
    for (std::size_t n = 60; n <= made.values.size(); ++n) {
      const Nights until{{made.days.begin(), made.days.begin() + static_cast<long>(n)},
                         {made.values.begin(), made.values.begin() + static_cast<long>(n)}};
      for (const LevelShift& shift : until.shifts().shifts) {
        const bool is_known = std::ranges::any_of(
            seen, [&](std::size_t at) { return at <= shift.at + 7 && shift.at <= at + 7; });
        if (!is_known) seen.push_back(shift.at);
      }
    }
    count += static_cast<double>(seen.size());
  }
  EXPECT_LT(count / kYears, 1);
  RecordProperty("nightly looks", std::to_string(count / kYears));
}

}  // namespace
}  // namespace paceline
