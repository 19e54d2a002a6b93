#include "engine/comm/checks/config_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "engine/core/error.h"
#include "engine/core/hash.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

constexpr std::size_t kMostRows = 8;       // of a message
constexpr std::size_t kLongestValue = 64;  // that is shown as it is
constexpr std::size_t kMostBytes = std::size_t{1} << 20;
constexpr char kEnd = '\0';  // of a name and of a value

struct Digest {
  std::uint64_t hash = 0, bytes = 0;
};

std::string encoded(const std::vector<ConfigRow>& rows) {
  std::string text;
  for (const ConfigRow& row : rows) {
    for (const std::string* part : {&row.name, &row.value}) {
      text += part->substr(0, part->find(kEnd));
      text += kEnd;
    }
  }
  if (text.size() > kMostBytes) throw Error(ErrorKind::internal, "too much for ranks to compare");
  return text;
}

std::vector<ConfigRow> decoded(std::string_view text) {
  std::vector<ConfigRow> rows;
  const auto parts = split(text, kEnd);
  for (std::size_t i = 0; i + 1 < parts.size(); i += 2) rows.push_back({parts[i], parts[i + 1]});
  return rows;
}

std::vector<std::vector<ConfigRow>> gather_rows(Communicator& communicator, const std::string& mine,
                                                const std::vector<Digest>& digests) {
  std::uint64_t most = 0;
  for (const Digest& digest : digests) most = std::max(most, digest.bytes);
  if (most > kMostBytes)
    throw Error(ErrorKind::mismatch, "ranks cannot be compared: their configurations are too large",
                "", "start all ranks with the same program");
  std::string padded = mine, all(most * digests.size(), kEnd);
  padded.resize(most, kEnd);
  communicator.all_gather(padded.data(), most, all.data());
  std::vector<std::vector<ConfigRow>> of_ranks;
  for (std::size_t r = 0; r < digests.size(); ++r) {
    of_ranks.push_back(decoded(std::string_view(all).substr(r * most, digests[r].bytes)));
  }
  return of_ranks;
}

std::string value_in(const std::vector<ConfigRow>& rows, const std::string& name) {
  const auto found = std::find_if(rows.begin(), rows.end(),
                                  [&](const ConfigRow& row) { return row.name == name; });
  if (found == rows.end()) return "not there";
  if (found->value.empty()) return "none";
  return found->value.size() > kLongestValue ? hash_hex(found->value) : found->value;
}

std::vector<std::string> names_of(const std::vector<std::vector<ConfigRow>>& of_ranks) {
  std::vector<std::string> names;
  for (const auto& rows : of_ranks) {
    for (const ConfigRow& row : rows) {
      if (std::find(names.begin(), names.end(), row.name) == names.end()) names.push_back(row.name);
    }
  }
  return names;
}

// "ranks 0-2 0.001, rank 3 0.01"; empty where all have the same value.
std::string values_text(const std::vector<std::vector<ConfigRow>>& of_ranks,
                        const std::string& name) {
  std::vector<std::pair<std::string, std::vector<int>>> groups;
  for (std::size_t r = 0; r < of_ranks.size(); ++r) {
    const std::string value = value_in(of_ranks[r], name);
    auto group = std::find_if(groups.begin(), groups.end(),
                              [&](const auto& entry) { return entry.first == value; });
    if (group == groups.end()) group = groups.insert(groups.end(), {value, {}});
    group->second.push_back(static_cast<int>(r));
  }
  if (groups.size() < 2) return "";
  std::vector<std::string> parts;
  for (const auto& [value, ranks] : groups) parts.push_back(ranks_text(ranks) + " " + value);
  return join(parts, ", ");
}

}  // namespace

std::string ranks_text(const std::vector<int>& ranks) {
  std::vector<std::string> runs;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    runs.push_back(last == i ? std::to_string(ranks[i])
                             : fmt::format("{}-{}", ranks[i], ranks[last]));
    i = last + 1;
  }
  return (ranks.size() == 1 ? "rank " : "ranks ") + join(runs, ", ");
}

std::string differences(const std::vector<std::vector<ConfigRow>>& of_ranks) {
  std::vector<std::string> rows;
  std::size_t more = 0;
  for (const std::string& name : names_of(of_ranks)) {
    const std::string values = values_text(of_ranks, name);
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
  const bool agree = std::all_of(digests.begin(), digests.end(), [&](const Digest& other) {
    return other.hash == digests[0].hash;
  });
  if (agree) return;
  const std::string rows = differences(gather_rows(communicator, text, digests));
  wait_until_all_know(communicator);
  throw Error(ErrorKind::mismatch, "ranks have different configurations: " + rows, "",
              "start all ranks with the same program, command and data");
}

}  // namespace paceline
