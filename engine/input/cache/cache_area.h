// A cache of samples: memory, and a file for the rest. Shared by the processes of a node, or
// private to one process.
//
// The memory is one mapping: a header, an entry for every sample of every set, then the data. Data
// is allocated from the front, and freed only with the whole area. Unwritten pages take no memory.
// Entries and header contain only lock-free atomics, for which zero is valid. If a process dies
// while it fills an entry, the entry stays "being filled", and no other process waits for it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

namespace paceline {

// An unlinked file, which disappears with the process.

class UnlinkedFile {
 public:
  // Throws input if it cannot be created in `folder`.
  explicit UnlinkedFile(const std::filesystem::path& folder);
  // Takes ownership of an open file. `name` is for error messages.
  UnlinkedFile(int descriptor, std::filesystem::path name);
  ~UnlinkedFile();
  UnlinkedFile(const UnlinkedFile&) = delete;
  UnlinkedFile& operator=(const UnlinkedFile&) = delete;

  int descriptor() const { return descriptor_; }

  // Thread-safe. False: no space left.
  bool write(std::int64_t offset, const char* data, std::size_t count);
  void read(std::int64_t offset, std::size_t count, char* out) const;  // throws input

 private:
  std::filesystem::path place_;
  int descriptor_ = -1;
};

struct CacheEntry {
  enum State : std::uint32_t { empty, being_filled, in_memory, in_file, no_room };
  // Store with release after writing the entry; load with acquire before reading it.
  std::atomic<std::uint32_t> state;
  std::int32_t label;
  std::uint32_t count;  // bytes
  std::int64_t offset;  // in the data, or in the file
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

class CacheRegion {
 public:
  static constexpr std::size_t kMostSets = 4;

  struct Size {
    std::vector<std::size_t> samples;  // one per set
    std::size_t bytes = 0;             // data bytes for all samples in memory
  };

  // How another process of this node opens an area without a file name: through the open files of
  // the process that created it.
  struct Address {
    std::int32_t process = 0, memory = -1, file = -1;  // unique per area, to detect a wrong process
    std::uint64_t token = 0;  // differs from area to area, so that a wrong process is noticed
  };

  enum class Reach { process, node };

  // Throws usage if the mapping fails, and input if `folder` (empty: no file) cannot hold the file.
  CacheRegion(const Size& size, Reach reach, const std::filesystem::path& folder);

  // Opens an area that another, still running process of this node created. Its creator determines
  // the sizes; the samples must be the same. Throws input with the reason if it cannot be opened.
  CacheRegion(const Address& address, const std::vector<std::size_t>& samples);

  ~CacheRegion();
  CacheRegion(const CacheRegion&) = delete;
  CacheRegion& operator=(const CacheRegion&) = delete;

  Address address() const;  // for areas with reach `node`
  std::size_t bytes() const;

  // For SampleCache. `set` is an index into Size::samples.
  struct SetCounts {
    std::atomic<std::uint64_t> memory_bytes, file_bytes;  // stored bytes
  };
  std::size_t samples(std::size_t set) const { return samples_[set]; }
  CacheEntry* entries(std::size_t set);
  SetCounts& counts(std::size_t set);
  // allocates; an offset in data(); empty: full.
  std::optional<std::int64_t> take(std::size_t count);
  char* data() { return data_; }
  UnlinkedFile* file() { return file_.get(); }
  std::int64_t take_of_file(std::size_t count);  // allocates; an offset in the file

 private:
  struct Header;
  class Mapping;

  Header& header() const;
  void find_parts();

  std::vector<std::size_t> samples_;
  std::unique_ptr<Mapping> mapping_;
  std::unique_ptr<UnlinkedFile> file_;
  char* data_ = nullptr;
};

}  // namespace paceline
