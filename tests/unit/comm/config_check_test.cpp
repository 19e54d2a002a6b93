#include "engine/comm/checks/config_check.h"

#include <gtest/gtest.h>

#include <thread>

#include "engine/comm/algorithms/threads.h"
#include "engine/core/error.h"

namespace paceline {
namespace {

using Rows = std::vector<ConfigRow>;

TEST(Agreement, RanksAreWrittenAsRanges) {
  EXPECT_EQ(ranks_text({3}), "rank 3");
  EXPECT_EQ(ranks_text({0, 1, 2, 5}), "ranks 0-2, 5");
  EXPECT_EQ(ranks_text({0, 2, 4, 5}), "ranks 0, 2, 4-5");
}

TEST(Agreement, OnlyRowsThatDifferAreListed) {
  const Rows most{{"build", "0.1.0"}, {"learning_rate", "0.001"}, {"plan", "3f2a"}};
  const Rows other{{"build", "0.1.0"}, {"learning_rate", "0.01"}, {"plan", "91bc"}};
  EXPECT_EQ(differences({most, most, most, other}),
            "learning_rate: ranks 0-2 0.001, rank 3 0.01; plan: ranks 0-2 3f2a, rank 3 91bc");
  EXPECT_EQ(differences({most, most}), "");
}

TEST(Agreement, ARowThatARankLacksIsNamed) {
  EXPECT_EQ(differences({{{"seed", "1"}}, {{"seed", "1"}, {"momentum", "0.9"}}}),
            "momentum: rank 0 not there, rank 1 0.9");
  EXPECT_EQ(differences({{{"weights file", ""}}, {{"weights file", "3f2a"}}}),
            "weights file: rank 0 none, rank 1 3f2a");
}

TEST(Agreement, LongValuesAreHashedAndRowsCounted) {
  const std::string text = differences({{{"flags", std::string(200, 'a')}}, {{"flags", "-O2"}}});
  EXPECT_EQ(text, "flags: rank 0 " + text.substr(14, 16) + ", rank 1 -O2");
  Rows a, b;
  for (int i = 0; i < 11; ++i) {
    a.push_back({"row" + std::to_string(i), "a"});
    b.push_back({"row" + std::to_string(i), "b"});
  }
  EXPECT_TRUE(differences({a, b}).ends_with("row7: rank 0 a, rank 1 b; and 3 more"));
}

// Every rank throws the same, so that none is left waiting.
TEST(Agreement, AllRanksHearOfTheDifference) {
  Membership membership;
  membership.replicas_here = 3;
  const auto communicators = connect_threads<ThreadCommunicator>(membership);
  std::vector<std::string> heard(3);
  const auto check = [&](std::size_t rank, const Rows& rows) {
    try {
      check_same_config(*communicators[rank], rows);
    } catch (const Error& error) {
      heard[rank] = error.what();
      EXPECT_EQ(error.kind(), ErrorKind::mismatch);
    }
  };
  const auto all_check = [&](const Rows& of_last) {
    std::vector<std::thread> threads;
    for (std::size_t rank = 0; rank < 3; ++rank) {
      threads.emplace_back([&, rank] { check(rank, rank == 2 ? of_last : Rows{{"seed", "1"}}); });
    }
    for (std::thread& thread : threads) thread.join();
  };
  all_check({{"seed", "1"}});
  EXPECT_EQ(heard, std::vector<std::string>(3));
  all_check({{"seed", "1234567"}});
  for (const std::string& line : heard) {
    EXPECT_EQ(line,
              "ranks have different configurations: seed: ranks 0-1 1, rank 2 1234567; start all "
              "ranks with "
              "the same program, command and data");
  }
}

}  // namespace
}  // namespace paceline
