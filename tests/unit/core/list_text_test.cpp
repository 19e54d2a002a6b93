#include <gtest/gtest.h>

#include <numeric>

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

}  // namespace
}  // namespace paceline
