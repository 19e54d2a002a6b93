#include "engine/comm/allreduce_bench.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "engine/comm/algorithms/sum_check.h"
#include "engine/core/clock.h"

namespace paceline {

namespace {

constexpr double kShortestSample = 50e-6;  // seconds: the clock and the barrier's end are far less
constexpr std::size_t kMostSamples = 500;  // a round

BenchTimes times_of(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  const auto at = [&](double share) {
    return samples[static_cast<std::size_t>(share * static_cast<double>(samples.size() - 1))];
  };
  return {at(0.5), samples.front(), at(0.95)};
}

}  // namespace

struct AllReduceBench::Samples {
  std::vector<double> all_reduce, copy, library;
};

AllReduceBench::AllReduceBench(Communicator& communicator, Communicator* library, std::size_t most,
                               const BenchOptions& options)
    : communicator_(communicator), library_(library), options_(options) {
  const std::size_t bytes = most * size_of(options.type);
  data_ = communicator_.allocate(bytes);
  if (data_.bytes() < bytes) data_ = host_memory(bytes);
}

void AllReduceBench::all_reduce(Communicator& with, std::size_t count) {
  with.all_reduce(data_.data(), count, options_.type, lane_, "all-reduce");
}

void AllReduceBench::copy(std::size_t count) {
  const std::size_t half = count * size_of(options_.type) / 2;
  std::memcpy(data_.data() + half, data_.data(), half);
  std::memcpy(data_.data(), data_.data() + half, half);
}

template <typename Call>
double AllReduceBench::time(std::size_t calls, const Call& call) {
  communicator_.barrier();
  const double start = now_seconds();
  for (std::size_t i = 0; i < calls; ++i) call();
  return (now_seconds() - start) / static_cast<double>(calls);
}

// Rank 0 decides for all.
template <typename Call>
AllReduceBench::Turn AllReduceBench::turn_of(const Call& call) {
  const double once = std::max(time(std::max<std::size_t>(1, options_.warmup), call), 1e-8);
  const auto rounds = static_cast<double>(options_.rounds);
  std::size_t numbers[2];
  numbers[0] = static_cast<std::size_t>(std::clamp(kShortestSample / once, 1.0, 1000.0));
  numbers[1] = static_cast<std::size_t>(
      std::clamp(options_.seconds_per_size / rounds / (once * static_cast<double>(numbers[0])), 1.0,
                 static_cast<double>(kMostSamples)));
  if (options_.iterations > 0) {
    numbers[0] = std::min(numbers[0], options_.iterations);
    numbers[1] = (options_.iterations + numbers[0] - 1) / numbers[0];
  }
  communicator_.broadcast(numbers, sizeof numbers, 0);
  return {numbers[0], numbers[1]};
}

// The slowest rank's share of each sample.
BenchTimes AllReduceBench::gathered(std::vector<double> samples) {
  const auto ranks = static_cast<std::size_t>(communicator_.size());
  std::vector<double> all(samples.size() * ranks);
  communicator_.all_gather(samples.data(), samples.size() * sizeof(double), all.data());
  for (std::size_t i = 0; i < all.size(); ++i) {
    double& slowest = samples[i % samples.size()];
    slowest = std::max(slowest, all[i]);
  }
  return times_of(std::move(samples));
}

void AllReduceBench::check(BenchRow& row) {
  fill_for_check(data_.data(), row.count, options_.type, communicator_.rank());
  communicator_.barrier();
  all_reduce(communicator_, row.count);
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
  row.count = count;
  std::memset(data_.data(), 0, count * size_of(options_.type));  // sums of zeros stay zeros
  const auto ours = [&] { all_reduce(communicator_, count); };
  const auto library = [&] { all_reduce(*library_, count); };
  const auto copies = [&] { copy(count); };
  // The library's has turns of its own: it may be a thousand times slower.
  const Turn turn = turn_of(ours), of_library = library_ != nullptr ? turn_of(library) : Turn{};
  row.calls = turn.calls;
  row.samples = turn.samples * options_.rounds;
  if (options_.copies) time(options_.warmup, copies);
  Samples samples;
  for (std::size_t round = 0; round < options_.rounds; ++round) {
    for (std::size_t i = 0; i < turn.samples; ++i) {
      samples.all_reduce.push_back(time(turn.calls, ours));
    }
    for (std::size_t i = 0; i < of_library.samples; ++i) {
      samples.library.push_back(time(of_library.calls, library));
    }
    for (std::size_t i = 0; options_.copies && i < turn.samples; ++i) {
      samples.copy.push_back(time(turn.calls, copies));
    }
  }
  row.all_reduce = gathered(std::move(samples.all_reduce));
  if (library_ != nullptr) row.library = gathered(std::move(samples.library));
  if (options_.copies) row.copy = gathered(std::move(samples.copy));
  check(row);
  return row;
}

}  // namespace paceline
