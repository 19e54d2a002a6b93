#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "engine/core/error.h"
#include "engine/train/replica_check.h"

namespace paceline {
namespace {

class World final : public Communicator {
 public:
  explicit World(int size) : size_(size) {}
  int rank() const override { return 0; }
  int size() const override { return size_; }
  Memory allocate(std::size_t) override { return {}; }
  void all_reduce(void*, std::size_t, DType, Lane&, std::string_view) override {}
  void broadcast(void*, std::size_t, int) override {}
  void all_gather(const void*, std::size_t, void*) override {}
  void barrier() override {}
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
  int size_;
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
  try {
    check_first_sum(world, 0.02, 1'200'000, [&] { world.wait_for_abort(); });
    FAIL() << "it ended";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::stall);
    const std::string line = error.what();
    EXPECT_NE(line.find("a first sum of 1.2 MB over 4 ranks did not end within 0.02 s"),
              std::string::npos)
        << line;
    EXPECT_NE(line.find("another backend"), std::string::npos) << line;
  }
}

TEST(FirstSum, AnErrorOfItsOwnStaysWhatItIs) {
  World world(2);
  try {
    check_first_sum(world, 60, 4, [] { throw Error(ErrorKind::peer_lost, "rank 1 is gone"); });
    FAIL() << "it ended";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::peer_lost);
  }
}

}  // namespace
}  // namespace paceline
