// The images of a data set at the network's input size, from a cache or freshly decoded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "engine/core/dtype.h"
#include "engine/core/lane.h"
#include "engine/facts/input.h"
#include "engine/input/cache/cache_area.h"
#include "engine/input/decode/image.h"
#include "engine/input/decode/resize.h"
#include "engine/input/formats/source.h"

namespace paceline {

// The cached samples of one set in a cache area. Cached samples are never evicted.

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

  // What this set takes, for all processes that share the area.
  std::size_t memory_bytes() const { return counts_.memory_bytes; }
  std::size_t file_bytes() const { return counts_.file_bytes; }

 private:
  CacheEntry::State keep(CacheEntry& entry, const char* data, std::size_t count);

  std::shared_ptr<CacheRegion> area_;
  CacheEntry* entries_;
  CacheRegion::SetCounts& counts_;
};

enum class CacheKind { off, raw, decoded };  // raw: the encoded bytes

struct InputOptions {
  CacheKind cache = CacheKind::off;
  DType type = DType::u8;                // f32: exactly as resized; u8: rounded
  std::size_t cache_bytes = 0;           // memory, per node
  int tasks_of_node = 1;                 // number of tasks that share these bytes
  std::filesystem::path cache_folder{};  // for what does not fit in memory; empty: decode again
  int parallel_reads = 1;                // samples that this process reads concurrently
  bool skip_bad = false;                 // replace it with the next good sample
  ReadOptions reading{};
};

class ImageStore {
 public:
  struct Size {
    int height = 0, width = 0, channels = 0;
  };
  // Per-thread state.
  class Worker {
   public:
    InputCounts counts;

   private:
    friend class ImageStore;
    EncodedSample sample_;
    ImageDecoder decoder_;
    Image image_;
    Resizer resizer_;
  };

  // Starts without a cache; see keep_in().
  ImageStore(std::shared_ptr<const SampleSource> source, Size size, const InputOptions& options);

  // Keeps samples in `area`, as its set number `set`. Call before the first fetch. Throws usage if
  // not even one image fits.
  void keep_in(std::shared_ptr<CacheRegion> area, std::size_t set);

  std::size_t samples() const { return samples_; }
  void limit(std::size_t samples) { samples_ = samples; }  // before the first fetch

  std::size_t image_bytes() const;

  // Writes sample i to `out`, which has room for image_bytes(), and returns its label. Thread-safe;
  // each thread needs its own worker. Throws for a bad sample, or, if bad samples are skipped, uses
  // i + 1, i + 2, ... (wrapping around).
  std::int32_t fetch(std::size_t i, void* out, Worker& worker);

  // Indices of the samples found bad so far.
  std::vector<std::size_t> bad_samples() const;
  std::string where(std::size_t i) const { return source_->where(i); }
  std::vector<LostRecords> lost() const { return source_->lost(); }

  // By all processes that share the area.
  std::size_t cached_bytes_in_memory() const { return cache_ ? cache_->memory_bytes() : 0; }
  std::size_t cached_bytes_in_file() const { return cache_ ? cache_->file_bytes() : 0; }

  // "decoded, uint8: 5656 images, 1.5 GB; 1.2 GB fit in memory, the others are decoded again"
  std::string description() const;

 private:
  std::int32_t fetch_good(std::size_t i, void* out, Worker& worker);
  void read(std::size_t i, Worker& worker);
  void decode(std::size_t i, void* out, Worker& worker);
  bool is_known_bad(std::size_t i) const;
  void remember_bad(std::size_t i, const std::string& why);

  std::shared_ptr<const SampleSource> source_;
  Size size_;
  InputOptions options_;
  std::size_t samples_;
  std::unique_ptr<SampleCache> cache_;
  Semaphore reads_;
  mutable std::mutex bad_mutex_;
  std::map<std::size_t, std::string> bad_;
};

}  // namespace paceline
