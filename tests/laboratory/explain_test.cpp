// What report and explain say of studies by known laws: a sentence may only be said where it is
// true. Each law is tried in each type of scaling, with and without noise.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "tests/laboratory/page.h"
#include "tests/laboratory/rate.h"
#include "tests/laboratory/records.h"

namespace paceline::laboratory {
namespace {

struct Trial {
  Law law;
  Design design;
  Noise noise;

  bool is_noisy() const { return noise.run > 0; }
  std::vector<int> sizes() const {  // of several replicas
    return {design.sizes.begin() + 1, design.sizes.end()};
  }
  std::string text() const {
    std::string all = law.name + ", " + std::string(to_string(law.scaling)) + " scaling, sizes";
    for (const int size : design.sizes) all += " " + std::to_string(size);
    return all + ", " + std::to_string(design.runs) + " runs, noise " + std::to_string(noise.run) +
           (design.rounds ? ", rounds" : "");
  }
};

Trial run_trial(const StepLaw& law, Scaling scaling, std::vector<int> sizes, int runs,
                double noise = 0, bool rounds = true) {
  sizes.insert(sizes.begin(), 1);
  return {law.law(scaling),
          {.sizes = std::move(sizes), .runs = runs, .rounds = rounds},
          of_runs(noise, rounds)};
}

bool slows_down_again(const Trial& trial) {
  const int end = 100 * trial.design.sizes.back();
  int best = 1;
  for (int n = 1; n <= end; n += std::max(1, n / 20)) {
    if (trial.law.speed_up(n) > trial.law.speed_up(best)) best = n;
  }
  return best < 0.9 * end;
}

// Whether what a kind says is true by the law. Numbers, and what cannot be told, always are.
bool is_true(FindingKind kind, const Trial& trial) {
  constexpr double kRounding = 1e-6;
  const std::vector<int> sizes = trial.sizes();
  const Law& law = trial.law;
  const double first = law.fraction(sizes.front()), last = law.fraction(sizes.back());
  const auto all = [&](auto condition) { return std::ranges::all_of(sizes, condition); };
  double mean = 0;
  for (const int n : sizes) mean += law.fraction(n) / static_cast<double>(sizes.size());
  const double tolerance = std::max(0.02 / sizes.back(), 0.2 * std::abs(mean)) + kRounding;
  switch (kind) {
    case FindingKind::slower_than_one:
      return all([&](int n) { return law.speed_up(n) < 1; });
    case FindingKind::above_ideal:
      return all([&](int n) { return law.fraction(n) < 0; });
    case FindingKind::hidden_loss:
      return std::ranges::any_of(sizes,
                                 [&](int n) { return law.losses(n).front().points > kRounding; });
    case FindingKind::no_loss:  // with noise its bound is held against the truth elsewhere
      return trial.is_noisy() ||
             all([&](int n) { return std::abs(n / law.speed_up(n) - 1) < 0.06; });
    case FindingKind::steady:
    case FindingKind::causes_alike:
    case FindingKind::speed_up_bound:
      // The tolerance is of the mean that was measured, which is not quite the true one.
      return all([&](int n) { return std::abs(law.fraction(n) - first) < 1.25 * tolerance; });
    case FindingKind::grows:
      return last > first;
    case FindingKind::falls:
      return last < first;
    case FindingKind::uneven:
      return all([&](int n) {
        return n == sizes.front() || n == sizes.back() || std::abs(law.fraction(n) - first) > 0;
      });
    case FindingKind::unclear:  // without noise everything can be distinguished from it
      return trial.is_noisy();
    case FindingKind::peak:
      return slows_down_again(trial);
    case FindingKind::too_few_sizes:
      return sizes.size() < 2;
    default:
      return true;
  }
}

// The label of the largest true loss; empty: none is lost.
std::string true_label(const Law& law, int replicas) {
  const Law::Lost most = law.losses(replicas).front();
  return most.points > 1e-9 ? most.label : "";
}

struct Score {
  int studies = 0;
  std::map<std::string, int> said, wrong;  // by kind
  Rate fractions;                          // intervals that hold the truth
};

// Whether the interval holds the truth, where there is one.
void add_held(Rate& rate, const Judged& judged, double truth) {
  judged.match(
      [&](const Known& known) {
        rate.add(known.interval.low - 1e-9 <= truth && truth <= known.interval.high + 1e-9);
      },
      [](double, const WeakEvidence&) {});
}

// What is said of one point in several places is one thing, however wide the noise.
void expect_no_contradiction(const Explanation& explanation) {
  for (const PointExplanation& point : explanation.points) {
    const SpeedUp* speed_up = point.facts->speed_up;
    if (!point.lost || speed_up == nullptr) continue;
    EXPECT_NEAR(point.lost->value(), 1 - *speed_up->efficiency, 1e-9) << point.because;
    EXPECT_FALSE(point.because.starts_with("-")) << point.because;  // what is lost is positive
    double sum = 0;
    for (const Loss& loss : point.losses) {
      sum += loss.share.value();
      EXPECT_FALSE(loss.share.is_above(1)) << point.because;
      const bool is_label = point.label.find(loss.label) != std::string::npos;
      EXPECT_TRUE(!is_label || !loss.share.is_known() || loss.share.is_above(0)) << point.because;
    }
    EXPECT_NEAR(sum, point.lost->value(), 1e-9) << point.because;
    const auto& known = speed_up->ratio.estimate.interval;
    if (!known) continue;
    const double highest = 1 - known->low / point.facts->run()->layout.gpus;
    point.lost->match([&](const Known& lost) { EXPECT_NEAR(lost.interval.high, highest, 1e-9); },
                      [](double, const WeakEvidence&) {});
  }
  for (const ScalingSeries& series :
       make_scaling_series(explanation.study, explanation.comparison, explanation.facts, false)) {
    for (const Trend& trend : fit_trends(explanation.study, explanation.comparison, series)) {
      if (trend.kind != FindingKind::no_loss || trend.doubt) continue;
      for (const SizeGroup& group : series.groups) {
        if (group.gpus < 2) continue;
        EXPECT_GE(group.rows.front()->speed_up->ratio.estimate.interval->high, group.gpus - 1e-6)
            << "no loss is said, and the interval of the speed-up excludes it";
      }
    }
  }
}

void judge_findings(const Page& page, const Trial& trial, Score& judged) {
  for (const Finding& finding : page.findings) {
    const std::string kind(to_string(finding.kind));
    ++judged.said[kind];
    if (is_true(finding.kind, trial)) continue;
    ++judged.wrong[kind];
    if (!trial.is_noisy()) ADD_FAILURE() << trial.text() << ": " << finding.text;
  }
}

void judge_labels(const Explanation& explanation, const Trial& trial, Score& judged) {
  for (const PointExplanation& point : explanation.points) {
    const int replicas = point.facts->run()->layout.gpus;
    if (replicas == 1 || point.label.empty()) continue;
    ++judged.said["label"];
    const std::string truth = true_label(trial.law, replicas);
    if (!truth.empty() && point.label.find(truth) != std::string::npos) continue;
    ++judged.wrong["label"];
    if (!trial.is_noisy()) {
      ADD_FAILURE() << trial.text() << ": " << point.name << ": " << point.because;
    }
  }
}

void judge_fractions(const Explanation& explanation, const Trial& trial, Score& judged) {
  for (const ScalingSeries& series :
       make_scaling_series(explanation.study, explanation.comparison, explanation.facts, false)) {
    for (const Trend& trend : fit_trends(explanation.study, explanation.comparison, series)) {
      for (const SizeOfTrend& size : trend.sizes) {
        add_held(judged.fractions, size.fraction, trial.law.fraction(size.gpus));
      }
    }
  }
}

void judge_trial(const Trial& trial, std::uint32_t seed, Score& judged) {
  const Page page = read_page(make_content(trial.law, trial.design, trial.noise, seed));
  ASSERT_EQ(page.explanations.size(), 1U) << trial.text() << page.refusal;
  const Explanation& explanation = page.explanations[0];
  ASSERT_EQ(explanation.study.scaling, trial.law.scaling) << trial.text();
  ++judged.studies;
  expect_no_contradiction(explanation);
  judge_findings(page, trial, judged);
  judge_labels(explanation, trial, judged);
  judge_fractions(explanation, trial, judged);
}

const std::vector<Scaling> kScalings = {Scaling::strong, Scaling::fixed_epochs, Scaling::weak};
const std::vector<std::vector<int>> kSizes = {{2}, {2, 4}, {2, 3, 4}, {2, 4, 8, 16, 32}};

TEST(LaboratoryExplain, NoNoiseMakesTwoAnswersOfOne) {
  std::uint32_t seed = 0;
  for (const StepLaw& law : step_laws()) {
    for (const Scaling scaling : kScalings) {
      for (const double noise : {0.1, 0.5}) {
        for (const bool rounds : {true, false}) {
          const Trial trial = run_trial(law, scaling, {2, 4}, 5, noise, rounds);
          const StoreContent content = make_content(trial.law, trial.design, trial.noise, ++seed);
          expect_no_contradiction(explain(content, Base::matched).at(0));
        }
      }
    }
  }
}

TEST(LaboratoryExplain, WithoutNoiseNoSentenceIsFalse) {
  Score judged;
  for (const StepLaw& law : step_laws()) {
    for (const Scaling scaling : kScalings) {
      for (const auto& sizes : kSizes) {
        for (const int runs : {1, 3}) {
          for (const bool phases : {true, false}) {
            Trial trial = run_trial(law, scaling, sizes, runs);
            trial.design.phases = phases;
            judge_trial(trial, 0, judged);
          }
        }
      }
    }
  }
  for (const char* kind : {"slower_than_one", "no_loss", "above_ideal", "steady", "grows", "falls",
                           "uneven", "unjudged", "hidden_loss", "phases", "causes_alike",
                           "too_few_sizes", "speed_up_bound", "peak", "label"}) {
    EXPECT_GT(judged.said[kind], 0) << kind << " is said of no law: it is not tested";
  }
}

// Intervals are of 95 %, so of twenty studies one may mislead; more may not.
TEST(LaboratoryExplain, NoiseMisleadsNoMoreOftenThanItsIntervalsAllow) {
  constexpr double kMayMislead = 0.05;
  const int trials = studies(120);
  Score total;
  std::uint32_t seed = 0;
  for (const StepLaw& law : step_laws()) {
    for (const Scaling scaling : kScalings) {
      Score judged;
      for (int i = 0; i < trials; ++i) {
        const std::vector<int> sizes =
            i % 2 == 0 ? std::vector<int>{2, 4} : std::vector<int>{2, 4, 8};
        judge_trial(run_trial(law, scaling, sizes, i / 8 % 2 == 0 ? 3 : 6,
                              i / 2 % 2 == 0 ? 0.01 : 0.06, i / 4 % 2 == 0),
                    ++seed, judged);
      }
      for (const auto& [kind, wrong] : judged.wrong) {
        total.wrong[kind] += wrong;
        EXPECT_TRUE(
            at_most({wrong, judged.studies}, kMayMislead,
                    std::string(law.name) + ", " + std::string(to_string(scaling)) + ": " + kind));
      }
      total.studies += judged.studies;
      total.fractions.times += judged.fractions.times;
      total.fractions.of += judged.fractions.of;
    }
  }
  for (const auto& [kind, wrong] : total.wrong) {
    EXPECT_TRUE(at_most({wrong, total.studies}, kMayMislead, "false " + kind));
  }
  EXPECT_TRUE(at_least(total.fractions, 0.95, "Karp-Flatt's intervals hold the truth"));
}

// The law of a study is drawn with it: a share from `low` to `high`, and a size.
using DrawnLaw = std::function<double(double n, double share, double size)>;

// How often explain names a peak, and how often a peak that the law does not have there.
struct Peaks {
  Rate named, wrong;
};

Peaks find_peaks(const DrawnLaw& overhead, double low, double high, int count, std::uint32_t seed) {
  static const std::vector<std::vector<int>> kStudied = {{1, 2, 4, 8},    {1, 2, 4, 8, 16},
                                                         {1, 2, 4, 6, 8}, {1, 2, 3, 4},
                                                         {1, 4, 8, 16},   {1, 2, 4, 8, 16, 32}};
  Peaks found;
  for (int i = 0; i < count; ++i) {
    RandomSequence random(11, Stream::synthetic, seed + static_cast<std::uint32_t>(i));
    const auto& sizes = kStudied[random.below(static_cast<std::uint32_t>(kStudied.size()))];
    const double share = low + (high - low) * random.uniform();
    const double size = sizes.back() * (0.25 + 0.45 * random.uniform());
    const Law law = overhead_law("drawn", [&](double n) { return overhead(n, share, size); });
    const Design design{
        .sizes = sizes, .runs = random.uniform() < 0.5 ? 3 : 6, .phases = i % 2 == 0};
    const Trial trial{law, design, {.run = random.uniform() < 0.5 ? 0.003 : 0.01}};
    const Page page =
        read_page(make_content(law, design, trial.noise, seed + static_cast<std::uint32_t>(i)));
    const bool named = page.has("peak");
    found.named.add(named);
    found.wrong.add(named && !slows_down_again(trial));
  }
  return found;
}

// Plateaus, knees and hyper-threads have no peak; a USL whose peak lies inside the sizes has.
TEST(LaboratoryExplain, APeakIsNamedWhereMoreReplicasAreSlower) {
  const auto beside = [](double n, double share) { return n > 1 ? share : 0; };
  const std::vector<std::pair<const char*, DrawnLaw>> none = {
      {"input for some replicas",
       [](double n, double, double size) { return std::max(1.0, n / size); }},
      {"knee", [=](double n, double share,
                   double size) { return 1 + beside(n, 0.01) + (n > size ? 5 * share : 0); }},
      {"hyper-threads",
       [](double n, double share, double size) {
         return n <= size ? 1 : n / (size + 4 * share * (n - size));
       }},
      {"N^0.85",
       [=](double n, double share, double) { return 1 + beside(n, share) * std::pow(n, 0.85); }},
      {"a logarithm and each replica", [](double n, double share, double) {
         return 1 + share * (n - 1) / 2 + share * std::log2(n);
       }}};
  std::uint32_t seed = 200000;
  for (const auto& [name, overhead] : none) {
    EXPECT_TRUE(at_most(find_peaks(overhead, 0.02, 0.1, studies(200), seed += 1000).wrong, 0.01,
                        std::string("a peak that is none: ") + name));
  }
  const Peaks usl = find_peaks(
      [](double n, double share, double size) {
        return 1 + share * (n - 1) + (1 - share) / (size * size) * n * (n - 1);
      },
      0.01, 0.1, studies(200), seed += 1000);
  EXPECT_TRUE(at_least(usl.named, 0.8, "a peak of a USL inside the sizes is named"));
}

// The same cost looks unlike in unlike scaling types; docs/explain.md has the algebra.
TEST(LaboratoryExplain, WhatAConstantFractionMeansDependsOnTheScalingType) {
  using Kinds = std::map<Scaling, std::string>;
  const auto kinds = [](const char* law) {
    Kinds found;
    for (const Scaling scaling : kScalings) {
      const Trial trial = run_trial(step_law(law), scaling, {2, 4, 8, 16}, 3);
      const Page page = read_page(make_content(trial.law, trial.design, trial.noise, 0));
      for (const char* kind : {"steady", "grows", "falls", "no_loss"}) {
        if (page.has(kind)) found[scaling] += kind;
      }
    }
    return found;
  };
  constexpr auto kStrong = Scaling::strong, kFixed = Scaling::fixed_epochs, kWeak = Scaling::weak;
  EXPECT_EQ(kinds("serial part of the run"),
            (Kinds{{kStrong, "steady"}, {kFixed, "steady"}, {kWeak, "no_loss"}}));
  EXPECT_EQ(kinds("serial part of the step"),
            (Kinds{{kStrong, "steady"}, {kFixed, "no_loss"}, {kWeak, "no_loss"}}));
  EXPECT_EQ(kinds("serial input"),
            (Kinds{{kStrong, "steady"}, {kFixed, "steady"}, {kWeak, "steady"}}));
  EXPECT_EQ(kinds("communication grows with replicas"),
            (Kinds{{kStrong, "grows"}, {kFixed, "steady"}, {kWeak, "steady"}}));
  EXPECT_EQ(kinds("communication of a ring"),
            (Kinds{{kStrong, "steady"}, {kFixed, "falls"}, {kWeak, "falls"}}));
  EXPECT_EQ(kinds("communication is constant"),
            (Kinds{{kStrong, "falls"}, {kFixed, "falls"}, {kWeak, "falls"}}));
}

}  // namespace
}  // namespace paceline::laboratory
