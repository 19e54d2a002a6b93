#include "engine/comm/allreduce_bench.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "engine/comm/algorithms/sum.h"
#include "engine/core/clock.h"

namespace paceline {

namespace {

constexpr double kShortestSample = 50e-6;  // seconds: clock and barrier are far more precise
constexpr std::size_t kMostSamples = 500;  // per round
constexpr std::size_t kMostCalls = 1000;   // per sample
// The least memory for all buffers of a sample; the caches hold it.
constexpr std::size_t kSmallBuffers = std::size_t{1} << 20;
constexpr std::size_t kCacheLine = 64;

BenchTimes summarize(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  const auto at = [&](double share) {
    return samples[static_cast<std::size_t>(share * static_cast<double>(samples.size() - 1))];
  };
  return {at(0.5), samples.front(), at(0.95)};
}

}  // namespace

AllReduceBench::AllReduceBench(Communicator& communicator, std::size_t most,
                               const BenchOptions& options)
    : communicator_(communicator), options_(options) {
  const std::size_t bytes = std::max(most * size_of(options.type), kSmallBuffers);
  data_ = communicator_.allocate(bytes);
  if (data_.bytes() < bytes) data_ = host_memory(bytes);
}

std::byte* AllReduceBench::buffer(std::size_t call) const {
  return data_.data() + call * stride_;
}

// Writes zeros, whose sums stay zeros however often they are summed.
void AllReduceBench::write_buffers(std::size_t calls) {
  for (std::size_t call = 0; call < calls; ++call) {
    std::memset(buffer(call), 0, count_ * size_of(options_.type));
  }
}

void AllReduceBench::all_reduce(std::byte* data) {
  communicator_.all_reduce(data, count_, options_.type, lane_, "all-reduce");
}

void AllReduceBench::copy(std::byte* data) {
  const std::size_t half = count_ * size_of(options_.type) / 2;
  std::memcpy(data + half, data, half);
  std::memcpy(data, data + half, half);
}

template <typename Call>
double AllReduceBench::time(std::size_t calls, const Call& call) {
  communicator_.barrier();
  const double start = now_seconds();
  for (std::size_t i = 0; i < calls; ++i) call(buffer(i));
  return (now_seconds() - start) / static_cast<double>(calls);
}

// Rank 0 decides for all.
template <typename Call>
AllReduceBench::Turn AllReduceBench::choose_turn(const Call& call) {
  const std::size_t buffers = std::clamp<std::size_t>(data_.bytes() / stride_, 1, kMostCalls);
  const std::size_t trial = std::clamp<std::size_t>(options_.warmup, 1, buffers);
  write_buffers(trial);
  const double once = std::max(time(trial, call), 1e-8);
  const auto rounds = static_cast<double>(options_.rounds);
  Turn turn{.calls = static_cast<std::size_t>(
                std::clamp(kShortestSample / once, 1.0, static_cast<double>(buffers)))};
  const double sample_seconds = once * static_cast<double>(turn.calls);
  turn.samples = static_cast<std::size_t>(std::clamp(
      options_.seconds_per_size / rounds / sample_seconds, 1.0, static_cast<double>(kMostSamples)));
  if (options_.iterations > 0) {
    turn.calls = std::min(turn.calls, options_.iterations);
    turn.samples = (options_.iterations + turn.calls - 1) / turn.calls;
  }
  communicator_.broadcast(&turn, sizeof turn, 0);
  return turn;
}

// Each sample takes as long as on its slowest rank.
BenchTimes AllReduceBench::gather(std::vector<double> samples) {
  const auto ranks = static_cast<std::size_t>(communicator_.size());
  std::vector<double> all(samples.size() * ranks);
  communicator_.all_gather(samples.data(), samples.size() * sizeof(double), all.data());
  for (std::size_t i = 0; i < all.size(); ++i) {
    double& slowest = samples[i % samples.size()];
    slowest = std::max(slowest, all[i]);
  }
  return summarize(std::move(samples));
}

void AllReduceBench::check(BenchRow& row) {
  fill_for_check(data_.data(), row.count, options_.type, communicator_.rank());
  communicator_.barrier();
  all_reduce(data_.data());
  const SumCheck mine = check_sum(data_.data(), row.count, options_.type, communicator_.size());
  std::vector<SumCheck> all(static_cast<std::size_t>(communicator_.size()));
  communicator_.all_gather(&mine, sizeof mine, all.data());
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank].wrong > 0 && row.wrong == 0) {
      row.first_wrong = describe(all[rank], row.count, options_.type, static_cast<int>(rank));
    }
    row.wrong += all[rank].wrong;
  }
}

BenchRow AllReduceBench::measure(std::size_t count) {
  BenchRow row;
  row.count = count_ = count;
  stride_ = (count * size_of(options_.type) + kCacheLine - 1) / kCacheLine * kCacheLine;
  const auto sum = [this](std::byte* data) { all_reduce(data); };
  const auto sum_first = [this](std::byte*) { all_reduce(buffer(0)); };
  const auto copies = [this](std::byte* data) { copy(data); };
  const Turn turn = choose_turn(sum);
  row.calls = turn.calls;
  row.samples = turn.samples * options_.rounds;
  std::vector<double> sums, reused, copied;
  for (std::size_t round = 0; round < options_.rounds; ++round) {
    for (std::size_t i = 0; i < turn.samples; ++i) {
      write_buffers(turn.calls);
      sums.push_back(time(turn.calls, sum));
    }
    if (!options_.baselines) continue;
    for (std::size_t i = 0; i < turn.samples; ++i) {
      write_buffers(turn.calls);
      copied.push_back(time(turn.calls, copies));
    }
    for (std::size_t i = 0; i < turn.samples; ++i) reused.push_back(time(turn.calls, sum_first));
  }
  row.all_reduce = gather(std::move(sums));
  if (options_.baselines) {
    row.reused = gather(std::move(reused));
    row.copy = gather(std::move(copied));
  }
  check(row);
  return row;
}

}  // namespace paceline
