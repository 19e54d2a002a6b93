#include "engine/input/cache/image_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "engine/core/clock.h"
#include "engine/core/error.h"
#include "engine/core/log.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

constexpr std::size_t kLoggedBadSamples = 5;

std::string bytes_text(std::size_t bytes) {
  return format_bytes(static_cast<double>(bytes));
}

// Adds the time since it was made.
class Stopwatch {
 public:
  explicit Stopwatch(double& seconds) : seconds_(seconds), start_(now_seconds()) {}
  ~Stopwatch() { seconds_ += now_seconds() - start_; }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  double& seconds_;
  double start_;
};

}  // namespace

ImageStore::ImageStore(std::shared_ptr<const SampleSource> source, Size size,
                       const InputOptions& options)
    : source_(std::move(source)),
      size_(size),
      options_(options),
      samples_(source_->samples()),
      reads_(std::max(1, options.parallel_reads)) {}

void ImageStore::keep_in(std::shared_ptr<CacheRegion> area, std::size_t set) {
  if (options_.cache == CacheKind::decoded && !area->file() && image_bytes() > area->bytes()) {
    throw usage_error(fmt::format("a cache of {} cannot hold one decoded image of {}",
                                  bytes_text(area->bytes()), bytes_text(image_bytes())),
                      "--cache-mb",
                      "raise it, run fewer tasks per node, add --cache-dir, or use --cache off");
  }
  cache_ = std::make_unique<SampleCache>(std::move(area), set);
}

std::size_t ImageStore::image_bytes() const {
  return static_cast<std::size_t>(size_.height) * static_cast<std::size_t>(size_.width) *
         static_cast<std::size_t>(size_.channels) * size_of(options_.type);
}

std::int32_t ImageStore::fetch(std::size_t i, void* out, Worker& worker) {
  ++worker.counts.fetched;
  if (!options_.skip_bad) return fetch_good(i, out, worker);
  for (std::size_t k = 0; k < samples_; ++k) {
    const std::size_t candidate = (i + k) % samples_;
    if (is_known_bad(candidate)) continue;
    try {
      return fetch_good(candidate, out, worker);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::input) throw;
      remember_bad(candidate, error.what());
    }
  }
  throw input_error(fmt::format("all {} samples are bad", samples_), where(0),
                    "get the data set again");
}

std::int32_t ImageStore::fetch_good(std::size_t i, void* out, Worker& worker) {
  const bool decoded = options_.cache == CacheKind::decoded;
  EncodedSample& sample = worker.sample_;
  const std::size_t kept = cache_ ? cache_->size(i) : 0;
  if (kept && decoded) {
    cache_->get(i, static_cast<char*>(out));
    ++worker.counts.from_cache;
    return cache_->label(i);
  }
  if (kept) {
    sample.bytes.resize(kept);
    cache_->get(i, sample.bytes.data());
    sample.image = sample.bytes;
    sample.label = cache_->label(i);
    sample.height = sample.width = 0;
    ++worker.counts.from_cache;
  } else {
    read(i, worker);
  }
  decode(i, out, worker);
  if (cache_ && decoded) {
    cache_->put(i, sample.label, static_cast<const char*>(out), image_bytes());
  }
  if (cache_ && !decoded && !kept && sample.height == 0) {
    cache_->put(i, sample.label, sample.image.data(), sample.image.size());
  }
  return sample.label;
}

void ImageStore::read(std::size_t i, Worker& worker) {
  const Stopwatch watch(worker.counts.read_seconds);
  const Permit permit(reads_);
  source_->read(i, worker.sample_);
  worker.counts.read_bytes += worker.sample_.bytes.size();
}

void ImageStore::decode(std::size_t i, void* out, Worker& worker) {
  const EncodedSample& sample = worker.sample_;
  Image& image = worker.image_;
  {
    const Stopwatch watch(worker.counts.decode_seconds);
    if (sample.height > 0) {
      if (size_.channels != 3) {
        throw input_error("the image is in RGB, but this network needs gray", where(i),
                          "give the data set of this workload");
      }
      image.resize(sample.height, sample.width, 3);
      std::memcpy(image.pixels.data(), sample.image.data(), sample.image.size());
    } else {
      worker.decoder_.decode(sample.image, size_.channels, image, [&] { return where(i); });
    }
  }
  const Stopwatch watch(worker.counts.resize_seconds);
  ++worker.counts.decoded;
  worker.counts.source_pixels +=
      static_cast<std::size_t>(image.height) * static_cast<std::size_t>(image.width);
  worker.counts.decoded_bytes += image_bytes();
  const bool fits = image.height == size_.height && image.width == size_.width;
  if (options_.type == DType::f32) {
    worker.resizer_.resize(image, size_.height, size_.width, static_cast<float*>(out));
  } else if (fits) {
    std::memcpy(out, image.pixels.data(), image_bytes());
  } else {
    worker.resizer_.resize(image, size_.height, size_.width, static_cast<std::uint8_t*>(out));
  }
}

bool ImageStore::is_known_bad(std::size_t i) const {
  std::lock_guard lock(bad_mutex_);
  return bad_.contains(i);
}

void ImageStore::remember_bad(std::size_t i, const std::string& why) {
  std::lock_guard lock(bad_mutex_);
  if (!bad_.emplace(i, why).second) return;
  if (bad_.size() <= kLoggedBadSamples) log::warning("bad sample skipped: {}", why);
}

std::vector<std::size_t> ImageStore::bad_samples() const {
  std::lock_guard lock(bad_mutex_);
  return mapped(bad_, [](const auto& bad) { return bad.first; });
}

std::string ImageStore::description() const {
  if (!cache_) return fmt::format("{} images, decoded each time", samples_);
  const std::size_t room = cache_->area().bytes();
  const std::string otherwise =
      options_.cache_folder.empty()
          ? "decoded again each time"
          : fmt::format("kept in a file in {}", options_.cache_folder.string());
  if (options_.cache == CacheKind::raw) {
    return fmt::format(
        "{} images, encoded ones kept in up to {} of memory, what does not fit is {}", samples_,
        bytes_text(room), options_.cache_folder.empty() ? "read again each time" : otherwise);
  }
  const std::size_t wanted = samples_ * image_bytes();
  const std::string size = fmt::format("{} decoded images of {}, {} in all", samples_,
                                       to_string(options_.type), bytes_text(wanted));
  if (wanted <= room) return size + ", kept in memory";
  return fmt::format("{}: up to {} fit in memory, the others are {}", size, bytes_text(room),
                     otherwise);
}

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
