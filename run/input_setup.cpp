#include "run/input_setup.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/core/available_memory.h"
#include "engine/core/error.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

std::size_t cache_bytes_of_node(const InputConfig& config) {
  const auto available = available_memory();
  if (!config.cache_bytes) return available.value_or(0) / 2;
  if (available && *config.cache_bytes > *available) {
    throw Error(ErrorKind::usage,
                fmt::format("the caches need {}, but the node has {} free",
                            format_bytes(static_cast<double>(*config.cache_bytes)),
                            format_bytes(static_cast<double>(*available))),
                "cache_mb", "lower --cache-mb; --cache-type uint8 and --cache raw need less");
  }
  return *config.cache_bytes;
}

}  // namespace

void check_places(const InputConfig& config, const InputPlaces& places) {
  if (!places.stage.empty() && config.synthetic) {
    throw Error(ErrorKind::usage, "synthetic input has no files to stage", "--stage",
                "leave it out");
  }
  if (!places.cache.empty() && config.cache == CacheKind::off) {
    throw Error(ErrorKind::usage, "a folder for the cache is given, but the cache is off",
                "--cache-dir", "leave one of them out");
  }
  if (!places.cache.empty() && config.synthetic) {
    throw Error(ErrorKind::usage, "synthetic input has no cache", "--cache-dir", "leave it out");
  }
}

InputOptions input_options(const InputConfig& config, const InputPlaces& places,
                           const Layout& layout) {
  InputOptions options;
  options.cache = config.cache;
  options.type = config.cache_type;
  options.tasks_of_node = std::max(1, layout.ntasks / layout.nodes);
  if (options.cache != CacheKind::off) options.cache_bytes = cache_bytes_of_node(config);
  options.cache_folder = places.cache;
  options.parallel_reads = config.parallel_reads * (layout.gpus / layout.ntasks);
  options.skip_bad = config.skip_bad_samples;
  options.reading.skip_damaged = options.skip_bad;
  options.reading.buffer_bytes = config.read_buffer_bytes;
  return options;
}

void check_samples_in_memory(const InputConfig& config, const InputPlaces& places) {
  std::string given = places.cache.empty() ? "" : "--cache-dir";
  if (!config.for_encoded_images.empty()) given = config.for_encoded_images.back();
  if (given.empty()) return;
  throw Error(ErrorKind::usage, "this is for encoded images, and this data set has none", given,
              "leave it out");
}

}  // namespace paceline
