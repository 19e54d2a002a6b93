// Sentences about data, held against data of known laws: a sentence may only be said where it is
// true. Each law gives the time of a step and of a run; records are made of it for each scaling
// type, with and without noise, and every finding and label is judged by what the law says.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <random>

#include "analysis/explain/explain.h"
#include "tests/unit/analysis/samples.h"

namespace paceline {
namespace {

using testing::content_of;
using testing::sample_record;

// In units of what one replica computes in a step of its whole batch.
struct KnownLaw {
  const char* name = "ideal";
  double per_run = 0;     // once, in units of 100 steps
  double per_step = 0;    // in each step of any number of replicas, waiting for the host
  double per_sample = 0;  // of input, by one reader for all: a batch of one replica takes this
  double slow_base = 0;   // what one replica takes longer than it should
  double slow_many = 0;   // what each of several replicas computes longer
  std::function<double(double)> communication = [](double) { return 0.0; };  // a step, N > 1
  std::function<double(double)> lateness = [](double) { return 0.0; };  // mean wait for late ranks
};

constexpr double kLawSteps = 100;

std::vector<KnownLaw> laws() {
  const auto of = [](const char* name, auto change) {
    KnownLaw law;
    law.name = name;
    change(law);
    return law;
  };
  return {
      of("ideal", [](KnownLaw&) {}),
      of("serial part of the run", [](KnownLaw& law) { law.per_run = 0.2; }),
      of("serial part of the step", [](KnownLaw& law) { law.per_step = 0.1; }),
      of("serial input", [](KnownLaw& law) { law.per_sample = 0.15; }),
      of("communication grows with replicas",
         [](KnownLaw& law) { law.communication = [](double n) { return 0.12 * (n - 1); }; }),
      of("communication grows with the square",
         [](KnownLaw& law) { law.communication = [](double n) { return 0.03 * n * (n - 1); }; }),
      of("communication grows with the logarithm",
         [](KnownLaw& law) { law.communication = [](double n) { return 0.1 * std::log2(n); }; }),
      of("communication of a ring",
         [](KnownLaw& law) { law.communication = [](double n) { return 0.2 * (n - 1) / n; }; }),
      of("communication is constant",
         [](KnownLaw& law) { law.communication = [](double) { return 0.15; }; }),
      of("late ranks",
         [](KnownLaw& law) {
           law.lateness = [](double n) { return 0.1 * std::sqrt(std::log(n)); };
         }),
      of("shared memory", [](KnownLaw& law) { law.slow_many = 0.2; }),
      of("slow base", [](KnownLaw& law) { law.slow_base = 0.3; }),
      of("slow base, growing communication",
         [](KnownLaw& law) {
           law.slow_base = 0.1;
           law.communication = [](double n) { return 0.1 * (n - 1); };
         }),
      of("overhead", [](KnownLaw& law) { law.communication = [](double n) { return 1.2 * n; }; }),
      of("serial part and growing communication",
         [](KnownLaw& law) {
           law.per_run = 0.05;
           law.communication = [](double n) { return 0.04 * (n - 1); };
         }),
      of("one bad size",  // as where ranks do not fill their nodes
         [](KnownLaw& law) {
           law.communication = [](double n) { return (n == 4 ? 0.5 : 0.1) * (n - 1); };
         }),
  };
}

// One run by a law: the parts of its time, in seconds of a rank.
struct Parts {
  double input = 0, launch = 0, communication = 0, lateness = 0, compute = 0, outside = 0;
  double steps = 0, samples = 0;
  double in_steps() const { return input + launch + communication + lateness + compute; }
};

Parts parts_of(const KnownLaw& law, Scaling scaling, double n) {
  const bool strong = scaling == Scaling::strong, weak = scaling == Scaling::weak;
  const double share = strong ? 1 / n : 1;  // of the batch that one replica has
  Parts parts;
  parts.steps = strong || weak ? kLawSteps : kLawSteps / n;
  parts.samples = 6400 * (weak ? n : 1);
  parts.compute = parts.steps * share * (n == 1 ? 1 + law.slow_base : 1 + law.slow_many);
  parts.launch = parts.steps * law.per_step;
  parts.input = parts.steps * share * n * law.per_sample;
  if (n > 1) {
    parts.communication = parts.steps * law.communication(n);
    parts.lateness = parts.steps * law.lateness(n);
  }
  parts.outside = kLawSteps * law.per_run;
  return parts;
}

// What is compared: seconds, or of weak scaling seconds of a sample, in steps.
double cost_of(const KnownLaw& law, Scaling scaling, double n) {
  const Parts parts = parts_of(law, scaling, n);
  return scaling == Scaling::weak ? parts.in_steps() / parts.samples
                                  : parts.in_steps() + parts.outside;
}

double speed_up_of(const KnownLaw& law, Scaling scaling, double n) {
  return cost_of(law, scaling, 1) / cost_of(law, scaling, n);
}

double fraction_of(const KnownLaw& law, Scaling scaling, double n) {
  return (n / speed_up_of(law, scaling, n) - 1) / (n - 1);
}

struct Design {
  Scaling scaling = Scaling::strong;
  std::vector<int> sizes;  // beside one
  int repeats = 1;
  double noise = 0;
  bool rounds = true;  // shared, and the machine drifts from one to the next
};

Json record_by(const KnownLaw& law, const Design& design, int gpus, int repeat, double factor,
               const std::function<double()>& wobble) {
  const Parts parts = parts_of(law, design.scaling, gpus);
  double input = 0, launch = 0, communication = 0, lateness = 0, compute = 0;
  for (const auto& [to, from] : {std::pair(&input, parts.input),
                                 {&launch, parts.launch},
                                 {&communication, parts.communication},
                                 {&lateness, parts.lateness},
                                 {&compute, parts.compute}}) {
    *to = from * factor * wobble();
  }
  const double step = input + launch + communication + lateness + compute;
  const double fit = step + parts.outside * factor * wobble();
  Json record = sample_record({.gpus = gpus,
                               .repeat = repeat,
                               .round = repeat,
                               .fit_seconds = fit,
                               .session = design.rounds ? "s1" : ""});
  if (design.scaling == Scaling::strong) {
    record["parameters"].erase("batch_per_replica");
    record["parameters"]["global_batch"] = 64;
  }
  if (design.scaling == Scaling::weak) {
    record["parameters"].erase("epochs");
    record["parameters"]["steps"] = static_cast<int>(kLawSteps);
  }
  record["throughput"] = {{"samples_per_second", parts.samples / step},
                          {"warmup_steps_excluded", 0},
                          {"samples", parts.samples},
                          {"steps", parts.steps}};
  // Ranks are late in turn, so all of them wait long in total.
  for (Json& rank : record["phases"]) {
    rank = {{"input", input},
            {"forward", compute / 4},
            {"backward", compute / 2},
            {"communication", communication + lateness},
            {"update", compute / 4},
            {"other", launch},
            {"step", step}};
  }
  return record;
}

StoreContent content_by(const KnownLaw& law, const Design& design, std::mt19937_64& random) {
  std::normal_distribution<double> normal;
  const auto factor = [&](double spread) {
    return std::exp(design.noise * spread * normal(random));
  };
  std::vector<int> sizes = {1};
  sizes.insert(sizes.end(), design.sizes.begin(), design.sizes.end());
  std::vector<Json> records;
  for (int repeat = 1; repeat <= design.repeats; ++repeat) {
    const double drift = design.rounds ? factor(3) : 1;
    for (const int gpus : sizes) {
      records.push_back(
          record_by(law, design, gpus, repeat, drift * factor(1), [&] { return factor(0.2); }));
    }
  }
  return content_of(records);
}

std::string described(const KnownLaw& law, const Design& design) {
  std::string text =
      std::string(law.name) + ", " + std::string(name_of(design.scaling)) + " scaling, sizes";
  for (const int size : design.sizes) text += " " + std::to_string(size);
  return text + ", " + std::to_string(design.repeats) + " runs, noise " +
         std::to_string(design.noise) + (design.rounds ? ", rounds" : "");
}

bool slows_down_again(const KnownLaw& law, const Design& design) {
  const double end = 100.0 * design.sizes.back();
  double best = 1;
  for (double n = 1; n <= end; n *= 1.05) {
    if (speed_up_of(law, design.scaling, n) > speed_up_of(law, design.scaling, best)) best = n;
  }
  return best < 0.9 * end;
}

// Whether what a kind says is true by the law.
bool is_true(FindingKind kind, const KnownLaw& law, const Design& design) {
  constexpr double kRounding = 1e-6;
  const double first = fraction_of(law, design.scaling, design.sizes.front());
  const double last = fraction_of(law, design.scaling, design.sizes.back());
  const auto all = [&](auto condition) {
    return std::all_of(design.sizes.begin(), design.sizes.end(), condition);
  };
  double mean = 0;
  for (const int n : design.sizes) {
    mean += fraction_of(law, design.scaling, n) / static_cast<double>(design.sizes.size());
  }
  const double tolerance = std::max(0.02 / design.sizes.back(), 0.2 * std::abs(mean)) + kRounding;
  switch (kind) {
    case FindingKind::slower_than_one:
      return all([&](int n) { return speed_up_of(law, design.scaling, n) < 1; });
    case FindingKind::above_ideal:
      return all([&](int n) { return fraction_of(law, design.scaling, n) < 0; });
    case FindingKind::no_loss:  // with noise: its bound is held against the truth elsewhere
      return design.noise > 0 || all([&](int n) {
               return std::abs(fraction_of(law, design.scaling, n)) * (n - 1) < 0.06;
             });
    case FindingKind::steady:
    case FindingKind::causes_alike:
    case FindingKind::speed_up_bound:
      return all([&](int n) {
        // 20 % of the mean that was measured, which is not quite the true one.
        return std::abs(fraction_of(law, design.scaling, n) - first) < 1.25 * tolerance;
      });
    case FindingKind::grows:
      return last > first;
    case FindingKind::falls:
      return last < first;
    case FindingKind::uneven:
      return all([&](int n) {
        return n == design.sizes.front() || n == design.sizes.back() ||
               std::abs(fraction_of(law, design.scaling, n) - first) > 0;
      });
    case FindingKind::unclear:  // without noise everything can be told from it
      return design.noise > 0;
    case FindingKind::peak:
      return slows_down_again(law, design);
    case FindingKind::too_few_sizes:
      return design.sizes.size() < 2;
    default:
      return true;  // numbers, and what cannot be told
  }
}

// The label of the largest true loss, as totals of ranks can tell it; empty: none is lost.
std::string true_label(const KnownLaw& law, Scaling scaling, int gpus) {
  const Parts base = parts_of(law, scaling, 1), here = parts_of(law, scaling, gpus);
  const auto lost = [&](double Parts::*part) {
    return here.*part * gpus / here.samples - base.*part / base.samples;
  };
  std::map<double, std::string> losses = {
      {lost(&Parts::input), "input"},
      {lost(&Parts::communication) + lost(&Parts::lateness), "communication or straggler"},
      {lost(&Parts::launch), "launch"},
      {lost(&Parts::compute), "compute"}};
  if (scaling != Scaling::weak) losses.emplace(lost(&Parts::outside), "outside of steps");
  return losses.rbegin()->first > 1e-9 ? losses.rbegin()->second : "";
}

struct Judged {
  int studies = 0;
  std::map<std::string, int> said, wrong;  // by kind
  int intervals = 0, missed = 0;           // of fractions, and those that do not hold the truth
};

// What is said of one point in several places is one thing, however wide the noise.
void expect_no_contradiction(const Explanation& explanation) {
  for (const PointExplanation& point : explanation.points) {
    const SpeedUp* speed_up = point.facts->speed_up;
    if (!point.lost || speed_up == nullptr) continue;
    EXPECT_NEAR(point.lost->value, 1 - *speed_up->efficiency, 1e-9) << point.because;
    const bool says_lost = point.because.find("points of efficiency are lost") != std::string::npos;
    EXPECT_TRUE(!says_lost || point.lost->value > -1e-9 ||
                point.because.find("cannot be told from noise") != std::string::npos)
        << point.because;
    double sum = 0;
    for (const Loss& loss : point.losses) {
      sum += loss.value;
      EXPECT_LE(loss.interval.value_or(Interval{}).high, 1) << point.because;
      const bool is_label = point.label.find(loss.label) != std::string::npos;
      EXPECT_TRUE(!is_label || !loss.interval || loss.interval->low > 0) << point.because;
    }
    EXPECT_NEAR(sum, point.lost->value, 1e-9) << point.because;
    const auto& known = speed_up->ratio.estimate.interval;
    if (!known || !point.lost->interval) continue;
    EXPECT_NEAR(point.lost->interval->high, 1 - known->low / point.facts->run().gpus, 1e-9);
  }
  for (const ScalingSeries& series :
       make_scaling_series(explanation.study, explanation.comparison, explanation.facts, false)) {
    for (const Trend& trend : trends_of(explanation.study, explanation.comparison, series)) {
      if (trend.kind != TrendKind::no_loss || trend.doubt) continue;
      for (const SizeGroup& group : series.groups) {
        if (group.gpus < 2) continue;
        EXPECT_GE(group.rows.front()->speed_up->ratio.estimate.interval->high, group.gpus - 1e-6)
            << "no loss is said, and the interval of the speed-up excludes it";
      }
    }
  }
}

void judge(const KnownLaw& law, const Design& design, std::mt19937_64& random, Judged& judged) {
  const auto explanations = explain(content_by(law, design, random), Base::matched);
  ASSERT_EQ(explanations.size(), 1U) << described(law, design);
  const Explanation& explanation = explanations[0];
  ASSERT_EQ(explanation.study.scaling, design.sizes.empty() ? Scaling::one_size : design.scaling)
      << described(law, design);
  ++judged.studies;
  expect_no_contradiction(explanation);
  std::vector<Finding> all = findings(explanation.study, explanation.comparison, explanation.facts);
  for (const SeriesExplanation& series : explanation.series) {
    all.insert(all.end(), series.verdict.begin(), series.verdict.end());
  }
  for (const Finding& finding : all) {
    const std::string kind(name_of(finding.kind));
    ++judged.said[kind];
    if (is_true(finding.kind, law, design)) continue;
    ++judged.wrong[kind];
    if (design.noise == 0) ADD_FAILURE() << described(law, design) << ": " << finding.text;
  }
  for (const PointExplanation& point : explanation.points) {
    const int gpus = point.facts->run().gpus;
    if (gpus == 1 || point.label.empty()) continue;
    ++judged.said["label"];
    const std::string truth = true_label(law, design.scaling, gpus);
    if (!truth.empty() && point.label.find(truth) != std::string::npos) continue;
    ++judged.wrong["label"];
    if (design.noise == 0) {
      ADD_FAILURE() << described(law, design) << ": " << point.name << ": " << point.because;
    }
  }
  for (const ScalingSeries& series :
       make_scaling_series(explanation.study, explanation.comparison, explanation.facts, false)) {
    for (const Trend& trend : trends_of(explanation.study, explanation.comparison, series)) {
      for (const SizeOfTrend& size : trend.sizes) {
        if (!size.loss) continue;
        const double truth = fraction_of(law, design.scaling, size.gpus);
        ++judged.intervals;
        judged.missed += truth < size.loss->low - 1e-9 || truth > size.loss->high + 1e-9 ? 1 : 0;
      }
    }
  }
}

const std::vector<Scaling> kScalings = {Scaling::strong, Scaling::fixed_epochs, Scaling::weak};
const std::vector<std::vector<int>> kSizes = {{2}, {2, 4}, {2, 3, 4}, {2, 4, 8, 16, 32}};

TEST(Laws, NoNoiseMakesTwoAnswersOfOne) {
  std::mt19937_64 random(7);
  for (const KnownLaw& law : laws()) {
    for (const Scaling scaling : kScalings) {
      for (const double noise : {0.1, 0.5}) {
        for (const bool rounds : {true, false}) {
          expect_no_contradiction(explain(
              content_by(law, {scaling, {2, 4}, 5, noise, rounds}, random), Base::matched)[0]);
        }
      }
    }
  }
}

TEST(Laws, WithoutNoiseNoSentenceIsFalse) {
  std::mt19937_64 random(1);
  Judged judged;
  for (const KnownLaw& law : laws()) {
    for (const Scaling scaling : kScalings) {
      for (const auto& sizes : kSizes) {
        for (const int repeats : {1, 3}) judge(law, {scaling, sizes, repeats}, random, judged);
      }
    }
  }
  for (const char* kind :
       {"slower_than_one", "no_loss", "above_ideal", "steady", "grows", "falls", "uneven",
        "unjudged", "causes_alike", "too_few_sizes", "speed_up_bound", "peak", "label"}) {
    EXPECT_GT(judged.said[kind], 0) << kind << " is said of no law: it is not tested";
  }
}

// Intervals are of 95 %, so of twenty studies one may mislead; more may not.
TEST(Laws, NoiseMisleadsNoMoreOftenThanItsIntervalsSay) {
  constexpr double kMayMislead = 0.05;
  constexpr int kTrials = 6;
  std::mt19937_64 random(2);
  Judged total;
  for (const KnownLaw& law : laws()) {
    for (const Scaling scaling : kScalings) {
      Judged judged;
      for (const auto& sizes : {std::vector<int>{2, 4}, {2, 4, 8}}) {
        for (const double noise : {0.01, 0.06}) {
          for (const bool rounds : {true, false}) {
            for (const int repeats : {3, 6}) {
              for (int trial = 0; trial < kTrials; ++trial) {
                judge(law, {scaling, sizes, repeats, noise, rounds}, random, judged);
              }
            }
          }
        }
      }
      for (const auto& [kind, wrong] : judged.wrong) {
        total.said[kind] += judged.said[kind];
        total.wrong[kind] += wrong;
        const double sigma = std::sqrt(kMayMislead * judged.studies);
        EXPECT_LE(wrong, kMayMislead * judged.studies + 3 * sigma)
            << law.name << ", " << name_of(scaling) << " scaling: " << kind << " of "
            << judged.studies;
      }
      total.studies += judged.studies;
      total.intervals += judged.intervals;
      total.missed += judged.missed;
    }
  }
  for (const auto& [kind, wrong] : total.wrong) {
    EXPECT_LE(wrong, kMayMislead * total.studies) << kind;
    RecordProperty(kind, std::to_string(wrong) + " of " + std::to_string(total.said[kind]));
  }
  EXPECT_LE(total.missed, 0.06 * total.intervals);
}

FindingKind kind_of(const KnownLaw& law, const Design& design) {
  std::mt19937_64 random(3);
  const auto explanations = explain(content_by(law, design, random), Base::matched);
  return explanations.at(0).series.at(0).verdict.at(1).kind;
}

KnownLaw law_of(const std::string& name) {
  for (KnownLaw& law : laws()) {
    if (law.name == name) return law;
  }
  ADD_FAILURE() << name;
  return {};
}

// The same cost looks unlike in unlike scaling types; docs/explain.md has the algebra.
TEST(Laws, WhatAConstantFractionMeansDependsOnTheScalingType) {
  const auto kinds = [](const std::string& law) {
    std::map<Scaling, FindingKind> found;
    for (const Scaling scaling : kScalings) {
      found[scaling] = kind_of(law_of(law), {scaling, {2, 4, 8, 16}, 3});
    }
    return found;
  };
  using Kinds = std::map<Scaling, FindingKind>;
  constexpr auto kSteady = FindingKind::steady, kGrows = FindingKind::grows,
                 kFalls = FindingKind::falls, kNoLoss = FindingKind::no_loss;
  constexpr auto kStrong = Scaling::strong, kFixed = Scaling::fixed_epochs, kWeak = Scaling::weak;
  EXPECT_EQ(kinds("serial part of the run"),
            (Kinds{{kStrong, kSteady}, {kFixed, kSteady}, {kWeak, kNoLoss}}));
  EXPECT_EQ(kinds("serial part of the step"),
            (Kinds{{kStrong, kSteady}, {kFixed, kNoLoss}, {kWeak, kNoLoss}}));
  EXPECT_EQ(kinds("serial input"),
            (Kinds{{kStrong, kSteady}, {kFixed, kSteady}, {kWeak, kSteady}}));
  EXPECT_EQ(kinds("communication grows with replicas"),
            (Kinds{{kStrong, kGrows}, {kFixed, kSteady}, {kWeak, kSteady}}));
  EXPECT_EQ(kinds("communication of a ring"),
            (Kinds{{kStrong, kSteady}, {kFixed, kFalls}, {kWeak, kFalls}}));
  EXPECT_EQ(kinds("communication is constant"),
            (Kinds{{kStrong, kFalls}, {kFixed, kFalls}, {kWeak, kFalls}}));
}

}  // namespace
}  // namespace paceline
