#include "analysis/origin.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "engine/core/text.h"

namespace paceline {

namespace {

std::string text_at(const Json& json, const char* pointer) {
  const Json::json_pointer path(pointer);
  return json.contains(path) && json.at(path).is_string() ? json.at(path).get<std::string>() : "";
}

// Each once, in the order of ranks.
std::string names_of_hosts(const Json& record) {
  const Json::json_pointer path("/provenance/hosts");
  if (!record.contains(path) || !record.at(path).is_array()) return "";
  std::vector<std::string> names;
  for (const Json& host : record.at(path)) {
    if (!host.is_string()) continue;
    if (std::find(names.begin(), names.end(), host.get<std::string>()) == names.end()) {
      names.push_back(host.get<std::string>());
    }
  }
  return join(names, ", ");
}

std::string gpu_of(const Json& record) {
  const Json::json_pointer first("/gpus/0");
  if (!record.contains(first) || !record.at(first).is_object()) return "";
  const std::string driver = text_at(record, "/gpus/0/driver");
  return text_at(record, "/gpus/0/name") + (driver.empty() ? "" : ", driver " + driver);
}

std::string pair_of(const std::string& a, const std::string& b) {
  return a + (a.empty() || b.empty() ? "" : ", ") + b;
}

}  // namespace

const std::vector<std::string>& origin_names() {
  static const std::vector<std::string> names = {
      "source", "system",   "machine", "GPU",     "hosts",     "cluster", "modules",
      "build",  "compiler", "library", "backend", "transport", "data",    "weights"};
  return names;
}

std::vector<std::pair<std::string, std::string>> origin_of(const Record& record) {
  const Json& json = record.json();
  const auto at = [&](const char* pointer) { return text_at(json, pointer); };
  const std::string data_hash = at("/provenance/data_hash");
  const std::pair<const char*, std::string> all[] = {
      {"source", at("/provenance/source")},
      {"system", pair_of(at("/provenance/stack"), at("/provenance/hardware"))},
      {"machine", at("/provenance/cpu_model")},
      {"GPU", gpu_of(json)},
      {"hosts", names_of_hosts(json)},
      {"cluster",
       pair_of(at("/provenance/allocation/cluster"), at("/provenance/allocation/partition"))},
      {"modules", at("/provenance/allocation/modules")},
      {"build", record.build()},
      {"compiler",
       pair_of(at("/provenance/compiler"), std::string(trim(at("/provenance/compiler_flags"))))},
      {"library", at("/provenance/libraries")},
      {"backend", at("/provenance/backend_asked")},
      {"transport", at("/provenance/backend_used")},
      {"data", pair_of(at("/provenance/data_set"), data_hash.empty() ? "" : "hash " + data_hash)},
      {"weights", at("/provenance/weights_hash")}};
  std::vector<std::pair<std::string, std::string>> found;
  for (const auto& [name, text] : all) {
    if (!text.empty()) found.emplace_back(name, text);
  }
  return found;
}

}  // namespace paceline
