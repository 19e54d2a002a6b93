#include "analysis/explain/fits.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>

#include "analysis/explain/explain.h"
#include "tests/laboratory/records.h"
#include "tests/support/expect_parts.h"
#include "tests/unit/analysis/tables.h"

namespace paceline {
namespace {

// What runs have: the noise of each, and whether they share rounds.
struct Noise {
  double spread = 0;
  int runs = 3;
  bool rounds = false;
};

using SpeedUpLaw = std::function<double(double)>;

SpeedUpRows rows_by(const SpeedUpLaw& law, const std::vector<double>& sizes, const Noise& noise,
                    std::mt19937_64& random) {
  std::normal_distribution<double> normal;
  SpeedUpRows made;
  std::vector<double> all = {1};
  all.insert(all.end(), sizes.begin(), sizes.end());
  for (const double n : all) {
    RowValues& row = made.rows.emplace_back();
    for (int run = 1; run <= noise.runs; ++run) {
      row.values.push_back({-std::log(law(n)) + noise.spread * normal(random)});
      row.units.emplace_back(noise.rounds ? "s" : "", run);
    }
    if (n > 1) made.sizes.push_back({n, 0, made.rows.size() - 1});
  }
  return made;
}

SpeedUpRows exact(const SpeedUpLaw& law, const std::vector<double>& sizes = {2, 4, 8, 16}) {
  std::mt19937_64 random(1);
  return rows_by(law, sizes, {}, random);
}

const SpeedUpLaw kAmdahl = [](double n) { return 1 / (0.1 + 0.9 / n); };

TEST(Fits, LawsAreRecovered) {
  const auto amdahl = fit_amdahl(exact(kAmdahl));
  ASSERT_TRUE(amdahl);
  EXPECT_NEAR(amdahl->value.value, 0.1, 1e-12);
  EXPECT_NEAR(amdahl->value.interval.high - amdahl->value.interval.low, 0, 1e-9);
  EXPECT_NEAR(fit_gustafson(exact([](double n) { return n - 0.1 * (n - 1); })).value().value.value,
              0.1, 1e-12);
  const auto usl = fit_usl(exact(
      [](double n) { return n / (1 + 0.05 * (n - 1) + 0.01 * n * (n - 1)); }, {2, 4, 8, 16, 32}));
  ASSERT_TRUE(usl && usl->peak);
  EXPECT_NEAR(usl->contention.value, 0.05, 1e-9);
  EXPECT_NEAR(usl->coherence.value, 0.01, 1e-9);
  EXPECT_NEAR(usl->peak->value, std::sqrt(0.95 / 0.01), 1e-6);
  EXPECT_NEAR(usl->peak->interval.high, std::sqrt(0.95 / 0.01), 1e-3);
}

TEST(Fits, TooFewPoints) {
  EXPECT_FALSE(fit_amdahl(exact(kAmdahl, {})));
  EXPECT_TRUE(fit_amdahl(exact(kAmdahl, {2})));
  EXPECT_FALSE(fit_usl(exact(kAmdahl, {2})));
  EXPECT_FALSE(fit_usl(exact(kAmdahl, {2, 4})));
}

TEST(Fits, WithoutTheNoiseOfEveryRowThereIsNone) {
  std::mt19937_64 random(1);
  for (const int runs : {1, 2}) {
    SpeedUpRows rows = rows_by(kAmdahl, {2, 4, 8}, {0.01, runs}, random);
    rows.doubt.few = true;
    EXPECT_FALSE(fit_amdahl(rows) || fit_usl(rows) || fit_gustafson(rows)) << runs;
  }
}

// The base's noise is part of it: all speed-ups share its error.
TEST(Fits, TheIntervalOfTheShareHasItsCoverage) {
  constexpr int kStudies = 600;
  std::mt19937_64 random(3);
  for (const double spread : {0.01, 0.04}) {
    for (const int runs : {3, 5, 10}) {
      for (const bool rounds : {true, false}) {
        int held = 0;
        for (int study = 0; study < kStudies; ++study) {
          const Known share =
              fit_amdahl(rows_by(kAmdahl, {2, 4, 8}, {spread, runs, rounds}, random)).value().value;
          held += share.interval.low <= 0.1 && 0.1 <= share.interval.high ? 1 : 0;
        }
        RecordProperty(fmt::format("noise {}, {} runs, rounds {}", spread, runs, rounds),
                       fmt::format("{} of {}", held, kStudies));
        EXPECT_GE(held, 0.92 * kStudies) << spread << ", " << runs << " runs, rounds " << rounds;
      }
    }
  }
}

SpeedUpLaw usl_of(double peak) {
  const double coherence = 0.95 / (peak * peak);
  return [=](double n) { return n / (1 + 0.05 * (n - 1) + coherence * n * (n - 1)); };
}

TEST(Fits, APlateauAndAKneeHaveNoPeak) {
  const SpeedUpLaw plateau = [](double n) { return std::min(n, 6.0); };
  const SpeedUpLaw knee = [](double n) { return n / (n > 4 ? 1.5 : 1.01); };
  std::mt19937_64 random(5);
  for (const double spread : {0.002, 0.01}) {
    for (const auto& sizes : {std::vector<double>{2, 4, 8, 16}, {2, 4, 8, 16, 32}, {2, 4, 6, 8}}) {
      for (int study = 0; study < 40; ++study) {
        for (const SpeedUpLaw& law : {plateau, knee}) {
          const auto usl = fit_usl(rows_by(law, sizes, {spread, 5, study % 2 == 0}, random));
          ASSERT_TRUE(usl);
          EXPECT_FALSE(usl->peak) << usl->peak->value;
        }
      }
    }
  }
  EXPECT_EQ(fit_usl(exact(plateau, {2, 4, 8, 16, 32}))->rival, "a plateau from 8 replicas on");
  EXPECT_EQ(fit_usl(exact(knee, {2, 4, 8, 16, 32}))->rival, "a knee from 8 replicas on");
  EXPECT_TRUE(fit_usl(exact(usl_of(10), {2, 4, 8, 16, 32}))->rival.empty());
}

TEST(Fits, PeaksInsideTheSizesAreNamedAndInTheirInterval) {
  constexpr int kStudies = 200;
  std::mt19937_64 random(6);
  int named = 0, held = 0;
  for (int study = 0; study < kStudies; ++study) {
    const double peak = 2 * std::pow(16 / std::sqrt(2.0) / 1.05, study / 200.0);
    const auto usl =
        fit_usl(rows_by(usl_of(peak), {2, 4, 8, 16, 32}, {0.01, 5, study % 2 == 0}, random));
    if (!usl || !usl->peak) continue;
    ++named;
    held += usl->peak->interval.low <= peak && peak <= usl->peak->interval.high;
    EXPECT_TRUE(usl->peak->interval.low <= usl->peak->value &&
                usl->peak->value <= usl->peak->interval.high);
  }
  EXPECT_GE(named, 0.8 * kStudies);
  EXPECT_GE(held, 0.9 * named);
}

// From one node to two a sample costs more; that is no coherence.
TEST(Fits, ASlowDownAcrossNodesIsNoPeak) {
  SpeedUpRows rows = exact(usl_of(4), {2, 4, 8});
  EXPECT_TRUE(fit_usl(rows)->peak);
  for (SpeedUpRows::Size& size : rows.sizes) size.nodes = size.replicas > 4 ? 2 : 1;
  EXPECT_FALSE(fit_usl(rows)->peak);
}

TEST(Fits, WithoutCoherenceTheUslShowsNoPeak) {
  const auto text = [](const std::function<double(double)>& communication) {
    laboratory::StepLaw law;
    law.communication = communication;
    return explanation_text(explain(laboratory::make_content(law.law(Scaling::fixed_epochs), {},
                                                             laboratory::of_runs(0.002), 3),
                                    Base::matched)
                                .at(0));
  };
  expect_parts(text([](double n) { return 0.2 * (n - 1); }), {"USL shows no peak (coherence "});
  expect_parts(text([](double n) { return 0.1 * (n - 1) - 0.002 * n * (n - 1); }),
               {"USL does not fit (coherence -"});
}

laboratory::Law linear_law() {
  laboratory::StepLaw law;
  law.communication = [](double n) { return 0.1 * (n - 1); };
  return law.law(Scaling::fixed_epochs);
}

// Through the whole program, of those studies of which it names a bound.
TEST(Fits, TheBoundHoldsTheTruth) {
  int said = 0, held = 0;
  for (int study = 0; study < 500; ++study) {
    const auto all = explain(
        laboratory::make_content(linear_law(), {.runs = 3 + study % 4},
                                 laboratory::of_runs(study % 2 == 0 ? 0.01 : 0.003, study % 3 == 0),
                                 static_cast<std::uint32_t>(study)),
        Base::matched);
    const SeriesExplanation& series = all.at(0).series.at(0);
    const bool is_said = std::ranges::any_of(series.verdict, [](const Finding& finding) {
      return finding.kind == FindingKind::speed_up_bound;
    });
    if (!is_said) continue;
    ++said;
    const Interval& share = series.amdahl.value().value.interval;
    held += share.low <= 0.1 && 0.1 <= share.high ? 1 : 0;
  }
  RecordProperty("held", fmt::format("{} of {}", held, said));
  EXPECT_GT(said, 100);
  EXPECT_GE(held, 0.93 * said) << said;
}

TEST(Fits, OneRunAPointBoundsNothing) {
  for (const int runs : {1, 2}) {
    for (const double noise : {0.0, 0.01}) {
      const auto all = explain(
          laboratory::make_content(linear_law(), {.runs = runs}, laboratory::of_runs(noise), 5),
          Base::matched);
      const std::string text = explanation_text(all.at(0));
      expect_no_parts(text, {"cannot exceed", "fits:"});
      expect_parts(text, {"no law is fitted"});
    }
  }
}

}  // namespace
}  // namespace paceline
