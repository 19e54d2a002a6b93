#include "engine/train/outcome.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "engine/core/text.h"

namespace paceline {

std::string MemoryUse::text() const {
  const auto bytes = [](std::size_t count) { return format_bytes(static_cast<double>(count)); };
  std::string text = fmt::format("{}: activations {}, parameters {}, gradients {}", bytes(total()),
                                 bytes(activations), bytes(parameters), bytes(gradients));
  if (moments > 0) text += ", moments " + bytes(moments);
  if (statistics > 0) text += ", statistics " + bytes(statistics);
  if (scratch > 0) text += ", scratch " + bytes(scratch);
  if (checkpoint > 0) text += ", copy for checkpoints " + bytes(checkpoint);
  return text;
}

MemoryUse memory_use(const Plan& plan, Optimizer optimizer, std::size_t scratch_bytes) {
  const std::size_t arena = plan.arena_elements * size_of(plan.real);
  return {.activations = plan.activation_bytes,
          .parameters = arena,
          .gradients = arena,
          .moments = arena * static_cast<std::size_t>(state_arenas(optimizer)),
          .statistics = plan.statistics_elements * size_of(plan.real),
          .scratch = scratch_bytes};
}

namespace {

using Sums = std::array<double, 8>;

Sums make_sums(const InputCounts& counts) {
  return {counts.read_seconds,
          counts.decode_seconds,
          counts.resize_seconds,
          static_cast<double>(counts.fetched),
          static_cast<double>(counts.from_cache),
          static_cast<double>(counts.decoded),
          static_cast<double>(counts.read_bytes),
          static_cast<double>(counts.decoded_bytes)};
}

InputCounts sum_counts(Communicator& communicator, const InputCounts& mine) {
  Sums sums = make_sums(mine);
  sum_over_ranks(communicator, sums);
  InputCounts all;
  all.read_seconds = sums[0];
  all.decode_seconds = sums[1];
  all.resize_seconds = sums[2];
  all.fetched = static_cast<std::size_t>(sums[3]);
  all.from_cache = static_cast<std::size_t>(sums[4]);
  all.decoded = static_cast<std::size_t>(sums[5]);
  all.read_bytes = static_cast<std::size_t>(sums[6]);
  all.decoded_bytes = static_cast<std::size_t>(sums[7]);
  return all;
}

// Ranks may have met the same bad samples.
std::set<std::size_t> gather_bad(Communicator& communicator, const std::vector<std::size_t>& mine) {
  const auto ranks = static_cast<std::size_t>(communicator.size());
  const std::size_t count = mine.size();
  std::vector<std::size_t> counts(ranks);
  communicator.all_gather(&count, sizeof count, counts.data());
  const std::size_t most = *std::max_element(counts.begin(), counts.end());
  if (most == 0) return {};
  std::vector<std::size_t> padded = mine, all(most * ranks);
  padded.resize(most);
  communicator.all_gather(padded.data(), most * sizeof(std::size_t), all.data());
  std::set<std::size_t> numbers;
  for (std::size_t r = 0; r < ranks; ++r) {
    const auto first = all.begin() + static_cast<std::ptrdiff_t>(r * most);
    numbers.insert(first, first + static_cast<std::ptrdiff_t>(counts[r]));
  }
  return numbers;
}

}  // namespace

InputOutcome gather_input(Communicator& communicator, const DatasetPair& data,
                          const RunInputCounts& mine, bool counts_caches) {
  InputOutcome outcome;
  outcome.counts = sum_counts(communicator, mine.counts);
  outcome.first_epoch = sum_counts(communicator, mine.first_epoch);
  outcome.evaluation = sum_counts(communicator, mine.evaluation);
  std::array<double, 2> kept{};
  for (const Dataset* set : {&data.train, &data.test}) {
    if (!set->store) continue;
    if (counts_caches) {
      kept[0] += static_cast<double>(set->store->cached_bytes_in_memory());
      kept[1] += static_cast<double>(set->store->cached_bytes_in_file());
    }
    const auto bad = gather_bad(communicator, set->store->bad_samples());
    outcome.bad_samples += bad.size();
    for (const std::size_t i : bad) {
      if (outcome.bad_places.size() < kBadPlaces)
        outcome.bad_places.push_back(set->store->where(i));
    }
  }
  sum_over_ranks(communicator, kept);
  outcome.cached_in_memory = static_cast<std::size_t>(kept[0]);
  outcome.cached_in_file = static_cast<std::size_t>(kept[1]);
  return outcome;
}

}  // namespace paceline
