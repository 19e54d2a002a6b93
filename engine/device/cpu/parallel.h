// The threads of one replica. The only place in Paceline that uses OpenMP. oneDNN runs on the same
// threads.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <type_traits>
#include <vector>

namespace paceline::cpu {

class Parallel {
 public:
  // Call on the replica's own thread, before its first parallel region. Binds the calling thread
  // and its helpers to `cpus`, one each. Empty: no binding. Throws usage if OpenMP limits the team
  // to fewer threads. A plane larger than `kept_bytes` has left the caches when it is read again;
  // the default is half of the last cache, and at most 8 MiB a thread.
  Parallel(int threads, const std::vector<int>& cpus)
      : Parallel(threads, cpus, kept_in_cache(threads)) {}
  Parallel(int threads, const std::vector<int>& cpus, std::size_t kept_bytes);

  int threads() const { return threads_; }
  // Whether a plane of so many bytes is best written past the caches (lanes_body.h).
  bool streams(std::size_t bytes) const { return bytes > kept_bytes_; }

  // Calls body(begin, end) on contiguous ranges of [0, count), each a multiple of `grain` except
  // the last. Uses only this thread if a helper would get less than `least`. The ranges depend only
  // on the number of threads, so sums are reproducible.
  template <typename Body>
  void ranges(std::size_t count, std::size_t grain, std::size_t least, Body&& body) const {
    if (threads_ == 1 || count < 2 * least) {
      if (count > 0) body(std::size_t{0}, count);
      return;
    }
    each([&](int thread) {
      const auto [begin, end] = share(count, grain, thread);
      if (begin < end) body(begin, end);
    });
  }

  // Calls body(thread) once on every thread.
  template <typename Body>
  void each(Body&& body) const {
    if (threads_ == 1) return body(0);
    run([](void* context,
           int thread) { (*static_cast<std::remove_reference_t<Body>*>(context))(thread); },
        &body);
  }

  struct Range {
    std::size_t begin, end;
  };
  Range share(std::size_t count, std::size_t grain, int thread) const {
    const std::size_t grains = (count + grain - 1) / grain;
    const auto n = static_cast<std::size_t>(threads_), t = static_cast<std::size_t>(thread);
    return {std::min(count, grains * t / n * grain), std::min(count, grains * (t + 1) / n * grain)};
  }

 private:
  static std::size_t kept_in_cache(int threads);
  void run(void (*body)(void*, int), void* context) const;

  int threads_;
  std::size_t kept_bytes_;
};

// Alignment to cache lines, and division into parts.

constexpr std::size_t kLineBytes = 64;

constexpr std::size_t whole_lines(std::size_t bytes) {
  return (bytes + kLineBytes - 1) / kLineBytes * kLineBytes;
}

// Start of part `index` when `count` is divided into `parts` nearly equal parts.
constexpr std::size_t part_begin(std::size_t count, std::size_t parts, std::size_t index) {
  return count * index / parts;
}

// Prefetches memory that is used later, in parts, while tiles are multiplied. The hardware
// prefetcher does not recognise the access pattern of tiles over planes.

class FetchAhead {
 public:
  struct Part {
    const std::byte* from = nullptr;
    std::size_t lines = 0;
  };

  // Splits the memory into parts for this many tiles.
  explicit FetchAhead(std::size_t tiles) : tiles_(tiles) {}

  void add(const void* from, std::size_t bytes) {
    if (streams_ == streams_at_.size()) return;
    streams_at_[streams_++] = {static_cast<const std::byte*>(from), bytes / kLineBytes};
    lines_ += bytes / kLineBytes;
  }

  // The part for the next tile; ends at the end of a stream.
  Part next() {
    std::size_t begin = lines_ * done_ / tiles_, end = lines_ * (done_ + 1) / tiles_;
    ++done_;
    for (std::size_t i = 0; i < streams_; ++i) {
      const Part& stream = streams_at_[i];
      if (begin < stream.lines) {
        return {stream.from + begin * kLineBytes, std::min(end, stream.lines) - begin};
      }
      begin -= stream.lines;
      end -= stream.lines;
    }
    return {};
  }

 private:
  std::array<Part, 5> streams_at_{};
  std::size_t tiles_, streams_ = 0, lines_ = 0, done_ = 0;
};

}  // namespace paceline::cpu
