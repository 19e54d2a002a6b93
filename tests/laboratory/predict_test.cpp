// Predictions of sizes that were not run, against the law.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <regex>

#include "analysis/predict/prediction.h"
#include "tests/laboratory/rate.h"
#include "tests/laboratory/records.h"

namespace paceline::laboratory {
namespace {

TEST(LaboratoryPredict, IntervalsHoldTheTruthOrReportOfWhatTheyAre) {
  std::uint32_t seed = 1;
  for (const char* name :
       {"ideal", "serial part of the run", "communication grows with replicas",
        "communication grows with the square", "communication grows with the logarithm",
        "communication of a ring", "communication is constant", "late ranks"}) {
    const Law law = step_law(name).law(Scaling::fixed_epochs);
    for (const int times : {2, 4}) {
      Rate covered;
      for (int i = 0; i < studies(100); ++i) {
        PredictOptions options;
        options.gpus = {8 * times};
        options.predictor = PredictorChoice::laws;
        for (const Prediction& made :
             predict(make_content(law, {}, {.run = 0.01, .round = 0.02}, ++seed), options)) {
          bool states = false;
          for (const std::string& note : made.notes) {
            states = states || std::regex_search(note, std::regex("published series"));
          }
          for (const SizeValue& size : made.sizes) {
            if (!size.is_predicted) continue;
            const double truth =
                made.rates ? kLawSamples / law.cost(size.gpus) : law.cost(size.gpus);
            const auto& interval = size.value.interval;
            covered.add(states || (interval && interval->low <= truth && truth <= interval->high));
          }
        }
      }
      EXPECT_TRUE(at_least(covered, 0.9,
                           std::string(name) + ", told 1 to 8, at " + std::to_string(8 * times)));
    }
  }
}

// Told 1 to 8 replicas of laws that are none of the predictor's. Without an interval it says that
// it cannot predict them; where nothing happens beyond 8, it has one.
TEST(LaboratoryPredict, BeyondItsLawsIntervalsHoldTheTruthOrAreMissing) {
  struct Kind {
    const char* name;
    std::function<double(double n)> overhead;
    bool is_smooth = true;  // from 8 replicas on
  };
  const auto many = [](double n) { return n > 1 ? 1 : 0; };
  std::uint32_t seed = 5000;
  for (const Kind& kind : std::vector<Kind>{
           {"knee after 8", [=](double n) { return 1 + 0.01 * many(n) + (n > 8 ? 0.2 : 0); },
            false},
           {"input for 10", [](double n) { return std::max(1.0, n / 10); }, false},
           {"above ideal at 4", [](double n) { return (n < 4 ? 1 : 0.85) * (1 + 0.01 * (n - 1)); }},
           {"USL", [](double n) { return 1 + 0.01 * (n - 1) + 0.001 * n * (n - 1); }},
           {"N^0.7", [=](double n) { return 1 + 0.03 * many(n) * std::pow(n, 0.7); }},
           {"a logarithm", [](double n) { return 1 + 0.05 * std::log2(n); }},
           {"constant", [=](double n) { return 1 + 0.1 * many(n); }},
           {"slow base", [](double n) { return n == 1 ? 1.12 : 1 + 0.02 * std::log2(n); }}}) {
    const Law law = overhead_law(kind.name, kind.overhead);
    for (const int size : {16, 32, 64}) {
      Rate held, has_interval;
      for (int i = 0; i < studies(100); ++i) {
        PredictOptions options;
        options.gpus = {size};
        const auto made =
            predict(make_content(law, {}, {.run = 0.01, .round = 0.02}, ++seed), options);
        const SizeValue& predicted = made.at(0).sizes.back();
        const double truth = made.at(0).rates ? kLawSamples / law.cost(size) : law.cost(size);
        const auto& interval = predicted.value.interval;
        has_interval.add(interval.has_value());
        held.add(!interval || (interval->low <= truth && truth <= interval->high));
      }
      const std::string what = fmt::format("{}, told 1 to 8, at {}: ", kind.name, size);
      EXPECT_TRUE(at_least(held, 0.9, what + "it holds or is missing"));
      if (kind.is_smooth && size == 16) {
        EXPECT_TRUE(at_least(has_interval, 0.9, what + "there is an interval"));
      }
    }
  }
}

}  // namespace
}  // namespace paceline::laboratory
