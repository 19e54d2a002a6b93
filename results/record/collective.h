// Measurements of a collective, one row per size.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "results/record/bounds.h"

namespace paceline {

struct CollectiveRow {
  std::int64_t bytes = 0, count = 0;
  std::optional<std::int64_t> samples, calls_per_sample;
  double seconds = 0;
  std::optional<double> seconds_min, seconds_p95, algbw_bytes_per_second, busbw_bytes_per_second;
  std::optional<std::int64_t> wrong;
  std::string label;  // "bucket 3"
  std::optional<double> memcpy_seconds;
  std::optional<double>
      reused_seconds;  // of calls that sum one buffer, which nobody writes between
  std::optional<double> negotiation_seconds;  // until all ranks were ready, before `seconds`
  std::string first_wrong;

  template <typename Each>
  void fields(Each& each) {
    each("bytes", bytes, kRequiredPositive);
    each("count", count, kRequiredPositive);
    each("samples", samples);
    each("calls_per_sample", calls_per_sample);
    each("seconds", seconds, kRequiredPositive);
    each("seconds_min", seconds_min, kPositive);
    each("seconds_p95", seconds_p95, kPositive);
    each("algbw_bytes_per_second", algbw_bytes_per_second, kPositive);
    each("busbw_bytes_per_second", busbw_bytes_per_second);
    each("wrong", wrong);
    each("label", label);
    each("memcpy_seconds", memcpy_seconds, kPositive);
    each("reused_seconds", reused_seconds, kPositive);
    each("negotiation_seconds", negotiation_seconds);
    each("first_wrong", first_wrong);
  }
};

struct CollectiveFacts {
  std::string operation, dtype;
  std::string placement;  // "in place", "out of place"; empty: not stated
  std::optional<std::int64_t> rounds;
  std::string note;
  std::vector<CollectiveRow> rows;

  template <typename Each>
  void fields(Each& each) {
    each("operation", operation);
    each("dtype", dtype);
    each("placement", placement);
    each("rounds", rounds);
    each("note", note);
    each("rows", rows);
  }
};

}  // namespace paceline
