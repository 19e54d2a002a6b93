// Statistics of reading input.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "results/record/bounds.h"

namespace paceline {

// Over all ranks. Seconds are summed over threads.
struct InputCountFacts {
  std::optional<std::int64_t> fetched, from_cache, decoded, read_bytes, decoded_bytes;
  std::optional<double> read_seconds, decode_seconds, resize_seconds;

  template <typename Each>
  void fields(Each& each) {
    each("fetched", fetched);
    each("from_cache", from_cache);
    each("decoded", decoded);
    each("read_bytes", read_bytes);
    each("decoded_bytes", decoded_bytes);
    each("read_seconds", read_seconds);
    each("decode_seconds", decode_seconds);
    each("resize_seconds", resize_seconds);
  }
};

struct InputFacts {
  std::vector<double> ready_batches;  // one per rank
  std::optional<bool> cold;           // false: the files were in the page cache
  std::optional<double> resident_share, stage_seconds;
  std::optional<std::int64_t> staged_bytes;
  std::optional<bool> staged_before;
  // For encoded images.
  std::string cache, pixels;
  std::optional<std::int64_t> cache_shared, cache_budget_bytes, cached_bytes, cached_in_file_bytes;
  InputCountFacts counts;  // its keys are inlined here
  InputCountFacts first_epoch, evaluation;
  std::optional<std::int64_t> bad_samples;
  std::vector<std::string> bad_places;
  std::optional<std::int64_t> lost_records;
  std::vector<std::string> lost_places;

  template <typename Each>
  void fields(Each& each) {
    each("ready_batches", ready_batches);
    each("cold", cold);
    each("resident_share", resident_share, kShare);
    each("stage_seconds", stage_seconds);
    each("staged_bytes", staged_bytes);
    each("staged_before", staged_before);
    each("cache", cache);
    each("pixels", pixels);
    each("cache_shared", cache_shared);
    each("cache_budget_bytes", cache_budget_bytes);
    each("cached_bytes", cached_bytes);
    each("cached_in_file_bytes", cached_in_file_bytes);
    each.beside(counts);
    each("first_epoch", first_epoch);
    each("evaluation", evaluation);
    each("bad_samples", bad_samples);
    each("bad_places", bad_places);
    each("lost_records", lost_records);
    each("lost_places", lost_places);
  }
};

}  // namespace paceline
