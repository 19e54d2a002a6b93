#include "run/input_record.h"

#include "run/lost_records.h"

namespace paceline {

namespace {

constexpr double kColdBelow = 0.5;  // share of the files in the page cache

const char* to_string(CacheKind kind) {
  return kind == CacheKind::off ? "off" : kind == CacheKind::raw ? "raw" : "decoded";
}

InputCountFacts collect_counts(const InputCounts& counts) {
  InputCountFacts facts;
  facts.fetched = counts.fetched;
  facts.from_cache = counts.from_cache;
  facts.decoded = counts.decoded;
  facts.read_bytes = counts.read_bytes;
  facts.decoded_bytes = counts.decoded_bytes;
  facts.read_seconds = counts.read_seconds;
  facts.decode_seconds = counts.decode_seconds;
  facts.resize_seconds = counts.resize_seconds;
  return facts;
}

void add_decoding(InputFacts& input, const RunFacts& facts, const InputOutcome& outcome) {
  input.cache = to_string(facts.input.cache);
  input.pixels = facts.input.type == DType::f32 ? "fp32" : "uint8";
  input.cache_shared = facts.input.cache == CacheKind::off ? 0 : facts.cache.ranks;
  input.cache_budget_bytes = facts.cache.bytes;  // of the ranks that share it
  input.cached_bytes = outcome.cached_in_memory;
  input.cached_in_file_bytes = outcome.cached_in_file;
  input.counts = collect_counts(outcome.counts);
  input.first_epoch = collect_counts(outcome.first_epoch);
  input.evaluation = collect_counts(outcome.evaluation);
  input.bad_samples = outcome.bad_samples;
  input.bad_places = outcome.bad_places;
  const LostSummary lost = summarize(facts.lost);
  input.lost_records = lost.records;
  input.lost_places = lost.places;
}

}  // namespace

InputFacts collect_input(const RunFacts& facts, const TrainingOutcome& outcome) {
  InputFacts input;
  for (const RankTimes& rank : outcome.ranks) input.ready_batches.push_back(rank.input_ready);
  if (facts.resident_share) {
    input.cold = *facts.resident_share < kColdBelow;
    input.resident_share = facts.resident_share;
  }
  if (facts.staged_bytes > 0) {
    input.stage_seconds = facts.stage_seconds;
    input.staged_bytes = facts.staged_bytes;
    input.staged_before = facts.staged_before;
  }
  if (facts.decodes) add_decoding(input, facts, outcome.input);
  return input;
}

}  // namespace paceline
