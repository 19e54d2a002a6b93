#include "engine/comm/checks/config_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>

#include "engine/core/error.h"
#include "engine/core/hash.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

constexpr std::size_t kMostRows = 8;       // of a message
constexpr std::size_t kMostGroups = 8;     // whose rows are compared
constexpr std::size_t kLongestValue = 64;  // that is shown as it is
constexpr std::size_t kMostBytes = std::size_t{1} << 20;
constexpr char kEnd = '\0';  // of a name and of a value

struct Digest {
  std::uint64_t hash = 0, bytes = 0;  // of the rows
};

std::string encoded(const std::vector<ConfigRow>& rows) {
  std::string text;
  for (const ConfigRow& row : rows) {
    for (const std::string* part : {&row.name, &row.value}) {
      text += part->substr(0, part->find(kEnd));
      text += kEnd;
    }
  }
  if (text.size() > kMostBytes) throw internal_error("too much for ranks to compare");
  return text;
}

std::vector<ConfigRow> decoded(std::string_view text) {
  std::vector<ConfigRow> rows;
  const auto parts = split(text, kEnd);
  for (std::size_t i = 0; i + 1 < parts.size(); i += 2) rows.push_back({parts[i], parts[i + 1]});
  return rows;
}

// By digest, the largest group first, of equal ones that of the first rank.
std::vector<ConfigGroup> group_digests(const std::vector<Digest>& digests) {
  std::map<std::uint64_t, std::size_t> place;
  std::vector<ConfigGroup> groups;
  for (std::size_t rank = 0; rank < digests.size(); ++rank) {
    const auto [it, first] = place.try_emplace(digests[rank].hash, groups.size());
    if (first) groups.emplace_back();
    groups[it->second].ranks.push_back(static_cast<int>(rank));
  }
  std::ranges::stable_sort(groups, [](const ConfigGroup& a, const ConfigGroup& b) {
    return a.ranks.size() > b.ranks.size();
  });
  return groups;
}

// The first rank of each group tells the others.
void share_rows(Communicator& communicator, std::vector<ConfigGroup>& groups,
                const std::string& mine, const std::vector<Digest>& digests) {
  for (ConfigGroup& group : groups) {
    const int sender = group.ranks.front();
    const std::uint64_t bytes = digests[static_cast<std::size_t>(sender)].bytes;
    if (bytes > kMostBytes) {
      throw Error(ErrorKind::mismatch,
                  "ranks cannot be compared: their configurations are too large", "",
                  "start all ranks with the same program");
    }
    std::string text = sender == communicator.rank() ? mine : std::string(bytes, kEnd);
    communicator.broadcast(text.data(), text.size(), sender);
    group.rows = decoded(text);
  }
}

std::string value_in(const std::vector<ConfigRow>& rows, const std::string& name) {
  const auto found = std::ranges::find(rows, name, &ConfigRow::name);
  if (found == rows.end()) return "not there";
  if (found->value.empty()) return "none";
  return found->value.size() > kLongestValue ? hash_hex(found->value) : found->value;
}

std::vector<std::string> name_groups(const std::vector<ConfigGroup>& groups) {
  return each_once(mapped(flattened(groups, &ConfigGroup::rows), &ConfigRow::name));
}

// "ranks 0-2 0.001, rank 3 0.01"; empty where all have the same value.
std::string values_text(const std::vector<ConfigGroup>& groups, const std::string& name) {
  std::vector<std::pair<std::string, std::vector<int>>> values;
  for (const ConfigGroup& group : groups) {
    const std::string value = value_in(group.rows, name);
    auto same =
        std::ranges::find_if(values, [&](const auto& entry) { return entry.first == value; });
    if (same == values.end()) same = values.insert(values.end(), {value, {}});
    same->second.insert(same->second.end(), group.ranks.begin(), group.ranks.end());
  }
  if (values.size() < 2) return "";
  for (auto& [value, ranks] : values) std::sort(ranks.begin(), ranks.end());
  std::ranges::sort(
      values, [](const auto& a, const auto& b) { return a.second.front() < b.second.front(); });
  std::vector<std::string> parts;
  for (const auto& [value, ranks] : values) parts.push_back(rank_ranges(ranks) + " " + value);
  return join(parts, ", ");
}

}  // namespace

std::string rank_ranges(const std::vector<int>& ranks) {
  return (ranks.size() == 1 ? "rank " : "ranks ") + names_text(number_ranges(ranks));
}

std::string differences(const std::vector<ConfigGroup>& groups) {
  std::vector<std::string> rows;
  std::size_t more = 0;
  for (const std::string& name : name_groups(groups)) {
    const std::string values = values_text(groups, name);
    if (values.empty()) continue;
    if (rows.size() < kMostRows) {
      rows.push_back(name + ": " + values);
    } else {
      ++more;
    }
  }
  if (more > 0) rows.push_back(fmt::format("and {} more", more));
  return join(rows, "; ");
}

void wait_until_all_know(Communicator& communicator) noexcept {
  try {
    communicator.barrier();
  } catch (const std::exception&) {  // somebody has ended: so it knew
  }
}

void check_same_config(Communicator& communicator, const std::vector<ConfigRow>& mine) {
  const std::string text = encoded(mine);
  const Digest digest{hash_value(text), text.size()};
  std::vector<Digest> digests(static_cast<std::size_t>(communicator.size()));
  communicator.all_gather(&digest, sizeof digest, digests.data());
  std::vector<ConfigGroup> groups = group_digests(digests);
  if (groups.size() == 1) return;
  const std::size_t others = groups.size() - std::min(groups.size(), kMostGroups);
  groups.resize(groups.size() - others);
  share_rows(communicator, groups, text, digests);
  std::string rows = differences(groups);
  if (others > 0) rows += fmt::format("; and {} more groups of ranks that differ", others);
  wait_until_all_know(communicator);
  throw Error(ErrorKind::mismatch, "ranks have different configurations: " + rows, "",
              "start all ranks with the same program, command and data");
}

}  // namespace paceline
