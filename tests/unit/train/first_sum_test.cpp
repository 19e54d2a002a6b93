#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "engine/train/replica_check.h"
#include "tests/support/communicators.h"
#include "tests/support/expect_error.h"

namespace paceline {
namespace {

class World final : public IdleCommunicator {
 public:
  using IdleCommunicator::IdleCommunicator;
  void abort(std::string_view why) noexcept override {
    why_ = why;
    aborted_ = true;
  }

  void wait_for_abort() const {
    while (!aborted_) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    throw Error(ErrorKind::peer_lost, why_);
  }

  bool aborted() const { return aborted_; }

 private:
  std::string why_;
  std::atomic<bool> aborted_{false};
};

TEST(FirstSum, ThatEndsIsNoMatter) {
  World world(2);
  bool summed = false;
  check_first_sum(world, 60, 4, [&] { summed = true; });
  EXPECT_TRUE(summed);
  EXPECT_FALSE(world.aborted());
}

TEST(FirstSum, AReplicaByItselfSumsNothing) {
  World world(1);
  check_first_sum(world, 60, 4, [] { FAIL() << "summed"; });
}

TEST(FirstSum, ThatDoesNotEndIsAborted) {
  World world(4);
  expect_error(ErrorKind::stall,
               {"a first sum of 1.2 MB over 4 ranks did not end within 0.02 s", "another backend"},
               [&] { check_first_sum(world, 0.02, 1'200'000, [&] { world.wait_for_abort(); }); });
}

TEST(FirstSum, AnErrorOfItsOwnStaysWhatItIs) {
  World world(2);
  const auto lose = [] { throw Error(ErrorKind::peer_lost, "rank 1 is gone"); };
  expect_error(ErrorKind::peer_lost, {}, [&] { check_first_sum(world, 60, 4, lose); });
}

}  // namespace
}  // namespace paceline
