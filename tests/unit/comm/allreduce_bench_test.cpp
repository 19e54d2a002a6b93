#include "engine/comm/allreduce_bench.h"

#include <gtest/gtest.h>

#include <mutex>

#include "tests/support/communicators.h"
#include "tests/support/expect_parts.h"

namespace paceline {
namespace {

// Turns one bit of one element of one rank over, behind the back of a right all-reduce.
class Corrupting final : public ForwardingCommunicator {
 public:
  Corrupting(Communicator& inner, int rank, std::size_t offset)
      : ForwardingCommunicator(inner), corrupt_rank_(rank), offset_(offset) {}

  void all_reduce(void* data, std::size_t count, DType type, Lane& lane,
                  std::string_view label) override {
    ForwardingCommunicator::all_reduce(data, count, type, lane, label);
    lane.drain();
    if (rank() == corrupt_rank_ && offset_ < count) static_cast<float*>(data)[offset_] += 0.5F;
  }

 private:
  int corrupt_rank_;
  std::size_t offset_;
};

BenchOptions short_options() {
  BenchOptions options;
  options.rounds = 2;
  options.iterations = 3;
  return options;
}

TEST(AllReduceBench, EveryRankHasTheSameRow) {
  std::mutex mutex;
  std::vector<BenchRow> rows;
  on_replicas(3, [&](Communicator& communicator) {
    AllReduceBench bench(communicator, 5000, short_options());
    const BenchRow row = bench.measure(5000);
    std::lock_guard lock(mutex);
    rows.push_back(row);
  });
  ASSERT_EQ(rows.size(), 3U);
  for (const BenchRow& row : rows) {
    EXPECT_EQ(row.count, 5000U);
    EXPECT_EQ(row.wrong, 0U) << row.first_wrong;
    EXPECT_GT(row.all_reduce.median, 0);
    EXPECT_LE(row.all_reduce.least, row.all_reduce.median);
    EXPECT_LE(row.all_reduce.median, row.all_reduce.p95);
    EXPECT_EQ(row.all_reduce.median, rows[0].all_reduce.median);
    ASSERT_TRUE(row.copy && row.reused);
    EXPECT_EQ(row.copy->median, rows[0].copy->median);
    EXPECT_EQ(row.reused->median, rows[0].reused->median);
  }
}

TEST(AllReduceBench, ACorruptedSumIsReportedWithRankAndOffset) {
  std::mutex mutex;
  on_replicas(2, [&](Communicator& communicator) {
    Corrupting corrupting(communicator, 1, 1234);
    AllReduceBench bench(corrupting, 4000, short_options());
    const BenchRow small = bench.measure(1000);
    const BenchRow row = bench.measure(4000);
    std::lock_guard lock(mutex);
    EXPECT_EQ(small.wrong, 0U);
    EXPECT_EQ(row.wrong, 1U);
    expect_parts(row.first_wrong, {"rank 1", "offset 1234"});
  });
}

// Keeps the addresses that are summed, and what they hold.
class Watching final : public ForwardingCommunicator {
 public:
  using ForwardingCommunicator::ForwardingCommunicator;
  void all_reduce(void* data, std::size_t count, DType, Lane&, std::string_view) override {
    auto* values = static_cast<float*>(data);
    written_anew += values[count / 2] == 0 ? 1 : 0;
    values[count / 2] = 1;  // as a sum would
    ++calls;
  }

  int calls = 0, written_anew = 0;
};

TEST(AllReduceBench, EveryCallSumsABufferThatWasWrittenAnew) {
  on_replicas(1, [](Communicator& communicator) {
    for (const bool baselines : {false, true}) {
      Watching watching(communicator);
      BenchOptions options;
      options.rounds = 3;
      options.iterations = 20;
      options.baselines = baselines;
      AllReduceBench bench(watching, 1 << 20, options);
      for (const std::size_t count : {1, 1000, 1 << 20}) {
        watching.calls = watching.written_anew = 0;
        bench.measure(count);
        ASSERT_GT(watching.calls, 20);
        if (baselines) {
          EXPECT_LT(watching.written_anew, watching.calls) << "reused buffers are not written";
        } else {
          EXPECT_GE(watching.written_anew, watching.calls - 1) << count;  // all but the check's
        }
      }
    }
  });
}

TEST(AllReduceBench, BaselinesCanBeLeftOut) {
  on_replicas(2, [&](Communicator& communicator) {
    BenchOptions options = short_options();
    options.baselines = false;
    options.type = DType::bf16;
    const BenchRow row = AllReduceBench(communicator, 100, options).measure(100);
    EXPECT_FALSE(row.copy || row.reused);
    EXPECT_EQ(row.wrong, 0U) << row.first_wrong;
  });
}

}  // namespace
}  // namespace paceline
