#include <gtest/gtest.h>

#include "engine/core/text.h"

namespace paceline {
namespace {

std::vector<int> count_to(int end, int step = 1) {
  std::vector<int> numbers;
  for (int i = 0; i < end; i += step) numbers.push_back(i);
  return numbers;
}

TEST(ListText, FewAreWrittenAsTheyAre) {
  EXPECT_EQ(numbers_text({3}), "3");
  EXPECT_EQ(numbers_text({0, 1, 2, 5}), "0, 1, 2, 5");
  EXPECT_EQ(names_text({"n1", "n2"}), "n1, n2");
}

TEST(ListText, ManyStayShort) {
  EXPECT_EQ(numbers_text(count_to(4096)), "0-4095");
  EXPECT_EQ(numbers_text(count_to(4096, 2)), "0, 2, 4, 6, 8, 10, 12, 14 and 2040 more");
  EXPECT_EQ(names_text(std::vector<std::string>(10, "n")), "n, n, n, n, n, n, n, n and 2 more");
}

TEST(ListText, AListNamesTheFirstAndCountsTheOthers) {
  EXPECT_EQ(join_first(3, {"a", "b", "c"}), "a, b, c");
  EXPECT_EQ(join_first(2, {"a", "b", "c"}), "a, b and 1 more");
  EXPECT_EQ(join_first(2, {"a", "b", "c", "d"}, "; "), "a; b; 2 more");
  EXPECT_EQ(join_first(2, {}), "");
}

TEST(ListText, NounsAgreeWithTheirNumber) {
  EXPECT_EQ(counted(1, "row"), "1 row");
  EXPECT_EQ(counted(0, "row"), "0 rows");
  EXPECT_EQ(counted(1'000'000, "row"), "1000000 rows");
  EXPECT_EQ(counted(2.5, "CPU"), "2.5 CPUs");
  EXPECT_EQ(ranks_text({3}), "rank 3");
  EXPECT_EQ(ranks_text({2, 3}), "ranks 2, 3");
}

}  // namespace
}  // namespace paceline
