// Statistics of reading input.
#pragma once

#include "engine/facts/fact.h"

namespace paceline {

// Over all ranks. Seconds are summed over threads.
struct InputCounts {
  PACELINE_FACT(std::int64_t, fetched, "samples");
  PACELINE_FACT(std::int64_t, from_cache, "samples");
  PACELINE_FACT(std::int64_t, decoded, "samples");
  PACELINE_FACT(std::int64_t, augmented, "samples that augmentation changed");
  PACELINE_FACT(std::int64_t, source_pixels, "before the resize");
  PACELINE_FACT(std::int64_t, read_bytes, "from files");
  PACELINE_FACT(std::int64_t, decoded_bytes, "after the resize");
  PACELINE_FACT(double, read_seconds, "");
  PACELINE_FACT(double, decode_seconds, "");
  PACELINE_FACT(double, resize_seconds, "");
  PACELINE_END_FACTS

  InputCounts& operator+=(const InputCounts& more) {
    auto sum = to_numbers(*this);
    const auto added = to_numbers(more);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += added[i];
    return *this = from_numbers<InputCounts>(sum);
  }
};

struct InputFacts {
  PACELINE_FACT(fact::OfRanks<double>, ready_batches,
                "one per rank: mean number of batches that waited for it");
  PACELINE_FACT(fact::Flag, cold, "false: most bytes of the files were in the page cache");
  PACELINE_FACT(fact::Real, resident_share, "of the files, in the page cache before the first read",
                kShare);
  PACELINE_FACT(fact::Real, stage_seconds, "copying the set to a local folder");
  PACELINE_FACT(fact::Count, staged_bytes, "");
  PACELINE_FACT(fact::Flag, staged_before, "by another job");
  // Of encoded images, to lost_places.
  PACELINE_FACT(fact::Text, cache, "off, raw or decoded");
  PACELINE_FACT(fact::Text, pixels, "uint8 or fp32");
  PACELINE_FACT(fact::Count, cache_shared, "ranks that share a cache");
  PACELINE_FACT(fact::Count, cache_budget_bytes, "of the ranks that share it");
  PACELINE_FACT(fact::Count, cached_bytes, "in memory, of all nodes");
  PACELINE_FACT(fact::Count, cached_in_file_bytes, "of all nodes");
  PACELINE_FACT(std::optional<InputCounts>, counts, "of training", kInlined);
  PACELINE_FACT(std::optional<InputCounts>, first_epoch, "of training");
  PACELINE_FACT(std::optional<InputCounts>, evaluation, "");
  PACELINE_FACT(fact::Count, bad_samples, "skipped, of both splits");
  PACELINE_FACT(fact::Texts, bad_places, "the first of them");
  PACELINE_FACT(fact::Count, lost_records, "that damaged files no longer have");
  PACELINE_FACT(fact::Texts, lost_places, "the first of them");
  PACELINE_END_FACTS
};

}  // namespace paceline
