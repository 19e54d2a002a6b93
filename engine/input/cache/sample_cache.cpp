#include "engine/input/cache/sample_cache.h"

#include <cstring>
#include <utility>

namespace paceline {

SampleCache::SampleCache(std::shared_ptr<CacheRegion> area, std::size_t set)
    : area_(std::move(area)), entries_(area_->entries(set)), counts_(area_->counts(set)) {}

std::size_t SampleCache::size(std::size_t i) const {
  const std::uint32_t state = entries_[i].state.load(std::memory_order_acquire);
  return state == CacheEntry::in_memory || state == CacheEntry::in_file ? entries_[i].count : 0;
}

void SampleCache::get(std::size_t i, char* out) const {
  const CacheEntry& entry = entries_[i];
  if (entry.state.load(std::memory_order_acquire) == CacheEntry::in_memory) {
    std::memcpy(out, area_->data() + entry.offset, entry.count);
  } else {
    area_->file()->read(entry.offset, entry.count, out);
  }
}

void SampleCache::put(std::size_t i, std::int32_t label, const char* data, std::size_t count) {
  CacheEntry& entry = entries_[i];
  std::uint32_t expected = CacheEntry::empty;
  if (!entry.state.compare_exchange_strong(expected, CacheEntry::being_filled)) return;
  entry.label = label;
  entry.state.store(keep(entry, data, count), std::memory_order_release);
}

CacheEntry::State SampleCache::keep(CacheEntry& entry, const char* data, std::size_t count) {
  if (count > ~std::uint32_t{0}) return CacheEntry::no_room;
  entry.count = static_cast<std::uint32_t>(count);
  if (const auto offset = area_->take(count)) {
    entry.offset = *offset;
    std::memcpy(area_->data() + *offset, data, count);
    counts_.memory_bytes += count;
    return CacheEntry::in_memory;
  }
  if (UnlinkedFile* file = area_->file()) {
    entry.offset = area_->take_of_file(count);
    if (!file->write(entry.offset, data, count)) return CacheEntry::no_room;
    counts_.file_bytes += count;
    return CacheEntry::in_file;
  }
  return CacheEntry::no_room;
}

}  // namespace paceline
