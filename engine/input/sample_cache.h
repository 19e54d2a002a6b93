// Bytes of samples, kept once they are there: in memory within a budget, then in a file.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace paceline {

// Memory that the caches of this process may take together.
class MemoryBudget {
 public:
  explicit MemoryBudget(std::size_t bytes) : bytes_(bytes) {}
  std::size_t bytes() const { return bytes_; }
  bool take(std::size_t count);
  void give_back(std::size_t count) { used_ -= count; }

 private:
  const std::size_t bytes_;
  std::atomic<std::size_t> used_{0};
};

// A file without a name, so that nothing is left behind whatever happens. Throws input if `folder`
// cannot hold one.
class NamelessFile {
 public:
  explicit NamelessFile(const std::filesystem::path& folder);
  ~NamelessFile();
  NamelessFile(const NamelessFile&) = delete;
  NamelessFile& operator=(const NamelessFile&) = delete;

  // Appends; the offset, or -1 where there is no more space. From any thread.
  std::int64_t append(const char* data, std::size_t count);
  void read(std::int64_t offset, std::size_t count, char* out) const;  // throws input
  std::size_t bytes() const { return static_cast<std::size_t>(end_.load()); }

 private:
  std::filesystem::path folder_;
  int descriptor_ = -1;
  std::atomic<std::int64_t> end_{0};
};

// All calls may come from several threads at once.
class SampleCache {
 public:
  // `file` may be null: what does not fit in memory is then not kept.
  SampleCache(std::size_t samples, std::shared_ptr<MemoryBudget> memory,
              std::shared_ptr<NamelessFile> file);
  ~SampleCache();
  SampleCache(const SampleCache&) = delete;
  SampleCache& operator=(const SampleCache&) = delete;

  // Bytes of sample i, 0 if it is not kept. What is kept stays.
  std::size_t size(std::size_t i) const;
  void get(std::size_t i, char* out) const;
  std::int32_t label(std::size_t i) const { return entries_[i].label; }

  // Does nothing where sample i is kept, is being kept, or found no room before.
  void put(std::size_t i, std::int32_t label, const char* data, std::size_t count);

  std::size_t memory_bytes() const { return memory_bytes_; }
  std::size_t file_bytes() const { return file_bytes_; }

 private:
  enum class State : std::uint8_t { empty, being_filled, in_memory, in_file, no_room };
  struct Entry {
    std::atomic<State> state{State::empty};
    std::int32_t label = 0;
    std::uint32_t count = 0;
    std::unique_ptr<char[]> memory;
    std::int64_t offset = 0;
  };

  State keep(Entry& entry, const char* data, std::size_t count);

  std::shared_ptr<MemoryBudget> budget_;
  std::shared_ptr<NamelessFile> file_;
  std::vector<Entry> entries_;
  std::atomic<std::size_t> memory_bytes_{0}, file_bytes_{0};
};

}  // namespace paceline
