// Runs the tests of the files that are named, or all: `test_unit_results record store`. Ends with
// 77 if it skipped all that it was to run.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace {

constexpr int kSkipped = 77;  // SKIP_RETURN_CODE of cmake/PacelineTargets.cmake

// What gtest's filter calls the tests of `noun`_test.cpp; empty if there are none.
std::string list_tests(const std::string& noun) {
  const std::string file = "/" + noun + "_test.cpp";
  std::string filter;
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  for (int i = 0; i < all.total_test_suite_count(); ++i) {
    const testing::TestSuite& suite = *all.GetTestSuite(i);
    for (int j = 0; j < suite.total_test_count(); ++j) {
      const testing::TestInfo& test = *suite.GetTestInfo(j);
      if (!("/" + std::string(test.file())).ends_with(file)) continue;
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
    const std::string tests = list_tests(words[i]);
    if (tests.empty()) {
      fmt::print(stderr, "{}: no tests of {}_test.cpp are in this program\n", words[0], words[i]);
      return 64;
    }
    filter += tests;
  }
  if (!filter.empty()) GTEST_FLAG_SET(filter, filter);
  const int failed = RUN_ALL_TESTS();
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  if (all.test_to_run_count() == 0 && std::getenv("GTEST_TOTAL_SHARDS") == nullptr) {
    fmt::print(stderr, "{}: no test has a name of {}\n", words[0], GTEST_FLAG_GET(filter));
    return 64;
  }
  const int skipped = all.skipped_test_count();
  return failed == 0 && skipped > 0 && skipped == all.test_to_run_count() ? kSkipped : failed;
}
