// The fastest point and the smallest that is nearly as fast, where the law says which they are.
#include "analysis/findings/best.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/laboratory/page.h"
#include "tests/laboratory/rate.h"
#include "tests/laboratory/records.h"

namespace paceline::laboratory {
namespace {

Study several_backends(const Noise& noise, int count, std::uint32_t seed) {
  static const char* const kBackends[] = {"mpi", "ring", "gloo", "mirrored", "mpi+bf16"};
  std::vector<Json> records;
  for (int i = 0; i < count; ++i) {
    const auto own = make_records(ideal_law(), {.sizes = {2}, .backend = kBackends[i]}, noise,
                                  10 * seed + static_cast<std::uint32_t>(i));
    records.insert(records.end(), own.begin(), own.end());
  }
  return make_studies(make_content(records)).at(0);
}

TEST(LaboratoryBest, OfEqualPointsNoneIsTheFastest) {
  for (const auto& [name, noise] : std::vector<std::pair<std::string, Noise>>{
           {"normal", {.run = 0.02}}, {"t3", {.run = 0.02, .tails = Tails::student3}}}) {
    Rate claims;
    for (int i = 0; i < studies(300); ++i) {
      const Study study = several_backends(noise, 5, static_cast<std::uint32_t>(i));
      claims.add(find_best(study, 0.05).alike.size() < 4);
    }
    EXPECT_TRUE(at_most(claims, 0.05, "one of 5 equal points is slower than the best: " + name));
  }
}

// One run of 2 replicas takes 20 times as long. The others tell all the same that 8 are faster.
TEST(LaboratoryBest, OneOutlierHidesNothing) {
  Noise noise{.run = 0.01};
  noise.event = [](const Place& place) {
    return place.replicas == 2 && place.round == 3 ? 20.0 : 1.0;
  };
  Rate hidden, bounds;
  for (int i = 0; i < studies(100); ++i) {
    const Page page =
        read_page(make_content(ideal_law(), {}, noise, 500U + static_cast<std::uint32_t>(i)));
    hidden.add(page.best.empty() ||
               page.best.front().find("cannot be distinguished") != std::string::npos);
    bounds.add(page.says("may hide up to .*/ [1-9][0-9]\\.[0-9].* points of efficiency"));
  }
  EXPECT_TRUE(at_most(hidden, 0.05,
                      "a point of four times the time cannot be distinguished from the best"));
  EXPECT_TRUE(at_most(bounds, 0.05, "the bound of the point with an outlier is another's, too"));
}

// Only one run of 4 replicas has a meter: that point is faster and takes less, but is not compared.
TEST(LaboratoryBest, APointWithoutAMeterIsNotForgotten) {
  std::vector<Json> records = make_records(ideal_law(), {.sizes = {1, 2, 4}}, {.run = 0.002}, 900);
  for (Json& record : records) {
    const int replicas = record["layout"]["gpus"];
    if (replicas == 4 && record["round"] != 1) continue;
    const double seconds = record["timing"]["fit_seconds"];
    record["energy"] = {{"covers", "CPUs"},       {"shared", false},
                        {"seconds", seconds},     {"joules", seconds * 100 * replicas},
                        {"evaluation_joules", 1}, {"checkpoint_joules", 0},
                        {"idle_watts", 40}};
  }
  const Study study = make_studies(make_content(records)).at(0);
  const auto energy = std::ranges::find(expenses(), "energy", &CostMetric::name);
  const Document document = best_document(study, find_best(study, 0.05, &*energy));
  const std::string& answer = document.sections.front().findings.front().text;
  EXPECT_FALSE(answer.starts_with("fastest: ")) << answer;  // a dominated point is not the fastest
  EXPECT_NE(answer.find("4 replicas"), std::string::npos) << answer;
}

}  // namespace
}  // namespace paceline::laboratory
