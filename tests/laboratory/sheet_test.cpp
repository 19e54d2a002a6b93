// The size to apply for, where the law says what each size's efficiency is.
#include "analysis/table/sheet.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/laboratory/rate.h"
#include "tests/laboratory/records.h"

namespace paceline::laboratory {
namespace {

constexpr double kLeast = 0.7;

int choose(const Law& law, const Noise& noise, int runs, std::uint32_t seed) {
  const Study study =
      make_studies(make_content(law, {.sizes = {1, 2, 4, 8, 16}, .runs = runs}, noise, seed)).at(0);
  const Json sheet = Json::parse(to_json_text(sheet_document(study, Base::matched, kLeast)));
  return sheet["chosen"].is_null() ? 1 : sheet["chosen"]["gpus"].get<int>();
}

TEST(LaboratorySheet, TheChosenSizeIsEfficientAndNoneIsForgotten) {
  std::uint32_t seed = 1;
  for (const char* name : {"communication grows with replicas", "communication is constant",
                           "input for three replicas", "knee at a node", "hyper-threads"}) {
    const Law law = step_law(name).law(Scaling::fixed_epochs);
    int largest = 1;  // that is efficient by more than the noise
    for (const int size : {2, 4, 8, 16}) {
      if (law.efficiency(size) > kLeast + 0.03) largest = size;
    }
    for (const int runs : {3, 5}) {
      Rate wrong, found;
      for (int i = 0; i < studies(200); ++i) {
        const int chosen = choose(law, {.run = 0.01, .round = 0.02}, runs, ++seed);
        wrong.add(law.efficiency(chosen) < kLeast);
        found.add(chosen >= largest);
      }
      const std::string what = fmt::format("{}, {} runs: ", name, runs);
      EXPECT_TRUE(at_most(wrong, 0.05, what + "the size to apply for is below 70 %"));
      EXPECT_TRUE(at_least(found, 0.9, what + fmt::format("{} replicas are named", largest)));
    }
  }
}

}  // namespace
}  // namespace paceline::laboratory
