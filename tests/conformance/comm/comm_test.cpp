// Every backend that runs within one process, with 1 to 4 replicas as threads. stacks_test.cpp has
// those between processes.
#include <gtest/gtest.h>

#include <array>
#include <atomic>

#include "engine/comm/backend.h"
#include "results/names.h"
#include "tests/support/expect_error.h"
#include "tests/support/on_threads.h"

namespace paceline {
namespace {

struct Case {
  std::string backend;
  int ranks;
};

void PrintTo(const Case& one, std::ostream* out) {
  *out << one.backend << " with " << one.ranks;
}

std::unique_ptr<Backend> make_backend(const std::string& name) {
  for (const auto& row : backend_table()) {
    if (name == row.name) return row.make();
  }
  throw std::runtime_error("no backend " + name);
}

Membership membership(int ranks, double abort_seconds = 20) {
  Membership membership;
  membership.replicas_here = ranks;
  membership.deadlines.abort_seconds = abort_seconds;
  return membership;
}

std::vector<Case> cases() {
  std::vector<Case> cases;
  for (const auto& row : backend_table()) {
    if (find_name("backend", row.name).mpirun) continue;
    for (int ranks = 1; ranks <= 4; ++ranks) {
      if (row.make()->serves(membership(ranks))) cases.push_back({row.name, ranks});
    }
  }
  return cases;
}

class Comm : public testing::TestWithParam<Case> {
 protected:
  // Runs `body` on a thread for each rank; errors of a rank are the test's.
  void on_every_rank(const std::function<void(Communicator&)>& body) {
    const auto backend = make_backend(GetParam().backend);
    const auto communicators = backend->connect(membership(GetParam().ranks));
    ASSERT_EQ(communicators.size(), static_cast<std::size_t>(GetParam().ranks));
    on_threads(communicators.size(), [&](std::size_t i) {
      try {
        body(*communicators[i]);
      } catch (const std::exception& error) {
        ADD_FAILURE() << error.what();
        communicators[i]->abort(error.what());
      }
    });
  }
  bool reduces() const { return !find_name("backend", GetParam().backend).drifts; }
};

// Values whose sum depends on the order in fp: rank order is checked bit for bit.
template <typename T>
T environment_value(int rank, std::size_t i) {
  return static_cast<T>(1) / static_cast<T>(3 + 7 * rank + static_cast<int>(i % 1013));
}

template <typename T>
void check_all_reduce(Communicator& communicator, Lane& lane, DType type, std::size_t count,
                      bool reduces) {
  std::vector<T> data(count + 2, T{-7});  // a guard on each side
  for (std::size_t i = 0; i < count; ++i)
    data[i + 1] = environment_value<T>(communicator.rank(), i);
  communicator.all_reduce(data.data() + 1, count, type, lane, "test");
  lane.drain();
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < count; ++i) {
    T expected = environment_value<T>(reduces ? 0 : communicator.rank(), i);
    for (int r = 1; reduces && r < communicator.size(); ++r) expected += environment_value<T>(r, i);
    wrong += data[i + 1] != expected;
  }
  EXPECT_EQ(wrong, 0U) << count << " elements of " << to_string(type);
  EXPECT_EQ(data.front(), T{-7});
  EXPECT_EQ(data.back(), T{-7});
}

TEST_P(Comm, AllReduceSumsInRankOrderOnEveryRank) {
  on_every_rank([this](Communicator& communicator) {
    InlineLane here;
    ThreadLane there;
    for (const std::size_t count :
         {1UL, 2UL, 3UL, 15UL, 16UL, 17UL, 63UL, 1023UL, 1025UL, 65537UL, 1UL << 20}) {
      check_all_reduce<float>(communicator, here, DType::f32, count, reduces());
      check_all_reduce<double>(communicator, there, DType::f64, count, reduces());
    }
  });
}

TEST_P(Comm, BroadcastFromEveryRoot) {
  on_every_rank([](Communicator& communicator) {
    for (int root = 0; root < communicator.size(); ++root) {
      std::vector<int> data(1001, communicator.rank());
      communicator.broadcast(data.data(), data.size() * sizeof(int), root);
      EXPECT_EQ(data, std::vector<int>(1001, root));
    }
  });
}

TEST_P(Comm, AllGatherAndSumsInRankOrder) {
  on_every_rank([](Communicator& communicator) {
    const std::array<int, 2> mine = {communicator.rank(), 100 + communicator.rank()};
    std::vector<int> all(2 * static_cast<std::size_t>(communicator.size()), -1);
    communicator.all_gather(mine.data(), sizeof mine, all.data());
    double expected = 0;
    for (int r = 0; r < communicator.size(); ++r) {
      EXPECT_EQ(all[static_cast<std::size_t>(2 * r)], r);
      EXPECT_EQ(all[static_cast<std::size_t>(2 * r + 1)], 100 + r);
      expected += 1.0 / (r + 3);
    }
    double sum = 1.0 / (communicator.rank() + 3);
    sum_over_ranks(communicator, std::span(&sum, 1));
    EXPECT_DOUBLE_EQ(sum, expected);
  });
}

TEST_P(Comm, BarrierLetsNobodyPassEarly) {
  std::atomic<int> arrived{0};
  on_every_rank([&](Communicator& communicator) {
    for (int round = 1; round <= 50; ++round) {
      ++arrived;
      communicator.barrier();
      EXPECT_GE(arrived, round * communicator.size());
      communicator.barrier();
      EXPECT_LE(arrived, (round + 1) * communicator.size());
    }
  });
}

INSTANTIATE_TEST_SUITE_P(InProcess, Comm, testing::ValuesIn(cases()), [](const auto& info) {
  return info.param.backend + "_" + std::to_string(info.param.ranks);
});

TEST(CommTable, HoldsTheBackendsEveryBuildHas) {
  for (const char* name : {"self", "null", "mirrored", "ring"}) {
    EXPECT_EQ(make_backend(name)->name(), name);
    EXPECT_FALSE(make_backend(name)->description().empty());
  }
}

TEST(CommTable, OneProcessBackendsRefuseAWorldOfProcesses) {
  Membership two = membership(1);
  two.process.size = 2;
  for (const char* name : {"self", "null", "mirrored"}) {
    EXPECT_FALSE(make_backend(name)->serves(two)) << name;
  }
  EXPECT_FALSE(make_backend("self")->serves(membership(2)));
}

TEST(CommFailure, PastTheDeadlineTheMissingRankIsNamed) {
  const auto backend = make_backend("mirrored");
  const auto communicators = backend->connect(membership(3, 0.2));
  on_threads(2UL, [&](std::size_t rank) {  // rank 2 never comes
    std::vector<float> data(100);
    InlineLane lane;
    expect_error(ErrorKind::stall, {"rank 2 did not come", "bucket 3"}, [&] {
      communicators[rank]->all_reduce(data.data(), 100, DType::f32, lane, "bucket 3");
    });
  });
}

TEST(CommFailure, AnAbortReleasesWaitersWithPeerLost) {
  const auto backend = make_backend("mirrored");
  const auto communicators = backend->connect(membership(2));
  std::thread waiter([&] {
    expect_error(ErrorKind::peer_lost, {"rank 1 gave up"}, [&] { communicators[0]->barrier(); });
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  communicators[1]->abort("out of memory");
  waiter.join();
}

}  // namespace
}  // namespace paceline
