#include <gtest/gtest.h>

#include <filesystem>
#include <numeric>

#include "run/bench.h"
#include "tests/support/expect_error.h"
#include "tests/support/scratch.h"

namespace paceline {
namespace {

std::vector<std::size_t> counts(const CollectiveBenchOptions& options) {
  std::vector<std::size_t> counts;
  for (const BenchSize& size : list_sizes(options)) counts.push_back(size.count);
  return counts;
}

TEST(CollectiveBench, SizesAreThoseOfARangeOrAList) {
  using Counts = std::vector<std::size_t>;
  EXPECT_EQ(counts({.least = "4", .most = "64"}), (Counts{1, 4, 16}));
  EXPECT_EQ(counts({.least = "1K", .most = "4K", .step_factor = 2}), (Counts{256, 512, 1024}));
  EXPECT_EQ(counts({.least = "16", .most = "16", .dtype = "bf16"}), (Counts{8}));
  EXPECT_EQ(counts({.sizes = "1M,3,2G", .dtype = "f64"}),
            (Counts{std::size_t{1} << 17, 1, std::size_t{1} << 28}))
      << "at least one element";
}

TEST(CollectiveBench, SizesOfAWorkloadAreItsBucketsAndTheirSum) {
  const std::vector<BenchSize> sizes = list_sizes({.like = "mnist-cnn", .bucket_mb = 0.5});
  ASSERT_GT(sizes.size(), 2U);
  EXPECT_EQ(sizes.back().label, "all at once");
  const auto sum =
      std::accumulate(sizes.begin(), sizes.end() - 1, std::size_t{0},
                      [](std::size_t total, const BenchSize& size) { return total + size.count; });
  EXPECT_EQ(sizes.back().count, sum);
  EXPECT_EQ(list_sizes({.like = "mnist-mlp", .bucket_mb = 1e6, .last_bucket_mb = 1e6}).size(), 1U);
}

TEST(CollectiveBench, ImpossibleRequestsNameTheirOption) {
  struct Row {
    CollectiveBenchOptions options;
    std::vector<std::string> parts;
  };
  for (const Row& row :
       {Row{{.sizes = "4K,no"}, {"--sizes", "\"no\" is not a size", "64K"}},
        Row{{.sizes = "K"}, {"--sizes", "\"K\" is not a size"}},
        Row{{.most = "0"}, {"--max-bytes", "\"0\" is not a size"}},
        Row{{.least = "-4"}, {"--min-bytes", "\"-4\" is not a size"}},
        Row{{.sizes = "2000000G"}, {"2000000G is more than any memory", "smaller"}},
        Row{{.least = "1M", .most = "1K"}, {"--min-bytes 1M is above --max-bytes 1K"}},
        Row{{.dtype = "f23"}, {"--dtype", "\"f23\" cannot be summed", "\"f32\"?"}},
        Row{{.step_factor = 1}, {"--step-factor", "1 is less than 2", "give 2 to 1024"}},
        Row{{.iterations = 100001}, {"--iterations", "100001 is more than 100000"}},
        Row{{.warmup = -1}, {"--warmup", "-1 is less than 0"}},
        Row{{.rounds = 0}, {"--rounds", "0 is less than 1", "give 1 to 1000"}},
        Row{{.backends = "null"}, {"backend null does not reduce"}},
        Row{{.backends = "ring,nul"}, {"\"nul\"", "\"null\"?"}},
        Row{{}, {"more than one replica", "--gpus 2"}},
        Row{{.backends = "mirrored", .gpus = "2", .sizes = "1024G", .oversubscribe = true},
            {"of memory per node", "measure smaller sizes"}}}) {
    expect_error(ErrorKind::usage, row.parts, [&] { bench_collective(row.options, {}); });
  }
}

TEST(CollectiveBench, OneReplicaIsMeasuredAndRecorded) {
  const Scratch scratch;
  const std::string file = (scratch / "a.json").string();
  const CollectiveBenchOptions options{.backends = "self",
                                       .gpus = "1",
                                       .sizes = "4K",
                                       .record = file,
                                       .seconds = 0.01,
                                       .iterations = 2,
                                       .rounds = 2,
                                       .quiet = true};
  const CollectiveBench bench = bench_collective(options, {"paceline"});
  EXPECT_EQ(bench.exit_code, 0);
  EXPECT_FALSE(bench.is_comparison);
  ASSERT_EQ(bench.records.size(), 1U);
  ASSERT_EQ(bench.records.front().collective->rows.size(), 1U);
  EXPECT_EQ(bench.records.front().collective->rows.front().bytes, 4096);
  EXPECT_EQ(bench.records.front().collective->rounds, 2);
  EXPECT_TRUE(std::filesystem::exists(file));
  expect_error(ErrorKind::input, {file, "exists"},
               [&] { bench_collective(options, {"paceline"}); });
}

}  // namespace
}  // namespace paceline
