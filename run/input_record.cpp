#include "run/input_record.h"

#include <nlohmann/json.hpp>

#include "run/lost_records.h"
#include "run/record_parts.h"

namespace paceline {

namespace {

constexpr double kColdBelow = 0.5;  // share of the files in the page cache

const char* name_of(CacheKind kind) {
  return kind == CacheKind::off ? "off" : kind == CacheKind::raw ? "raw" : "decoded";
}

// Seconds are of threads, summed over ranks.
Json counts_json(const InputCounts& counts) {
  return {{"fetched", counts.fetched},
          {"from_cache", counts.from_cache},
          {"decoded", counts.decoded},
          {"read_bytes", counts.read_bytes},
          {"decoded_bytes", counts.decoded_bytes},
          {"read_seconds", round_digits(counts.read_seconds)},
          {"decode_seconds", round_digits(counts.decode_seconds)},
          {"resize_seconds", round_digits(counts.resize_seconds)}};
}

void add_decoding(Json& json, const RunFacts& facts, const InputOutcome& input) {
  json["cache"] = name_of(facts.input.cache);
  json["pixels"] = facts.input.type == DType::f32 ? "fp32" : "uint8";
  json["cache_shared"] = facts.input.cache == CacheKind::off ? 0 : facts.cache.ranks;
  json["cache_budget_bytes"] = facts.cache.bytes;  // of the ranks that share it
  json["cached_bytes"] = input.cached_in_memory;
  json["cached_in_file_bytes"] = input.cached_in_file;
  json.update(counts_json(input.counts));
  json["first_epoch"] = counts_json(input.first_epoch);
  json["evaluation"] = counts_json(input.evaluation);
  json["bad_samples"] = input.bad_samples;
  json["bad_places"] = input.bad_places;
  add_lost_records(json, facts.lost);
}

}  // namespace

Json input_json(const RunFacts& facts, const TrainingOutcome& outcome) {
  Json ready = Json::array();
  for (const RankTimes& rank : outcome.ranks) ready.push_back(round_digits(rank.input_ready));
  Json json = {{"ready_batches", ready}, {"cold", nullptr}};
  if (facts.resident_share) {
    json["cold"] = *facts.resident_share < kColdBelow;
    json["resident_share"] = round_digits(*facts.resident_share);
  }
  if (facts.staged_bytes > 0) {
    json["stage_seconds"] = round_digits(facts.stage_seconds);
    json["staged_bytes"] = facts.staged_bytes;
    json["staged_before"] = facts.staged_before;
  }
  if (facts.decodes) add_decoding(json, facts, outcome.input);
  return json;
}

}  // namespace paceline
