// Ratios and means must be of the same runs, and of units that are independent.
#include "analysis/study/contrast.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "analysis/findings/findings.h"
#include "tests/support/expect_parts.h"
#include "tests/unit/analysis/tables.h"

namespace paceline {
namespace {

const std::vector<double> kWobble = {0.99, 1.0, 1.01, 0.995, 1.005};

Json make_run(int gpus, double seconds, int round, const std::string& session = "s1") {
  return sample_record({.gpus = gpus, .repeat = round, .fit_seconds = seconds, .session = session});
}

Study make_study(const std::vector<Json>& records, bool pool = false) {
  return make_studies(canonical_content(records), {}, {},
                      pool ? Pooling::always : Pooling::by_sessions)
      .at(0);
}

std::vector<Json> rounds(int gpus, double seconds, const std::string& session, int count = 5) {
  std::vector<Json> records;
  for (int round = 1; round <= count; ++round) {
    const double wobble = kWobble[static_cast<std::size_t>(round - 1) % kWobble.size()];
    records.push_back(make_run(gpus, seconds * wobble, round, session));
    records.back()["repeat"] = round + 100 * std::stoi(session.substr(1));
  }
  return records;
}

std::vector<Json> joined(const std::vector<std::vector<Json>>& parts) {
  std::vector<Json> all;
  for (const auto& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

// The row of two replicas also ran in a slower session: not in silence is its ratio another than
// that of the times.
TEST(Contrast, RatiosAreTakenWithinSessions) {
  const Compared compared(joined({rounds(1, 10, "s1"), rounds(2, 5, "s1"), rounds(2, 7.2, "s2")}));
  const Ratio& ratio = compared.comparison.speed_ups[1]->ratio;
  EXPECT_EQ(ratio.kind, RatioKind::paired);
  EXPECT_NEAR(ratio.estimate.value, 2, 1e-9);
  EXPECT_GT(compared.facts[1].fit_seconds->value, 5.9);
  EXPECT_TRUE(contains(notes_text(compared.section()), "1 speed-up within sessions"));
}

// A second job for the largest size runs the base again, on a slower machine.
TEST(Contrast, ASizeIsComparedWithTheBaseOfItsSession) {
  const Compared compared(joined({rounds(1, 100, "s1"), rounds(2, 50, "s1"), rounds(4, 25, "s1"),
                                  rounds(1, 115, "s2"), rounds(8, 14.375, "s2")}));
  for (std::size_t i = 1; i < 4; ++i) {
    const Estimate& speed_up = compared.comparison.speed_ups[i]->ratio.estimate;
    EXPECT_NEAR(speed_up.value, 1 << i, 1e-9);
    EXPECT_TRUE(speed_up.interval && speed_up.interval->high < 1.1 * (1 << i));
  }
  const Section section = compared.section();
  EXPECT_FALSE(contains(findings_text(section), "lost on 8 replicas")) << findings_text(section);
  EXPECT_TRUE(contains(notes_text(section), "3 speed-ups within sessions"));
  const Best best = find_best(compared.study, 0.05);
  EXPECT_EQ(best.best.name, "8 replicas");
}

// 6 runs and 1, against 1 and 6, taken by runs.
TEST(Contrast, SharesOfSessionsMakeNoRatio) {
  const Study study =
      make_studies(
          canonical_content(joined({rounds(1, 100, "s1", 6), rounds(1, 115, "s2", 1),
                                    rounds(8, 12.5, "s1", 1), rounds(8, 14.375, "s2", 6)})),
          {}, {}, Pooling::never)
          .at(0);
  const Ratio ratio = compute_ratio(study.rows[0], study.rows[1], false);
  EXPECT_EQ(ratio.kind, RatioKind::welch);
  EXPECT_NEAR(ratio.estimate.value, 8, 0.1);
  EXPECT_LT(ratio.estimate.interval->high, 8.3);
}

TEST(Contrast, RowsWithoutACommonSessionAreNotJudged) {
  const Compared compared(joined(
      {rounds(1, 100, "s1"), rounds(2, 50, "s1"), rounds(2, 57, "s2"), rounds(8, 14, "s2")}));
  EXPECT_FALSE(compared.comparison.speed_ups[2]->ratio.estimate.interval);
  EXPECT_EQ(find_weak_evidence(compared.study.rows[0], compared.study.rows[2]).text(),
            "too few runs in a common session");
  const auto broken = broken_rules(compared.study, compared.comparison, compared.facts);
  const auto rule = std::ranges::find(broken, 7, &BrokenRule::rule);
  ASSERT_NE(rule, broken.end());
  EXPECT_EQ(format_sentence(*rule),
            "rule 7: 1 speed-up cannot be judged against noise (too few runs in a common session); "
            "run the row and its base in one session");
}

// Of each machine in a session of its own: no ratio crosses them.
TEST(Contrast, SessionsThatNoRatioCrossesAreInNone) {
  std::vector<Json> records =
      joined({rounds(1, 100, "s1"), rounds(2, 50, "s1"), rounds(1, 70, "s2"), rounds(2, 35, "s2")});
  for (Json& json : records) {
    if (json["session"] == "s2") json["provenance"]["cpu_model"] = "Another";
  }
  const std::string notes = notes_text(Compared(records).section());
  EXPECT_TRUE(contains(notes, "each is of one of 2 sessions")) << notes;
  EXPECT_FALSE(contains(notes, "within sessions")) << notes;
}

// A base of which rounds failed.
TEST(Contrast, ARoundThatTheBaseLacksIsNotLeftOutInSilence) {
  std::vector<Json> records;
  for (int round = 1; round <= 5; ++round) {
    if (round < 4) records.push_back(make_run(1, 10, round));
    records.push_back(make_run(2, round < 4 ? 5 : 8, round));
  }
  const Compared compared(records);
  EXPECT_NEAR(compared.comparison.speed_ups[1]->ratio.estimate.value,
              compared.facts[0].fit_seconds->value / compared.facts[1].fit_seconds->value, 1e-9);
}

TEST(Contrast, ARoundOfMoreRunsThanOthersMakesNoPairs) {
  std::vector<Json> records;
  for (int round = 1; round <= 3; ++round) {
    records.push_back(make_run(1, 10, round));
    records.push_back(make_run(2, 5, round));
  }
  records.push_back(make_run(2, 9, 1));
  EXPECT_EQ(Compared(records).comparison.speed_ups[1]->ratio.kind, RatioKind::welch);
}

// Sessions differ by 3 %, their runs by a thousandth.
std::vector<Json> sessions(std::mt19937_64& random, int count, int runs) {
  std::normal_distribution<double> normal;
  std::vector<Json> records;
  for (int session = 0; session < count; ++session) {
    for (const int gpus : {1, 2, 4}) {
      const double shift = std::exp(0.03 * normal(random));
      for (int round = 1; round <= runs; ++round) {
        const double noise = std::exp(0.001 * normal(random));
        records.push_back(make_run(gpus, 10.0 / gpus * (1 + 0.1 * (gpus - 1)) * shift * noise,
                                   round, "s" + std::to_string(session)));
      }
    }
  }
  return records;
}

// The fraction is 0.1 at both sizes: "grows" and "falls" are false of every study.
TEST(Contrast, PooledSessionsAreTheUnitOfFindings) {
  std::mt19937_64 random(5);
  constexpr int kStudies = 100;
  int wrong = 0;
  for (int study = 0; study < kStudies; ++study) {
    const Compared compared(make_study(sessions(random, 3, 5), true));
    for (const Finding& finding : findings(compared.study, compared.comparison, compared.facts)) {
      wrong += finding.kind == FindingKind::grows || finding.kind == FindingKind::falls ? 1 : 0;
    }
  }
  EXPECT_LE(wrong, 0.05 * kStudies + 3 * std::sqrt(0.05 * kStudies));
}

// Runs of two sessions say little of a third: 64 % and 53 % of intervals over runs hold.
TEST(Contrast, IntervalsOfTwoSessionsHoldTheTruth) {
  std::mt19937_64 random(7);
  constexpr int kStudies = 400;
  int speed_ups = 0, times = 0, faster = 0;
  for (int study = 0; study < kStudies; ++study) {
    const Compared compared(sessions(random, 2, 5));
    EXPECT_TRUE(compared.study.rows[0].pooled);
    const Interval ratio = *compared.comparison.speed_ups[2]->ratio.estimate.interval;
    const Interval time = *compared.facts[2].fit_seconds->interval;
    speed_ups += ratio.low <= 4 / 1.3 && 4 / 1.3 <= ratio.high ? 1 : 0;
    times += time.low <= 3.25 && 3.25 <= time.high ? 1 : 0;
    faster += cell(compared.section(), 2, "verdict").text == "faster" ? 1 : 0;
  }
  const double most = 0.05 * kStudies + 3 * std::sqrt(0.05 * kStudies);
  EXPECT_GE(speed_ups, kStudies - most);
  EXPECT_GE(times, kStudies - most);
  EXPECT_GE(faster, 0.9 * kStudies);
}

TEST(Contrast, ARowOfOneSessionHasNoIntervalAmongPooledOnes) {
  std::mt19937_64 random(6);
  auto records = sessions(random, 3, 5);
  std::erase_if(records, [](const Json& record) {
    return record["layout"]["gpus"] == 4 && record["session"] != "s0";
  });
  const Compared compared(make_study(records, true));
  EXPECT_EQ(compared.facts[0].fit_seconds->count, 3U);
  EXPECT_TRUE(compared.facts[0].fit_seconds->interval);
  EXPECT_EQ(compared.comparison.speed_ups[1]->ratio.kind, RatioKind::paired);
  EXPECT_FALSE(compared.facts[2].fit_seconds->interval);
  EXPECT_FALSE(compared.comparison.speed_ups[2]->ratio.estimate.interval);
  EXPECT_EQ(find_weak_evidence(compared.study.rows[0], compared.study.rows[2]).text(),
            "fewer than 2 sessions or 3 runs");
}

TEST(Contrast, DisturbedRunsAreNotCalledFew) {
  std::vector<Json> records;
  for (int round = 1; round <= 5; ++round) {
    for (const int gpus : {1, 2, 4}) {
      Json record = make_run(gpus, 10.0 / gpus * (gpus > 1 ? 1.1 : 1), round);
      record["flags"]["throttled"] = gpus > 1;
      records.push_back(record);
    }
  }
  const Compared compared(records);
  EXPECT_EQ(find_weak_evidence(compared.study.rows[0], compared.study.rows[1]).text(),
            "only disturbed runs");
  std::string all;
  for (const Finding& finding : findings(compared.study, compared.comparison, compared.facts)) {
    all += finding.text + '\n';
  }
  expect_no_parts(all, {"fewer"});
  expect_parts(all, {"rows of only disturbed runs cannot show"});
}

TEST(Contrast, TwoRunsClaimNothing) {
  const Compared compared(std::vector{make_run(1, 9, 1), make_run(1, 11, 2), make_run(2, 10.05, 1),
                                      make_run(2, 10.1, 2), make_run(4, 10.1, 1),
                                      make_run(4, 10.2, 2)});
  std::string all;
  for (const Finding& finding : findings(compared.study, compared.comparison, compared.facts)) {
    EXPECT_NE(finding.kind, FindingKind::slower_than_one) << finding.text;
    all += finding.text + '\n';
  }
  expect_parts(all, {"rows of fewer than 3 runs cannot show whether that is"});
}

TEST(Contrast, ThreeRunsThatStoppedByTheirResultsHaveNoIntervalOfARatio) {
  std::vector<Json> records;
  for (int round = 1; round <= 4; ++round) {
    for (const int gpus : {1, 2}) {
      if (gpus == 1 && round == 4) continue;
      records.push_back(make_run(gpus, 10 + 0.01 * round, round));
      records.back()["flags"]["sequential"] = true;
    }
  }
  const Compared compared(records);
  const Row &base = compared.study.rows[0], &row = compared.study.rows[1];
  const Judged ratio =
      judged(compared.comparison.speed_ups[1]->ratio.estimate, find_weak_evidence(base, row));
  EXPECT_FALSE(find_weak_evidence(base, row));
  EXPECT_FALSE(ratio.is_known());
  EXPECT_EQ(ratio.doubt().text(), "too few runs for an anytime-valid interval");
  EXPECT_FALSE(ratio.is_above(-1e9) || ratio.is_below(1e9));
}

}  // namespace
}  // namespace paceline
