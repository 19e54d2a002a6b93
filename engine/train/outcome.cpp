#include "engine/train/outcome.h"

#include <array>
#include <set>

#include "engine/core/text.h"
#include "engine/train/gather.h"

namespace paceline {

namespace {

constexpr std::size_t kBadPlaces = 5;  // number of bad samples that are named

InputCounts sum_counts(Communicator& communicator, const InputCounts& mine) {
  auto sums = to_numbers(mine);
  sum_over_ranks(communicator, sums);
  return from_numbers<InputCounts>(sums);
}

// Ranks may have met the same bad samples.
std::set<std::size_t> gather_bad(Communicator& communicator, const std::vector<std::size_t>& mine) {
  std::set<std::size_t> numbers;
  for (const auto& rank : gather(communicator, mine)) numbers.insert(rank.begin(), rank.end());
  return numbers;
}

}  // namespace

void gather_input(Communicator& communicator, const DatasetPair& data, bool counts_caches,
                  InputFacts& input) {
  for (auto* counts : {&input.counts, &input.first_epoch, &input.evaluation}) {
    *counts = sum_counts(communicator, counts->value_or(InputCounts{}));
  }
  std::array<double, 2> kept{};
  input.bad_samples = 0;
  for (const Dataset* set : {&data.train, &data.test}) {
    if (!set->store) continue;
    if (counts_caches) {
      kept[0] += static_cast<double>(set->store->cached_bytes_in_memory());
      kept[1] += static_cast<double>(set->store->cached_bytes_in_file());
    }
    const auto bad = gather_bad(communicator, set->store->bad_samples());
    *input.bad_samples += static_cast<std::int64_t>(bad.size());
    for (const std::size_t i : bad) {
      if (input.bad_places.size() < kBadPlaces) input.bad_places.push_back(set->store->where(i));
    }
  }
  sum_over_ranks(communicator, kept);
  input.cached_bytes = static_cast<std::int64_t>(kept[0]);
  input.cached_in_file_bytes = static_cast<std::int64_t>(kept[1]);
}

}  // namespace paceline
