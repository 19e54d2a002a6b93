// Blocks of memory with a kind. Blocks are zeroed, aligned to 4096 bytes, and touched once when
// allocated, so that steps cause no page faults.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>

namespace paceline {

enum class MemoryKind { host, pinned, device };

class Memory {
  struct Releaser {
    std::function<void(void*)> release;
    void operator()(void* data) const {
      if (release) release(data);
    }
  };

 public:
  Memory() : data_(nullptr, Releaser{}) {}
  // `release` is called once with the pointer. Empty: borrowed memory.
  Memory(void* data, std::size_t bytes, MemoryKind kind, std::function<void(void*)> release)
      : data_(data, Releaser{std::move(release)}), bytes_(bytes), kind_(kind) {}

  std::byte* data() const { return static_cast<std::byte*>(data_.get()); }
  std::size_t bytes() const { return bytes_; }
  MemoryKind kind() const { return kind_; }

 private:
  std::unique_ptr<void, Releaser> data_;
  std::size_t bytes_ = 0;
  MemoryKind kind_ = MemoryKind::host;
};

// Host memory, first touched by the calling thread, so on its NUMA node. Throws usage if there is
// too little.
Memory host_memory(std::size_t bytes);

// How much more memory this process can allocate.

// The kernel's MemAvailable, which includes reclaimable file cache, limited by the control groups
// of this process (e.g. a job's limit). Empty if neither is known.
std::optional<std::size_t> available_memory();

// The same with other roots for /proc and /sys/fs/cgroup, for tests.
std::optional<std::size_t> available_memory(const std::filesystem::path& proc,
                                            const std::filesystem::path& cgroups);

}  // namespace paceline
