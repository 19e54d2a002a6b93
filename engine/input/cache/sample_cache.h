// The cached samples of one set in a cache area. Cached samples are never evicted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "engine/input/cache/cache_area.h"

namespace paceline {

// Safe for concurrent calls from threads, and from the processes that share the area.
class SampleCache {
 public:
  SampleCache(std::shared_ptr<CacheRegion> area, std::size_t set);

  // Size of sample i in bytes, or 0 if it is not cached.
  std::size_t size(std::size_t i) const;
  void get(std::size_t i, char* out) const;
  std::int32_t label(std::size_t i) const { return entries_[i].label; }

  // Does nothing if sample i is cached, is being cached, or did not fit earlier.
  void put(std::size_t i, std::int32_t label, const char* data, std::size_t count);

  const CacheRegion& area() const { return *area_; }

  // Of this set, by all processes that share the area.
  std::size_t memory_bytes() const { return counts_.memory_bytes; }
  std::size_t file_bytes() const { return counts_.file_bytes; }

 private:
  CacheEntry::State keep(CacheEntry& entry, const char* data, std::size_t count);

  std::shared_ptr<CacheRegion> area_;
  CacheEntry* entries_;
  CacheRegion::SetCounts& counts_;
};

}  // namespace paceline
