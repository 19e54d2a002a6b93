// Memory, and a file for what does not fit, in which the processes of a node keep samples together,
// or one process its own.
//
// The memory is one mapping: a header, an entry for every sample of every set, then the data,
// handed out from the front and given back only with the area. Pages that nobody has written take
// no memory. Entries and header hold lock-free atomics only and are valid when all zero. Whoever
// dies while filling an entry leaves it "being filled": nobody else waits for it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "engine/input/cache/nameless_file.h"

namespace paceline {

struct CacheEntry {
  enum State : std::uint32_t { empty, being_filled, in_memory, in_file, no_room };
  // Released when the entry is whole, acquired before the rest is read.
  std::atomic<std::uint32_t> state;
  std::int32_t label;
  std::uint32_t count;  // bytes
  std::int64_t offset;  // in the data or in the file
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

class CacheArea {
 public:
  static constexpr std::size_t kMostSets = 4;

  struct Size {
    std::vector<std::size_t> samples;  // of each set
    std::size_t bytes = 0;             // for the data of all samples in memory
  };

  // How another process of this node finds an area that has no name in any file system: through the
  // open files of the process that made it.
  struct Address {
    std::int32_t process = 0, memory = -1, file = -1;  // file -1: there is none
    std::uint64_t token = 0;  // differs from area to area, so that a wrong process is noticed
  };

  enum class Reach { process, node };

  // Throws usage where so much cannot be mapped, and input where `folder` (empty: no file) cannot
  // hold the file.
  CacheArea(const Size& size, Reach reach, const std::filesystem::path& folder);

  // The area that another process made for this node, which is still there. How much it holds is
  // its maker's to say; the samples are the same. Throws input saying why it cannot be opened.
  CacheArea(const Address& address, const std::vector<std::size_t>& samples);

  ~CacheArea();
  CacheArea(const CacheArea&) = delete;
  CacheArea& operator=(const CacheArea&) = delete;

  Address address() const;  // of an area with reach `node`
  std::size_t bytes() const;

  // What SampleCache needs. `set` counts from 0 in the order of Size::samples.
  struct SetCounts {
    std::atomic<std::uint64_t> memory_bytes, file_bytes;  // kept
  };
  std::size_t samples(std::size_t set) const { return samples_[set]; }
  CacheEntry* entries(std::size_t set);
  SetCounts& counts(std::size_t set);
  std::optional<std::int64_t> take(std::size_t count);  // offset in data(); nothing: no room
  char* data() { return data_; }
  NamelessFile* file() { return file_.get(); }
  std::int64_t take_of_file(std::size_t count);  // offset in the file

 private:
  struct Header;
  class Mapping;

  Header& header() const;
  void find_parts();

  std::vector<std::size_t> samples_;
  std::unique_ptr<Mapping> mapping_;
  std::unique_ptr<NamelessFile> file_;
  char* data_ = nullptr;
};

}  // namespace paceline
