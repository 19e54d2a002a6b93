#include "engine/core/available_memory.h"

#include <algorithm>
#include <fstream>
#include <string>

namespace paceline {

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
