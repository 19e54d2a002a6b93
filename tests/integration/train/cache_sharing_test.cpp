// Two processes of a node and their cache: here two threads, each with its own data and
// communicator.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>

#include <algorithm>
#include <exception>
#include <functional>
#include <thread>

#include "engine/comm/algorithms/node_communicator.h"
#include "engine/comm/backend.h"
#include "engine/core/error.h"
#include "engine/train/session.h"
#include "tests/support/communicators.h"
#include "tests/support/expect_error.h"
#include "tests/support/scratch.h"
#include "tests/support/why_not.h"
#include "tests/unit/input/made.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kTasks = 2;
constexpr std::size_t kFewImages = 10, kImageBytes = 8 * 9 * 3;

// Calls `between(n)` after this rank's n-th exchange with the others.
class Watched final : public ForwardingCommunicator {
 public:
  using Between = std::function<void(int exchanges)>;
  Watched(Communicator& inner, Between between)
      : ForwardingCommunicator(inner), between_(std::move(between)) {}
  void all_gather(const void* mine, std::size_t bytes, void* all) override {
    ForwardingCommunicator::all_gather(mine, bytes, all);
    ++exchanges_;
    if (between_) between_(exchanges_);
  }

 private:
  Between between_;
  int exchanges_ = 0;
};

class CacheSharingTest : public ::testing::Test {
 protected:
  CacheSharingTest() {
    for (std::size_t i = 0; i < kFewImages; ++i) {
      write_file(scratch_ / (i % 2 ? "cat" : "dog") / (std::to_string(i) + ".jpg"),
                 make_jpeg(20, 20, static_cast<int>(i)));
    }
    options_.cache = CacheKind::decoded;
    options_.cache_bytes = kFewImages * kImageBytes;
    options_.tasks_of_node = kTasks;
  }

  struct Task {
    DatasetPair data;
    CacheSharing sharing;
    ImageStore::Worker worker;
    std::exception_ptr error;

    void fetch(std::size_t first, std::size_t count) {
      std::vector<std::uint8_t> out(kImageBytes);
      for (std::size_t i = first; i < first + count; ++i) {
        data.train.store->fetch(i, out.data(), worker);
      }
    }
  };

  std::vector<Task> share(const Watched::Between& between = nullptr,
                          const std::function<void(Communicator&)>& before = nullptr) {
    const auto& table = backend_table();
    const auto row = std::ranges::find_if(
        table, [](const auto& candidate) { return candidate.name == std::string("mirrored"); });
    backend_ = row->make();
    Membership membership;
    membership.replicas_here = kTasks;
    const auto communicators = backend_->connect(membership);
    std::vector<Task> tasks(kTasks);
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < kTasks; ++t) {
      tasks[t].data =
          load_images(open_image_set(scratch_.path()), "train", "test", {8, 9, 3}, options_);
      threads.emplace_back([&, t] {
        Watched communicator(*communicators[t], t == 1 ? between : nullptr);
        try {
          if (before) before(communicator);
          tasks[t].sharing = share_cache(communicator, &tasks[t].data, options_, 1);
        } catch (...) {
          tasks[t].error = std::current_exception();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const Task& task : tasks) {
      if (task.error) std::rethrow_exception(task.error);
    }
    return tasks;
  }

  Scratch scratch_;
  InputOptions options_;
  std::unique_ptr<Backend> backend_;
};

TEST_F(CacheSharingTest, OneDecodesAndTheOtherFindsIt) {
  std::vector<Task> tasks = share();
  tasks[0].fetch(0, 4);
  tasks[1].fetch(0, 8);
  tasks[0].fetch(4, 4);
  EXPECT_EQ(tasks[0].worker.counts.decoded, 4U);
  EXPECT_EQ(tasks[1].worker.counts.decoded, 4U);
  EXPECT_EQ(tasks[0].worker.counts.from_cache, 4U);
  for (const Task& task : tasks) {
    EXPECT_EQ(task.sharing.ranks, 2);
    EXPECT_EQ(task.sharing.bytes, options_.cache_bytes);
    EXPECT_EQ(task.sharing.refusal, "");
    EXPECT_EQ(task.data.train.store->cached_bytes_in_memory(), 8 * kImageBytes);
  }
  EXPECT_TRUE(tasks[0].sharing.speaks);
  EXPECT_FALSE(tasks[1].sharing.speaks);
}

// In namespaces of its own, rank 1 is on the node of rank 0 if it shares memory with it, whatever
// its host is called; communicator and cache agree.
TEST_F(CacheSharingTest, ANodeIsWhereMemoryIsShared) {
  const std::string refused =
      why_not("unshare -mu sh -c 'hostname b && mount -t tmpfs b /dev/shm'");
  if (!refused.empty()) GTEST_SKIP() << "no right to make namespaces: " << refused;
  const auto ranks_of_node = [&](const std::function<bool()>& separate) {
    std::size_t nodes = 0;
    const std::vector<Task> tasks = share({}, [&](Communicator& communicator) {
      if (communicator.rank() == 1) {
        EXPECT_TRUE(separate());
      }
      const NodeGroups groups = find_nodes(communicator);
      if (communicator.rank() == 1) nodes = groups.nodes();
    });
    EXPECT_EQ(tasks[1].sharing.refusal, "");
    EXPECT_EQ(tasks[1].sharing.ranks * static_cast<int>(nodes), 2);
    return tasks[1].sharing.ranks;
  };
  EXPECT_EQ(
      ranks_of_node([] { return unshare(CLONE_NEWUTS) == 0 && sethostname("elsewhere", 9) == 0; }),
      2);
  EXPECT_EQ(ranks_of_node([] {
              return unshare(CLONE_NEWNS) == 0 &&
                     mount("", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                     mount("none", "/dev/shm", "tmpfs", 0, nullptr) == 0;
            }),
            1);
}

// Rank 1 may open no file when rank 0 has told where the cache is.
TEST_F(CacheSharingTest, WhereOneCannotOpenItAllKeepTheirPart) {
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  std::vector<Task> tasks = share([&](int exchanges) {
    const rlimit none{0, limit.rlim_max};
    setrlimit(RLIMIT_NOFILE, exchanges == 2 ? &none : &limit);
  });
  for (Task& task : tasks) {
    EXPECT_EQ(task.sharing.bytes, options_.cache_bytes / 2);
    EXPECT_TRUE(task.sharing.speaks);
  }
  EXPECT_EQ(tasks[0].sharing.ranks, 1);
  expect_parts(tasks[0].sharing.refusal, {"rank 1: the cache of process"});
  tasks[0].fetch(0, 8);
  tasks[1].fetch(0, 8);
  EXPECT_EQ(tasks[1].worker.counts.decoded, 8U);
  EXPECT_EQ(tasks[0].data.train.store->cached_bytes_in_memory(), 5 * kImageBytes);
  tasks[1].fetch(0, 8);
  EXPECT_EQ(tasks[1].worker.counts.from_cache, 5U);
}

TEST_F(CacheSharingTest, ABadFolderIsReportedAsAlways) {
  options_.cache_folder = scratch_ / "no-such";
  expect_error(ErrorKind::input, {"no-such", "--cache-dir"}, [&] { share(); });
}

}  // namespace
}  // namespace paceline
