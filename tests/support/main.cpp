// Runs the tests of the files that are named, or all: `test_unit_results record store`.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

namespace {

// What gtest's filter calls the tests of `noun`_test.cpp; empty if there are none.
std::string tests_of(const std::string& noun) {
  std::string filter;
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  for (int i = 0; i < all.total_test_suite_count(); ++i) {
    const testing::TestSuite& suite = *all.GetTestSuite(i);
    for (int j = 0; j < suite.total_test_count(); ++j) {
      const testing::TestInfo& test = *suite.GetTestInfo(j);
      if (std::filesystem::path(test.file()).filename() != noun + "_test.cpp") continue;
      filter += fmt::format("{}.{}:", suite.name(), test.name());
    }
  }
  return filter;
}

}  // namespace

int main(int count, char** words) {
  testing::InitGoogleTest(&count, words);
  std::string filter;
  for (int i = 1; i < count; ++i) {
    const std::string tests = tests_of(words[i]);
    if (tests.empty()) {
      fmt::print(stderr, "{}: no tests of {}_test.cpp are in this program\n", words[0], words[i]);
      return 64;
    }
    filter += tests;
  }
  if (!filter.empty()) GTEST_FLAG_SET(filter, filter);
  return RUN_ALL_TESTS();
}
