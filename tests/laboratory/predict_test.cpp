// Predictions of sizes that were not run, against the law.
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace paceline::laboratory
