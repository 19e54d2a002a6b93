#include "engine/core/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <string>

#include "engine/core/error.h"
#include "engine/core/text.h"

namespace paceline {

Memory host_memory(std::size_t bytes) {
  constexpr std::size_t kPage = 4096;
  const std::size_t rounded = (bytes + kPage - 1) / kPage * kPage;
  if (rounded == 0) return {};
  void* data = mmap(nullptr, rounded, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) {
    throw usage_error(format_bytes(static_cast<double>(rounded)) + " of memory cannot be allocated",
                      "", "use a smaller batch or more memory");
  }
#ifdef MADV_HUGEPAGE
  madvise(data, rounded, MADV_HUGEPAGE);
#endif
  std::memset(data, 0, rounded);
  return {data, rounded, MemoryKind::host, [rounded](void* p) { munmap(p, rounded); }};
}

namespace fs = std::filesystem;

namespace {

std::optional<std::size_t> of_machine(const fs::path& meminfo) {
  std::ifstream file(meminfo);
  std::string key, rest;
  std::size_t kib = 0;
  while (file >> key >> kib && std::getline(file, rest)) {
    if (key == "MemAvailable:") return 1024 * kib;
  }
  return std::nullopt;
}

std::optional<std::size_t> number_in(const fs::path& file) {
  std::ifstream stream(file);
  std::size_t number = 0;
  if (stream >> number) return number;
  return std::nullopt;  // also "max": no limit
}

// What one group leaves. Its file cache counts as used, as far as it is active.
std::optional<std::size_t> of_group(const fs::path& group, const char* limit, const char* usage) {
  const auto most = number_in(group / limit), used = number_in(group / usage);
  if (!most || !used) return std::nullopt;
  std::size_t given_up = 0;
  std::ifstream stat(group / "memory.stat");
  std::string key;
  std::size_t value = 0;
  while (stat >> key >> value) {
    if (key == "inactive_file") given_up = value;
  }
  const std::size_t kept = *used - std::min(*used, given_up);
  return *most - std::min(*most, kept);
}

}  // namespace

std::optional<std::size_t> available_memory(const fs::path& proc, const fs::path& cgroups) {
  std::optional<std::size_t> least = of_machine(proc / "meminfo");
  const auto bound = [&](std::optional<std::size_t> other) {
    if (other) least = least ? std::min(*least, *other) : *other;
  };
  std::ifstream groups(proc / "self/cgroup");
  for (std::string line; std::getline(groups, line);) {  // "0::/a/b", or of version 1 "9:memory:/a"
    const auto first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool version_1 = controllers == "memory";
    if (!version_1 && !controllers.empty()) continue;
    const fs::path root = version_1 ? cgroups / "memory" : cgroups;
    fs::path group = fs::path(line.substr(second + 1)).relative_path();
    for (bool at_root = false; !at_root; group = group.parent_path()) {
      at_root = group.empty();
      bound(version_1 ? of_group(root / group, "memory.limit_in_bytes", "memory.usage_in_bytes")
                      : of_group(root / group, "memory.max", "memory.current"));
    }
  }
  return least;
}

std::optional<std::size_t> available_memory() {
  return available_memory("/proc", "/sys/fs/cgroup");
}

}  // namespace paceline
