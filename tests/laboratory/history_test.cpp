// Level shifts that history names in series of nights, where there are none and where there are.
#include "analysis/history/history.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>
#include <regex>

#include "tests/laboratory/rate.h"
#include "tests/laboratory/records.h"

namespace paceline::laboratory {
namespace {

constexpr double kDay = 20454;  // 2026-01-01, a Thursday

// A kind of nights; in logarithms.
struct Nights {
  std::string name;
  double noise = 0.01;
  Tails tails = Tails::normal;
  double resemblance = 0;  // of neighbours
  double second_mode = 0;  // share of nights that are 4 % slower
  double spells = 0;       // their mean length, if they come in spells
  bool are_nodes = false;  // the second mode is a node of its own, as records say
  double later_noise = 0;  // from the middle on; 0: as before
  double drift = 0, season = 0, weekend = 0, missing = 0, walk = 0;
  int wave_nights = 0;  // the period of a wave of 1 %
  std::function<double(int night, int of)> event = [](int, int) { return 0.0; };
  std::string condition{};  // which the output must state where the rate does not hold
};

History make_history(const Nights& kind, int nights, std::uint32_t seed) {
  RandomSequence random(20301, Stream::synthetic, seed);
  HistorySeries series;
  series.point = "4 replicas";
  series.gpus = 4;
  double kept = random.normal(), walked = 0;
  const double phase = kind.wave_nights > 0 ? 2 * std::numbers::pi * random.uniform() : 0;
  bool is_second = kind.spells > 0 && random.uniform() < kind.second_mode;
  for (int i = 0; i < nights; ++i) {
    const double r = kind.resemblance;
    kept = r * kept + std::sqrt(1 - r * r) * heavy_tail(random, kind.tails);
    walked += kind.walk * random.normal();
    const bool is_late = kind.later_noise > 0 && i >= nights / 2;
    double value = (is_late ? kind.later_noise : kind.noise) * kept + walked +
                   kind.drift * i / 365 + kind.season * std::sin(2 * std::numbers::pi * i / 365) +
                   ((i + 3) % 7 >= 5 ? kind.weekend : 0) + kind.event(i, nights);
    if (kind.wave_nights > 0) {
      value += 0.01 * std::sin(phase + 2 * std::numbers::pi * i / kind.wave_nights);
    }
    const double share = kind.second_mode;
    const double changes = (is_second ? 1 : share / (1 - share)) / std::max(1.0, kind.spells);
    const bool change = random.uniform() < (kind.spells > 0 ? changes : share);
    is_second = kind.spells > 0 ? is_second != change : change;
    if (is_second) value += 0.04;
    if (random.uniform() < kind.missing) continue;
    HistorySession session;
    session.name = session_name(i + 1);
    session.day = kDay + i;
    session.value = 10 * std::exp(value);
    session.runs = 1;
    if (kind.are_nodes) session.hosts = {is_second ? "node07" : "node01"};
    series.sessions.push_back(std::move(session));
  }
  return find_history({HistoryStudy{"made", {}, {series}, {}, {}}});
}

std::string history_text(const History& history) {
  return to_text(history_document(history), {.width = 300});
}

const LevelShifts& found_in(const History& history) {
  return history.studies.at(0).series.at(0).found;
}

bool has_shift(const History& history) {
  return !found_in(history).shifts.empty();
}

// Calls that name a shift and do not state the condition that fails.
Rate false_calls(const Nights& kind, int nights, int count, std::uint32_t seed) {
  Rate rate;
  for (int i = 0; i < count; ++i) {
    const History history = make_history(kind, nights, seed + static_cast<std::uint32_t>(i));
    bool is_false = has_shift(history);
    if (is_false && !kind.condition.empty()) {
      is_false = !std::regex_search(history_text(history), std::regex(kind.condition));
    }
    rate.add(is_false);
  }
  return rate;
}

void expect_rare(const Nights& kind, const std::vector<int>& lengths, int count,
                 std::uint32_t seed) {
  for (const int nights : lengths) {
    EXPECT_TRUE(at_most(
        false_calls(kind, nights, count, seed += 10000), 0.05,
        "a shift where nothing changed: " + kind.name + ", " + std::to_string(nights) + " nights"));
  }
}

TEST(LaboratoryHistory, IndependentNightsHaveNoShifts) {
  const std::vector<int> lengths = {4, 8, 19, 20, 40, 59, 60, 90, 365};
  expect_rare({.name = "independent"}, lengths, studies(400), 1);
  expect_rare({.name = "t3", .tails = Tails::student3}, lengths, studies(400), 100000);
}

TEST(LaboratoryHistory, PatternsAreNoShifts) {
  const int count = studies(200);
  expect_rare({.name = "weekends", .weekend = 0.02, .missing = 0.1}, {60, 365}, count, 200001);
  expect_rare({.name = "drift", .drift = 0.03}, {90, 365}, count, 230001);
  expect_rare({.name = "season", .season = 0.02}, {365}, count, 260001);
}

TEST(LaboratoryHistory, NightsOfTwoModesHaveNoShifts) {
  const int count = studies(200);
  expect_rare(
      {.name = "30 % of nights 4 % slower, noise 0.3 %", .noise = 0.003, .second_mode = 0.3},
      {20, 90, 365}, count, 300001);
  expect_rare(
      {.name = "10 % of nights 4 % slower, noise 0.3 %", .noise = 0.003, .second_mode = 0.1},
      {20, 90, 365}, count, 340001);
}

TEST(LaboratoryHistory, WiderNoiseIsNoShift) {
  expect_rare({.name = "noise 0.5 %, then 3 %",
               .noise = 0.005,
               .later_noise = 0.03,
               .condition = "that assume normal noise, similar"},
              {20, 90, 365}, studies(200), 400001);
}

TEST(LaboratoryHistory, ResemblingNightsHaveNoShifts) {
  for (const double r : {0.5, 0.8}) {
    expect_rare({.name = "AR " + std::to_string(r),
                 .resemblance = r,
                 .condition = "resemble their neighbours|assumed to be independent"},
                {8, 19, 20, 40, 59, 90, 365}, studies(200), r < 0.6 ? 500001 : 600001);
  }
}

TEST(LaboratoryHistory, ShortSpikesAreNoShifts) {
  for (const int length : {1, 2, 3}) {
    Nights kind{.name = std::to_string(length) + " nights of 5 %"};
    kind.event = [length](int night, int of) {
      return night >= of / 2 && night < of / 2 + length ? 0.05 : 0.0;
    };
    expect_rare(kind, {20, 90, 365}, studies(200),
                700001 + 50000U * static_cast<std::uint32_t>(length));
  }
}

// A random walk has levels for a while; the output says that it is none of its promise.
TEST(LaboratoryHistory, ARandomWalkIsACondition) {
  expect_rare({.name = "random walk of 0.2 % a night", .walk = 0.002, .condition = "(walk|wander)"},
              {365}, studies(100), 900001);
}

Nights shifted(int from, double size) {
  Nights kind{.name = "shift"};
  kind.event = [from, size](int night, int) { return night >= from ? size : 0.0; };
  return kind;
}

struct Shift {
  int nights, from;
  double size;
  double least;  // share of calls that find it within a night
};

TEST(LaboratoryHistory, ShiftsAreFoundWithTheirDateAndSize) {
  for (const Shift& shift : std::vector<Shift>{{365, 200, 0.03, 0.95},
                                               {90, 60, 0.03, 0.95},
                                               {40, 25, 0.05, 0.95},
                                               {365, 355, 0.04, 0.9}}) {
    Rate found, sizes;
    for (int i = 0; i < studies(200); ++i) {
      const History history = make_history(shifted(shift.from, shift.size), shift.nights,
                                           950000U + static_cast<std::uint32_t>(i));
      const auto& shifts = found_in(history).shifts;
      const auto it = std::ranges::find_if(shifts, [&](const LevelShift& each) {
        return std::abs(static_cast<int>(each.at) - shift.from) <= 2 && each.size > 0;
      });
      found.add(it != shifts.end());
      if (it == shifts.end() || !it->interval) continue;
      sizes.add(it->interval->low <= shift.size && shift.size <= it->interval->high);
    }
    const std::string what = std::to_string(shift.nights) + " nights, " +
                             std::to_string(100 * shift.size) + " % from " +
                             std::to_string(shift.from);
    EXPECT_TRUE(at_least(found, shift.least, "found: " + what));
    EXPECT_TRUE(at_least(sizes, 0.9, "intervals of sizes: " + what));
  }
}

// Something changes, but at no date: none is named for it.
TEST(LaboratoryHistory, ChangesWithoutADateGetNone) {
  const auto rise = [](const char* name, double by, double from, double to) {
    Nights kind{.name = name};
    kind.event = [=](int night, int of) {
      return by * std::clamp((night / static_cast<double>(of) - from) / (to - from), 0.0, 1.0);
    };
    return kind;
  };
  Nights decay{.name = "5 % that decay over 20 nights"};
  decay.event = [](int night, int) { return 0.05 * std::exp(-night / 20.0); };
  std::vector<std::pair<Nights, int>> kinds = {
      {rise("4 % in 45 nights, then flat", 0.04, 0, 0.5), 90},
      {rise("-4 % in 45 nights, then flat", -0.04, 0, 0.5), 90},
      {rise("4 % in 90 nights", 0.04, 0, 1), 90},
      {rise("2 % in 30 nights, then flat", 0.02, 0, 0.5), 60},
      {rise("4 % in 30 nights in the middle", 0.04, 0.375, 0.625), 120},
      {rise("4 % in 22 nights in the middle", 0.04, 0.375, 0.625), 88},
      {decay, 90},
  };
  for (const int period : {30, 60, 120}) {
    for (const int nights : {60, 120}) {
      kinds.push_back(
          {{.name = "a wave of " + std::to_string(period), .wave_nights = period}, nights});
    }
  }
  for (const bool are_nodes : {false, true}) {
    for (const int nights : {40, 90}) {
      kinds.push_back({{.name = are_nodes ? "spells of two nodes" : "spells of two modes",
                        .noise = 0.005,
                        .second_mode = 0.3,
                        .spells = 3,
                        .are_nodes = are_nodes},
                       nights});
    }
  }
  std::uint32_t seed = 970000;
  for (const auto& [kind, nights] : kinds) {
    EXPECT_TRUE(at_most(false_calls(kind, nights, studies(200), seed += 1000), 0.1,
                        "a date: " + kind.name + ", " + std::to_string(nights) + " nights"));
  }
}

// Nights are looked at one after the other until the shift is found.
TEST(LaboratoryHistory, AShiftIsFoundSoon) {
  struct Wait {
    int before;
    double within_5, within_12;
  };
  for (const Wait& wait : {Wait{40, 0.79, 0.92}, Wait{80, 0.92, 0.96}}) {
    std::vector<Rate> found(2);
    for (int i = 0; i < studies(100); ++i) {
      int nights = wait.before + 2;
      const auto seed = 990000U + static_cast<std::uint32_t>(i);
      while (nights <= wait.before + 12 &&
             !has_shift(make_history(shifted(wait.before, 0.03), nights, seed))) {
        ++nights;
      }
      found[0].add(nights <= wait.before + 5);
      found[1].add(nights <= wait.before + 12);
    }
    const std::string what = "3 % after " + std::to_string(wait.before) + " nights, within ";
    EXPECT_TRUE(at_least(found[0], wait.within_5, what + "5"));
    EXPECT_TRUE(at_least(found[1], wait.within_12, what + "12"));
  }
}

// What so few nights would have shown is said, instead of nothing.
TEST(LaboratoryHistory, AQuietSeriesReportsWhatItWouldHaveShown) {
  for (const int nights : {8, 19, 40}) {
    const std::string text = history_text(make_history({.name = "quiet"}, nights, 960000));
    EXPECT_TRUE(std::regex_search(text, std::regex("would (have shown|show)"))) << text;
    EXPECT_EQ(text.find("too few sessions to tell"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace paceline::laboratory
