// What plan promises of a pilot study, held by the gate that it plans.
#include <gtest/gtest.h>

#include <regex>

#include "analysis/gate/judge.h"
#include "analysis/plan/design.h"
#include "tests/laboratory/rate.h"
#include "tests/laboratory/records.h"

namespace paceline::laboratory {
namespace {

const std::vector<int> kPlannedSizes = {1, 2, 4};

Law law() {
  return step_law("communication grows with replicas").law(Scaling::fixed_epochs);
}

paceline::Design planned(const Noise& noise, std::uint32_t seed) {
  const StoreContent pilot = make_content(law(), {.sizes = kPlannedSizes, .runs = 10}, noise, seed);
  DesignRequest request;
  for (const Subject& subject : load_side("pilot", pilot).subjects)
    request.points.push_back(subject.name);
  return make_design(request, estimate_noise(pilot));
}

// The planned gate on a build whose points are all slower by what the plan was to see; fresh runs
// of suspects as gate --ab has them.
bool is_red(const paceline::Design& design, const Noise& noise, std::uint32_t seed) {
  GateOptions options;
  options.quantities = {Quantity::time};
  options.thresholds[Quantity::time] = design.threshold;
  const auto side = [&](const char* name, double factor, int session, std::uint32_t own) {
    Noise of_side = noise;
    of_side.event = [factor](const Place& place) { return place.replicas == 2 ? factor : 1; };
    return load_side(
        name, make_content(
                  law(), {.sizes = kPlannedSizes, .runs = design.rounds, .first_session = session},
                  of_side, own));
  };
  const double slower = 1 + design.request.detect;
  Judgement judgement =
      judge(side("baseline", 1, 1, seed), side("current", slower, 1, seed + 1), options);
  if (judgement.verdict() != Verdict::pass) {
    settle(judgement, judge(side("baseline", 1, 2, seed + 2), side("current", slower, 2, seed + 3),
                            find_suspects(judgement, options)));
  }
  return judgement.verdict() == Verdict::regression;
}

TEST(LaboratoryPlan, ThePromisedPowerHolds) {
  struct Kind {
    const char* name;
    Noise noise;
    std::string condition;  // which the text states where the power does not hold
  };
  std::uint32_t seed = 1;
  for (const Kind& kind : std::vector<Kind>{
           {"normal, 1 %", {.run = 0.01}, ""},
           {"normal, 2 %", {.run = 0.02}, ""},
           {"t3", {.run = 0.01, .tails = Tails::student3}, ""},
           {"5 % busy runs", {.run = 0.01, .busy = 0.05}, "(outlier|disturbed|busy|heavy)"}}) {
    Rate rate;
    for (int i = 0; i < studies(200); ++i, seed += 10) {
      const paceline::Design design = planned(kind.noise, seed);
      if (design.rounds == 0) continue;  // it says that it cannot
      const bool states = !kind.condition.empty() &&
                          std::regex_search(to_text(design_document(design), {.width = 300}),
                                            std::regex(kind.condition));
      rate.add(states || is_red(design, kind.noise, seed + 1));
    }
    EXPECT_TRUE(at_least(rate, 0.95, std::string("planned gates find 3 %: ") + kind.name));
  }
}

}  // namespace
}  // namespace paceline::laboratory
