#include "cli/input_setup.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "engine/core/available_memory.h"
#include "engine/core/error.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

constexpr std::array<const char*, 6> kOfEncodedImages = {
    "cache", "cache_type", "cache_mb", "parallel_reads", "read_buffer_kb", "on_bad_sample"};
constexpr std::size_t kMiB = std::size_t{1} << 20, kKiB = 1 << 10;

CacheKind kind_of(const Point& p) {
  const std::string name = p.text("cache").value_or("decoded");
  return name == "off" ? CacheKind::off : name == "raw" ? CacheKind::raw : CacheKind::decoded;
}

int parallel_reads_of(const Point& p, const ThreadPlan& threads) {
  return static_cast<int>(p.integer("parallel_reads").value_or(std::max(1, threads.input)));
}

std::size_t memory_of_node(const Point& p) {
  const auto available = available_memory();
  const auto asked = p.integer("cache_mb");
  if (!asked) return available.value_or(0) / 2;
  const std::size_t bytes = static_cast<std::size_t>(*asked) * kMiB;
  if (available && bytes > *available) {
    throw Error(ErrorKind::usage,
                fmt::format("caches of {} on a node that has {} free",
                            format_bytes(static_cast<double>(bytes)),
                            format_bytes(static_cast<double>(*available))),
                "cache_mb", "lower --cache-mb; --cache-type uint8 and --cache raw need less");
  }
  return bytes;
}

}  // namespace

void check_input(const Point& p, const ThreadPlan& threads) {
  const int most = std::max(1, threads.input);
  if (const int reads = parallel_reads_of(p, threads); reads > most) {
    throw Error(ErrorKind::usage,
                fmt::format("{} parallel reads with {} input thread{}", reads, threads.input,
                            threads.input == 1 ? "" : "s"),
                "", fmt::format("read {} at once, or give more --input-threads", most));
  }
  if (kind_of(p) == CacheKind::off && p.find("cache_mb")) {
    throw Error(ErrorKind::usage, "cache_mb is given and cache is off", "",
                "leave one of them out");
  }
}

void check_places(const Point& p, const InputPlaces& places) {
  if (!places.stage.empty() && p.text("input") == "synthetic") {
    throw Error(ErrorKind::usage, "synthetic input has no files to stage", "--stage",
                "leave it out");
  }
  if (!places.cache.empty() && kind_of(p) == CacheKind::off) {
    throw Error(ErrorKind::usage, "a folder for the cache is given and cache is off", "--cache-dir",
                "leave one of them out");
  }
  if (!places.cache.empty() && p.text("input") == "synthetic") {
    throw Error(ErrorKind::usage, "synthetic input has no cache", "--cache-dir", "leave it out");
  }
}

InputOptions input_options(const Point& p, const InputPlaces& places, const Layout& layout,
                           const ThreadPlan& threads) {
  InputOptions options;
  options.cache = kind_of(p);
  options.type = p.text("cache_type") == "fp32" ? DType::f32 : DType::u8;
  options.tasks_of_node = std::max(1, layout.ntasks / layout.nodes);
  if (options.cache != CacheKind::off) options.cache_bytes = memory_of_node(p);
  options.cache_folder = places.cache;
  options.parallel_reads = parallel_reads_of(p, threads) * (layout.gpus / layout.ntasks);
  options.skip_bad = p.text("on_bad_sample") == "skip";
  options.reading.skip_damaged = options.skip_bad;
  options.reading.buffer_bytes =
      static_cast<std::size_t>(p.integer("read_buffer_kb").value_or(0)) * kKiB;
  return options;
}

void check_samples_in_memory(const Point& p, const InputPlaces& places) {
  std::string given = places.cache.empty() ? "" : "--cache-dir";
  for (const char* name : kOfEncodedImages) {
    if (p.find(name)) given = name;
  }
  if (given.empty()) return;
  throw Error(ErrorKind::usage,
              "the samples of this data set lie in memory as they are: there is nothing to decode",
              given, "leave it out");
}

}  // namespace paceline
