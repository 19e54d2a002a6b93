// All-reduce of every backend whose replicas are threads of one process, beside a memory copy of as
// many bytes by every rank at once: the counter `memcpy` is the copy's time over the all-reduce's.
// Times are the slowest rank's (engine/comm/allreduce_bench.h); sums are checked. The number in a
// name is the bytes of a rank.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <exception>
#include <string>
#include <thread>

#include "engine/comm/allreduce_bench.h"
#include "engine/comm/backend.h"
#include "engine/core/error.h"
#include "results/names.h"
#include "tests/bench/main.h"

namespace paceline::bench {

namespace {

Membership membership(int ranks) {
  Membership membership;
  membership.replicas_here = ranks;
  return membership;
}

bool reported(Communicator& communicator, bool go) {
  communicator.broadcast(&go, sizeof go, 0);
  return go;
}

// What ranks other than 0 do: measure as often as rank 0 does.
void follow(Communicator& communicator, std::size_t count, const BenchOptions& options) {
  AllReduceBench bench(communicator, count, options);
  while (reported(communicator, true)) bench.measure(count);
}

// Rank 0 runs the benchmark's loop. A measurement is an iteration for each of its calls.
void lead(benchmark::State& state, Communicator& communicator, std::size_t count,
          const BenchOptions& options, bool reduces) {
  AllReduceBench bench(communicator, count, options);
  std::vector<double> ratios;
  BenchRow row;
  while (state.KeepRunningBatch(static_cast<benchmark::IterationCount>(options.iterations))) {
    reported(communicator, true);
    row = bench.measure(count);
    state.SetIterationTime(row.all_reduce.median * static_cast<double>(options.iterations));
    if (row.copy) ratios.push_back(row.copy->median / row.all_reduce.median);
    if (reduces && row.wrong > 0) state.SkipWithError(row.first_wrong.c_str());
  }
  reported(communicator, false);
  if (ratios.empty()) return;
  std::sort(ratios.begin(), ratios.end());
  state.counters["memcpy"] = ratios[ratios.size() / 2];
}

void all_reduce(benchmark::State& state, BackendFactory make, int ranks, bool reduces) {
  const auto bytes = static_cast<std::size_t>(state.range(0));
  const std::size_t count = bytes / sizeof(float);
  BenchOptions options;
  options.rounds = 1;
  options.iterations = std::clamp<std::size_t>((std::size_t{1} << 24) / bytes, 3, 500);
  options.baselines = ranks > 1;  // alone there is nothing to move
  const auto backend = make();
  const auto communicators = backend->connect(membership(ranks));
  std::vector<std::exception_ptr> errors(communicators.size());
  const auto guarded = [&](std::size_t rank, const auto& body) {
    try {
      body();
    } catch (const std::exception& error) {
      errors[rank] = std::current_exception();
      communicators[rank]->abort(error.what());
    }
  };
  std::vector<std::thread> threads;
  for (std::size_t rank = 1; rank < communicators.size(); ++rank) {
    threads.emplace_back(
        [&, rank] { guarded(rank, [&] { follow(*communicators[rank], count, options); }); });
  }
  guarded(0, [&] { lead(state, *communicators[0], count, options, reduces); });
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(bytes));
}

}  // namespace

void register_benchmarks() {
  for (const auto& row : backend_table()) {
    if (find_name("backend", row.name).tasks != "node") continue;
    for (const int ranks : {1, 2}) {
      if (!row.make()->serves(membership(ranks))) continue;
      const std::string name = std::string(row.name) + "/ranks:" + std::to_string(ranks);
      const bool reduces = std::string(row.name) != "null";
      auto* one = benchmark::RegisterBenchmark(name.c_str(), all_reduce, row.make, ranks, reduces);
      one->RangeMultiplier(4)->Range(4 << 10, 64 << 20)->UseManualTime();
      // Nanoseconds a call: as many as fill the usual time would take minutes to set up.
      if (ranks == 1 || !reduces) one->Iterations(10000);
    }
  }
}

}  // namespace paceline::bench
