#include "results/names.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "engine/core/error.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

constexpr char kNames[] =
#include "names.inc"
    ;

std::vector<Name> read_names(const nlohmann::json& rows) {
  std::vector<Name> names;
  for (const auto& row : rows) {
    names.push_back({row.at("name"), row.at("built"), row.at("reason"), row.value("tasks", "")});
  }
  return names;
}

}  // namespace

const Names& known_names() {
  static const Names names = [] {
    const auto json = nlohmann::json::parse(kNames);
    return Names{read_names(json.at("backends")), read_names(json.at("devices")),
                 read_names(json.at("workloads"))};
  }();
  return names;
}

const Name& find_name(std::string_view kind, std::string_view name, const std::string& where) {
  const Names& names = known_names();
  const auto& list = kind == "backend"  ? names.backends
                     : kind == "device" ? names.devices
                                        : names.workloads;
  std::vector<std::string> known;
  for (const Name& candidate : list) {
    if (candidate.name == name) return candidate;
    known.push_back(candidate.name);
  }
  throw Error(ErrorKind::usage, fmt::format("unknown {} \"{}\"", kind, name), where,
              suggestion(name, known));
}

}  // namespace paceline
