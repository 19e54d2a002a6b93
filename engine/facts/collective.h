// Measurements of a collective, one row per size.
#pragma once

#include "engine/facts/fact.h"

namespace paceline {

struct CollectiveRow {
  PACELINE_FACT(std::int64_t, bytes, "of one rank", kRequiredPositive);
  PACELINE_FACT(std::int64_t, count, "elements", kRequiredPositive);
  PACELINE_FACT(fact::Count, samples, "times that were measured");
  PACELINE_FACT(fact::Count, calls_per_sample, "of which a sample is the mean");
  PACELINE_FACT(double, seconds, "of a call: median of the samples", kRequiredPositive);
  PACELINE_FACT(fact::Real, seconds_min, "", kPositive);
  PACELINE_FACT(fact::Real, seconds_p95, "", kPositive);
  PACELINE_FACT(fact::Real, algbw_bytes_per_second, "bytes over seconds", kPositive);
  PACELINE_FACT(fact::Real, busbw_bytes_per_second,
                "algbw times 2 (n - 1) / n, as nccl-tests defines it");
  PACELINE_FACT(fact::Count, wrong, "elements, over all ranks");
  PACELINE_FACT(fact::Text, label, "\"bucket 3\"");
  PACELINE_FACT(fact::Real, memcpy_seconds, "of as many bytes", kPositive);
  PACELINE_FACT(fact::Real, reused_seconds,
                "of calls that sum one buffer, which nobody writes between", kPositive);
  PACELINE_FACT(fact::Text, first_wrong, "the first of them");
  PACELINE_END_FACTS
};

struct CollectiveFacts {
  PACELINE_FACT(fact::Text, operation, "");
  PACELINE_FACT(fact::Text, dtype, "");
  PACELINE_FACT(fact::Text, placement, "in place or out of place; empty: not stated");
  PACELINE_FACT(fact::Count, rounds, "");
  PACELINE_FACT(fact::Text, note, "");
  PACELINE_FACT(std::vector<CollectiveRow>, rows, "one per size");
  PACELINE_END_FACTS
};

}  // namespace paceline
