// Images of a data set at the size that a network takes, from a cache or decoded anew.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "engine/core/dtype.h"
#include "engine/core/semaphore.h"
#include "engine/input/cache/sample_cache.h"
#include "engine/input/decode/image.h"
#include "engine/input/decode/resize.h"
#include "engine/input/formats/source.h"

namespace paceline {

enum class CacheKind { off, raw, decoded };  // raw: the encoded bytes

struct InputOptions {
  CacheKind cache = CacheKind::off;
  DType type = DType::u8;                // f32: exactly as resized; u8: rounded
  std::size_t cache_bytes = 0;           // memory, of the node
  int tasks_of_node = 1;                 // that share these bytes
  std::filesystem::path cache_folder{};  // for what does not fit; empty: it is decoded again
  int parallel_reads = 1;                // samples that this process reads at once
  bool skip_bad = false;                 // take the next good sample instead
  ReadOptions reading{};
};

// What one thread did, or several together.
struct InputCounts {
  double read_seconds = 0, decode_seconds = 0, resize_seconds = 0;  // of threads, summed
  std::size_t fetched = 0, from_cache = 0, decoded = 0;             // samples
  std::size_t augmented = 0;                                        // otherwise than fetched
  std::size_t source_pixels = 0;                                    // before the resize
  std::size_t read_bytes = 0, decoded_bytes = 0;  // from files; as they leave the resize
  InputCounts& operator+=(const InputCounts& other);
};

class ImageStore {
 public:
  struct Size {
    int height = 0, width = 0, channels = 0;
  };
  // What a thread needs for itself.
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

  // Without a cache until it is given one.
  ImageStore(std::shared_ptr<const SampleSource> source, Size size, const InputOptions& options);

  // From now on samples are kept in `area` as its set number `set`; before the first fetch. Throws
  // usage where not one image fits.
  void keep_in(std::shared_ptr<CacheArea> area, std::size_t set);

  std::size_t samples() const { return samples_; }
  void limit(std::size_t samples) { samples_ = samples; }  // before the first fetch

  std::size_t image_bytes() const;

  // Sample i into `out`, which has room for image_bytes(); returns its label. From any thread, each
  // with a worker of its own. Throws what is wrong with the sample, unless bad ones are skipped:
  // then i + 1, i + 2, ... (from the start again after the last) is taken.
  std::int32_t fetch(std::size_t i, void* out, Worker& worker);

  // Samples found bad so far, by number.
  std::vector<std::size_t> bad_samples() const;
  std::string where(std::size_t i) const { return source_->where(i); }
  std::vector<LostRecords> lost() const { return source_->lost(); }

  // By all who share the area.
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
