#include "results/import/keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <type_traits>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/core/utf8.h"
#include "results/run_record.h"

namespace paceline {

namespace {

constexpr std::size_t kLongestText = 200;  // it may become part of a folder's name

// Sections whose members somebody can state: no lists over ranks, nothing about other files.
const std::set<std::string> kSections = {"layout",  "provenance", "timing", "throughput", "plan",
                                         "quality", "collective", "flags",  "energy",     "probe"};
const std::set<std::string> kStated = {"layout", "provenance", "plan", "collective", "flags"};

// Walks the members of structs as reading and writing of records do.
class KeyCollector {
 public:
  template <typename T>
  void operator()(const char* key, T& member, Bounds = {}) {
    if constexpr (std::is_same_v<T, std::string>) {
      add(key, true);
    } else if constexpr (std::is_arithmetic_v<T>) {
      add(key, false);
    } else if constexpr (requires { member.fields(*this); }) {
      if (!section_.empty() || !kSections.contains(key)) return;
      section_ = key;
      member.fields(*this);
      section_.clear();
    } else if constexpr (requires { member.emplace(); }) {
      (*this)(key, member.emplace());
    }  // else a list
  }
  template <typename T>
  void always(const char* key, T& member) {
    (*this)(key, member);
  }
  template <typename T>
  void beside(T& members) {
    members.fields(*this);
  }
  void loss(const char*, std::optional<double>&) {}

  std::vector<RecordKey> all() const {
    std::vector<RecordKey> keys = {{"workload", {"/parameters/workload"}, true, false}};
    std::set<std::string> used;
    for (const Parameter& parameter : parameters()) {
      RecordKey& key = keys.emplace_back();
      key.name = parameter.name;
      key.is_text = parameter.kind == ValueKind::text;
      key.to = {"/parameters/" + key.name};
      for (const RecordKey& found : found_) {
        const bool same =
            found.to[0] == "/layout/" + key.name || found.to[0] == "/plan/" + key.name;
        if (!same) continue;
        key.to.push_back(found.to[0]);
        used.insert(found.to[0]);
      }
    }
    std::map<std::string, int> counts;
    for (const RecordKey& key : keys) ++counts[key.name];
    for (const RecordKey& key : found_) counts[key.name] += used.contains(key.to[0]) ? 0 : 1;
    for (RecordKey key : found_) {
      if (used.contains(key.to[0])) continue;
      if (counts[key.name] > 1) {
        key.name = key.to[0].substr(1);
        std::replace(key.name.begin(), key.name.end(), '/', '.');
      }
      keys.push_back(std::move(key));
    }
    return keys;
  }

 private:
  void add(const char* key, bool is_text) {
    const bool whole_record = section_.empty();
    if (whole_record && std::string_view(key) != "utilization") return;
    found_.push_back(
        {key,
         {whole_record ? fmt::format("/{}", key) : fmt::format("/{}/{}", section_, key)},
         is_text,
         whole_record || !kStated.contains(section_)});
  }

  std::string section_;
  std::vector<RecordKey> found_;
};

const std::vector<RecordKey>& record_keys() {
  static const std::vector<RecordKey> keys = [] {
    KeyCollector collector;
    RunRecord record;
    record.sections(collector);
    return collector.all();
  }();
  return keys;
}

// The nearest, or those that most files have.
std::string suggested_key(const std::string& name) {
  std::vector<std::string> names;
  for (const RecordKey& key : record_keys()) names.push_back(key.name);
  if (nearest(name, names)) return suggestion(name, names);
  for (const std::string& known : names) {
    if (name.size() > 3 && known.find(name) != known.npos) return "did you mean \"" + known + "\"?";
  }
  return "often used: gpus, nodes, fit_seconds, samples_per_second, batch_per_replica, workload, "
         "hardware; docs/import.md lists more";
}

}  // namespace

const RecordKey& record_key_named(std::string_view name, std::string_view option) {
  for (const RecordKey& key : record_keys()) {
    if (key.name == name) return key;
  }
  throw Error(ErrorKind::usage, "records have no \"" + std::string(name) + "\"",
              std::string(option), suggested_key(std::string(name)));
}

void set_value(Json& record, const std::string& assignment) {
  const std::size_t equals = assignment.find('=');
  const std::string name = assignment.substr(0, equals);
  if (equals == assignment.npos || equals == 0 || equals + 1 == assignment.size()) {
    throw Error(ErrorKind::usage, "\"" + assignment + "\" is not KEY=VALUE", "--set",
                "write for example --set gpus=8");
  }
  const std::string value = assignment.substr(equals + 1), where = "--set " + name;
  const RecordKey& key = record_key_named(name, "--set");
  if (key.is_result) {
    throw Error(ErrorKind::usage, name + " is a result, which only a file can give", where,
                "import it with the file, or leave it out");
  }
  if (const std::string fault = fault_of_text(value);
      !fault.empty() || value.size() > kLongestText) {
    throw Error(ErrorKind::usage,
                "the value " + (fault.empty() ? "has more than 200 characters" : fault), where,
                "give one short line");
  }
  if (!key.is_text && value != "true" && value != "false" && !to_real(value)) {
    throw Error(ErrorKind::usage, "\"" + value + "\" is not a number", where, "give one");
  }
  put_cell(record, {.to = key.to, .is_text = key.is_text, .replaces = true}, value, where);
}

}  // namespace paceline
