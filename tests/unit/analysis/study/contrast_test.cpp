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

// The row of two replicas has slower runs of another session, which its mean holds: a ratio over
// the shared rounds alone would be 2 beside times of 10 and 6.6 s.
TEST(Contrast, RoundsThatOnlyOneRowHasAreNotLeftOutInSilence) {
  std::vector<Json> records;
  for (int round = 1; round <= 5; ++round) {
    const double wobble = kWobble[static_cast<std::size_t>(round - 1)];
    records.push_back(make_run(1, 10 * wobble, round));
    records.push_back(make_run(2, 5 * wobble, round));
    records.push_back(make_run(2, 7.2 * wobble, round, "s2"));
  }
  const Compared compared(records);
  const Ratio& ratio = compared.comparison.speed_ups[1]->ratio;
  EXPECT_EQ(ratio.kind, RatioKind::welch);
  EXPECT_NEAR(ratio.estimate.value,
              compared.facts[0].fit_seconds->value / compared.facts[1].fit_seconds->value, 1e-9);
  const Difference loss =
      contrast({log_costs(compared.study.rows[0], false), log_costs(compared.study.rows[1], false)},
               [](const RowMeans& means) { return means[0][0] - means[1][0]; });
  EXPECT_NEAR(std::exp(loss.mean), ratio.estimate.value, 1e-9);
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
            "fewer than 3 sessions");
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
