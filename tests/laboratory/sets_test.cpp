// What is said of the made data sets, and what not.
#include "tests/laboratory/sets.h"

#include <gtest/gtest.h>

#include "tests/laboratory/page.h"
#include "tests/laboratory/rate.h"
#include "tests/laboratory/records.h"

namespace paceline::laboratory {
namespace {

TEST(LaboratorySets, AreSixtyThree) {
  EXPECT_EQ(named_sets().size(), 63U);
}

class Sets : public ::testing::TestWithParam<std::size_t> {};

// Noise may bring a false sentence in one of twenty sets, and hide a true one in one of ten.
TEST_P(Sets, ReportWhatIsTrueAndNothingElse) {
  const NamedSet& set = named_sets()[GetParam()];
  std::vector<Rate> must(set.must.size()), never(set.never.size());
  std::string example;
  for (int i = 0; i < studies(60); ++i) {
    const Page page = read_page(make_content(set.records(static_cast<std::uint32_t>(1 + i))));
    if (i == 0) example = page.text();
    for (std::size_t k = 0; k < must.size(); ++k) must[k].add(page.says(set.must[k]));
    const bool states = !set.unless.empty() && page.says(set.unless);
    for (std::size_t k = 0; k < never.size(); ++k) never[k].add(page.says(set.never[k]) && !states);
  }
  for (std::size_t k = 0; k < must.size(); ++k) {
    EXPECT_TRUE(at_least(must[k], 0.9, set.name + " must: " + set.must[k])) << set.truth << '\n'
                                                                            << example;
  }
  for (std::size_t k = 0; k < never.size(); ++k) {
    EXPECT_TRUE(at_most(never[k], 0.05, set.name + " never: " + set.never[k])) << set.truth << '\n'
                                                                               << example;
  }
}

INSTANTIATE_TEST_SUITE_P(Laboratory, Sets, ::testing::Range<std::size_t>(0, 63));

}  // namespace
}  // namespace paceline::laboratory
