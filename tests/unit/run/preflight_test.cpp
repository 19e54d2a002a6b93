#include <gtest/gtest.h>

#include "run/resolve.h"
#include "tests/support/expect_error.h"

namespace paceline {
namespace {

RankCard card(const char* host, const char* cpus) {
  return {host, cpus};
}

TEST(Preflight, RanksCompareWhatIsMeasured) {
  Point p;
  p.set("epochs", std::int64_t{3});
  p.set("weights", std::string("/here/w.h5"));
  p.set("log_every", std::int64_t{2});
  const auto rows = make_rows(p);
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].name, "epochs");
}

TEST(Preflight, ReplicasThatShareACpuAreRefusedUnlessAllowed) {
  const std::vector<RankCard> apart = {card("a", "0-1"), card("a", "2"), card("b", "0-1")};
  EXPECT_FALSE(check_rank_cards(apart, false));
  const std::vector<RankCard> shared = {card("a", "0-1"), card("a", "1-2")};
  EXPECT_TRUE(check_rank_cards(shared, true));
  expect_error(ErrorKind::usage, {"replicas 0 and 1 would share CPUs", "of a"},
               [&] { check_rank_cards(shared, false); });
}

}  // namespace
}  // namespace paceline
