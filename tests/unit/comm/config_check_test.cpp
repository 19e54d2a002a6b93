#include "engine/comm/checks/config_check.h"

#include <gtest/gtest.h>

#include "tests/support/communicators.h"
#include "tests/support/expect_error.h"

namespace paceline {
namespace {

using Rows = std::vector<ConfigRow>;

std::string differences_of_ranks(const std::vector<Rows>& of_ranks) {
  std::vector<ConfigGroup> groups;
  for (std::size_t r = 0; r < of_ranks.size(); ++r) {
    groups.push_back({{static_cast<int>(r)}, of_ranks[r]});
  }
  return differences(groups);
}

TEST(Agreement, RanksAreWrittenAsRanges) {
  EXPECT_EQ(rank_ranges({3}), "rank 3");
  EXPECT_EQ(rank_ranges({0, 1, 2, 5}), "ranks 0-2, 5");
  EXPECT_EQ(rank_ranges({0, 2, 4, 5}), "ranks 0, 2, 4-5");
}

TEST(Agreement, OnlyRowsThatDifferAreListed) {
  const Rows most{{"build", "0.1.0"}, {"learning_rate", "0.001"}, {"plan", "3f2a"}};
  const Rows other{{"build", "0.1.0"}, {"learning_rate", "0.01"}, {"plan", "91bc"}};
  EXPECT_EQ(differences_of_ranks({most, most, most, other}),
            "learning_rate: ranks 0-2 0.001, rank 3 0.01; plan: ranks 0-2 3f2a, rank 3 91bc");
  EXPECT_EQ(differences_of_ranks({most, most}), "");
}

TEST(Agreement, ARowThatARankLacksIsNamed) {
  EXPECT_EQ(differences_of_ranks({{{"seed", "1"}}, {{"seed", "1"}, {"momentum", "0.9"}}}),
            "momentum: rank 0 not there, rank 1 0.9");
  EXPECT_EQ(differences_of_ranks({{{"weights file", ""}}, {{"weights file", "3f2a"}}}),
            "weights file: rank 0 none, rank 1 3f2a");
}

TEST(Agreement, LongValuesAreHashedAndRowsCounted) {
  const std::string text =
      differences_of_ranks({{{"flags", std::string(200, 'a')}}, {{"flags", "-O2"}}});
  EXPECT_EQ(text, "flags: rank 0 " + text.substr(14, 16) + ", rank 1 -O2");
  Rows a, b;
  for (int i = 0; i < 11; ++i) {
    a.push_back({"row" + std::to_string(i), "a"});
    b.push_back({"row" + std::to_string(i), "b"});
  }
  EXPECT_TRUE(differences_of_ranks({a, b}).ends_with("row7: rank 0 a, rank 1 b; and 3 more"));
}

TEST(GatherTexts, OfUnlikeLengthsInRankOrder) {
  const std::vector<std::string> texts = {"a", "", std::string(1000, 'c')};
  on_replicas(3, [&](Communicator& all) {
    EXPECT_EQ(gather_texts(all, texts[static_cast<std::size_t>(all.rank())]), texts);
  });
}

// What each of `of_ranks` hears of a check in which it has these rows.
std::vector<std::string> check_all(const std::vector<Rows>& of_ranks) {
  std::vector<std::string> heard(of_ranks.size());
  on_replicas(static_cast<int>(of_ranks.size()), [&](Communicator& all) {
    const auto rank = static_cast<std::size_t>(all.rank());
    heard[rank] = catch_error(ErrorKind::mismatch, [&] { check_same_config(all, of_ranks[rank]); });
  });
  return heard;
}

// Every rank throws the same, so that none is left waiting.
TEST(Agreement, AllRanksReceiveTheDifference) {
  const Rows same{{"seed", "1"}};
  EXPECT_EQ(check_all({same, same, same}), std::vector<std::string>(3));
  for (const std::string& line : check_all({same, same, {{"seed", "1234567"}}})) {
    EXPECT_EQ(line,
              "ranks have different configurations: seed: ranks 0-1 1, rank 2 1234567; start all "
              "ranks with "
              "the same program, command and data");
  }
}

// A line of as many values as ranks would help nobody.
TEST(Agreement, OfManyGroupsTheLargestAreShown) {
  std::vector<Rows> of_ranks;
  for (int rank = 0; rank < 12; ++rank)
    of_ranks.push_back({{"host", std::to_string(rank / 2 * 2)}});
  for (int rank = 0; rank < 5; ++rank)
    of_ranks.push_back({{"host", "alone " + std::to_string(rank)}});
  for (const std::string& line : check_all(of_ranks)) {
    EXPECT_EQ(line,
              "ranks have different configurations: host: ranks 0-1 0, ranks 2-3 2, ranks 4-5 4, "
              "ranks 6-7 "
              "6, ranks 8-9 8, ranks 10-11 10, rank 12 alone 0, rank 13 alone 1; and 3 more groups "
              "of ranks that differ; start all ranks with the same program, command and data");
  }
}

}  // namespace
}  // namespace paceline
