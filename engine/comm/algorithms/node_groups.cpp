#include "engine/comm/algorithms/node_groups.h"

#include <fmt/format.h>
#include <sched.h>
#include <sys/stat.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>

#include "engine/core/error.h"
#include "engine/core/hash.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

// What a rank says of itself.
struct NodeCard {
  std::uint64_t node = 0;
  cpu_set_t cpus{};
};

std::string read_identity(const char* path) {
  struct stat info {};
  if (stat(path, &info) != 0) return "-";
  return fmt::format("{}:{}", info.st_dev, info.st_ino);
}

std::uint64_t node_identity(int rank) {
  if (const auto ranks = test_ranks_per_node()) return static_cast<std::uint64_t>(rank / *ranks);
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  const std::string text =
      fmt::format("{} {} {}", boot, read_identity("/dev/shm"), read_identity("/proc/self/ns/net"));
  return hash_value(text);
}

}  // namespace

std::optional<int> test_ranks_per_node() {
  const char* text = std::getenv(kRanksPerNodeVariable);
  if (text == nullptr) return std::nullopt;
  const auto value = to_integer(text);
  if (value && *value >= 1 && *value <= 1 << 20) return static_cast<int>(*value);
  throw Error(ErrorKind::usage, fmt::format("\"{}\" is not a number of ranks", text),
              kRanksPerNodeVariable, "unset it: it is for tests");
}

NodeGroups find_nodes(Communicator& all) {
  NodeCard mine;
  mine.node = node_identity(all.rank());
  sched_getaffinity(0, sizeof mine.cpus, &mine.cpus);
  std::vector<NodeCard> cards(static_cast<std::size_t>(all.size()));
  all.all_gather(&mine, sizeof mine, cards.data());

  NodeGroups groups;
  std::map<std::uint64_t, int> leaders;
  cpu_set_t cpus{};
  for (int rank = 0; rank < all.size(); ++rank) {
    const NodeCard& card = cards[static_cast<std::size_t>(rank)];
    if (leaders.emplace(card.node, rank).second) groups.leaders.push_back(rank);
    if (card.node != mine.node) continue;
    groups.mine.push_back(rank);
    CPU_OR(&cpus, &cpus, &card.cpus);
  }
  groups.has_cpu_each = static_cast<std::size_t>(CPU_COUNT(&cpus)) >= groups.mine.size();
  return groups;
}

}  // namespace paceline
