#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <type_traits>

#include "engine/core/error.h"
#include "engine/core/pattern.h"
#include "engine/core/text.h"
#include "results/import/lines.h"
#include "results/run_record.h"

namespace paceline {

namespace {

constexpr int kMostLabels = 3;  // one before the other

// At the beginning of a line.
std::vector<Pattern> label_patterns() {
  std::vector<Pattern> patterns;
  for (const char* pattern :
       {// "2026-03-01T10:00:00.123456789Z ", "2026-03-01 10:00:00,123 ", "Nov 25 21:00:00 ", and
        // what follows it: "stdout F " of Kubernetes, "01O " of GitLab, "n1 job[3]: " of syslog
        R"(^(?:\d{4}-\d\d-\d\d[T ]|[A-Za-z]{3} [ \d]\d )?\d\d:\d\d:\d\d(?:[.,]\d*)?)"
        R"((?:Z|[+-]\d\d:?\d\d)?)"
        R"((?: std(?:out|err) [FP]| [\da-f]{2}[OE]| [\w.-]+ [\w./-]+\[\d+\]:)?(?: |$))",
        R"(^[^<{"]*<(?:stdout|stderr|stddiag)>:)",    // "[1,0]<stdout>:"
        R"(^\[[^\[\]{}"]+\](?::| |$))",               // "[pod/train-0/main] ", "[default0]:"
        R"(^[^ |,#"{]+ *\|(?: |$))",                  // "train-1  | "
        R"(^(?: *\d+|[A-Za-z_.-][\w.-]*):(?: |$))"})  // "0: ", " 12: ", "node-a: "
  {
    patterns.emplace_back(pattern);
  }
  return patterns;
}

std::size_t label_size(std::string_view line, const Pattern& pattern) {
  constexpr std::size_t kLongestLabel = 160;
  const auto label = pattern.find(line.substr(0, kLongestLabel));
  return label ? label->whole.end : 0;
}

// "train-0 main ", of stern: words before the first comment or entry of a tool.
std::optional<Pattern> find_words_of_pod(const std::vector<TextLine>& lines) {
  constexpr std::size_t kBeginning = 50;
  thread_local const Pattern words(R"(((?:[\w.-]+ ){1,2}[\w.-]+) (?:#(?: |$)|:::MLLOG).*)");
  for (std::size_t i = 0; i < std::min(lines.size(), kBeginning); ++i) {
    const auto found = words.match(lines[i].text.substr(0, 160));
    if (found) return Pattern("^" + found->at(1) + "(?: |$)");
  }
  return std::nullopt;
}

// Whether three quarters of the lines have it: a banner of a launcher need not.
bool is_common(const std::vector<TextLine>& lines, const Pattern& pattern) {
  std::size_t labelled = 0, others = 0;
  for (const TextLine& line : lines) {
    if (trim(line.text).empty()) continue;
    ++(label_size(line.text, pattern) > 0 ? labelled : others);
    if (4 * others > lines.size()) return false;
  }
  return labelled > 1 && labelled >= 3 * others;
}

std::string without_escapes(std::string_view text) {
  std::string plain;
  plain.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\x1b') {
      plain += text[i];
    } else if (i + 1 < text.size() && text[i + 1] == '[') {
      const std::size_t end = text.find_first_not_of("0123456789;:?<=> ", i + 2);
      i = std::min(end, text.size());
    } else {
      ++i;
    }
  }
  return plain;
}

constexpr std::size_t kLongestText = 200;  // it may become part of a folder's name

// Sections whose members somebody can state: no lists over ranks, nothing about other files.
const std::set<std::string> kSections = {"layout",  "provenance", "timing", "throughput", "plan",
                                         "quality", "collective", "flags",  "energy",     "probe"};
const std::set<std::string> kStated = {"layout", "provenance", "plan", "collective", "flags"};

// Walks the members of structs as reading and writing of records do.
class KeyCollector {
 public:
  template <typename T>
  void operator()(const FactInfo& fact, T& member) {
    if constexpr (std::is_same_v<T, std::string>) {
      add(fact.name, true);
    } else if constexpr (std::is_arithmetic_v<T>) {
      add(fact.name, false);
    } else if constexpr (HasFacts<T>) {
      if (!section_.empty() || !kSections.contains(fact.name)) return;
      section_ = fact.name;
      visit_facts(member, *this);
      section_.clear();
    } else if constexpr (requires { member.emplace(); }) {
      (*this)(fact, member.emplace());
    } else if constexpr (requires { *member; }) {  // of a box
      (*this)(fact, *member);
    }  // else a list
  }

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
    const bool is_unit = section_ == "throughput" && is_text;  // and its direction
    found_.push_back(
        {key,
         {whole_record ? fmt::format("/{}", key) : fmt::format("/{}/{}", section_, key)},
         is_text,
         whole_record || !(kStated.contains(section_) || is_unit)});
  }

  std::string section_;
  std::vector<RecordKey> found_;
};

const std::vector<RecordKey>& record_keys() {
  static const std::vector<RecordKey> keys = [] {
    KeyCollector collector;
    RunRecord record;
    visit_facts(record, collector);
    return collector.all();
  }();
  return keys;
}

// The nearest, or those that most files have.
std::string suggested_key(const std::string& name) {
  std::vector<std::string> names = mapped(record_keys(), &RecordKey::name);
  if (nearest(name, names)) return suggestion(name, names);
  for (const std::string& known : names) {
    if (name.size() > 3 && known.find(name) != known.npos) return "did you mean \"" + known + "\"?";
  }
  return "often used: gpus, nodes, fit_seconds, samples_per_second, batch_per_replica, workload, "
         "hardware; docs/import.md lists more";
}

}  // namespace

std::string_view without_byte_order_mark(std::string_view text) {
  return text.starts_with("\xef\xbb\xbf") ? text.substr(3) : text;
}

std::string without_labels(std::string_view text, std::vector<std::string>& notes) {
  text = without_byte_order_mark(text);
  std::string plain = text.find('\x1b') == text.npos ? std::string(text) : without_escapes(text);
  for (int round = 0; round < kMostLabels; ++round) {
    const std::vector<TextLine> lines = split_lines(plain);
    std::vector<Pattern> patterns = label_patterns();
    if (auto words = find_words_of_pod(lines)) patterns.push_back(std::move(*words));
    const auto label = std::find_if(patterns.begin(), patterns.end(),
                                    [&](const Pattern& each) { return is_common(lines, each); });
    if (label == patterns.end()) break;
    std::string rest, first;
    rest.reserve(plain.size());
    for (const TextLine& line : lines) {
      const std::size_t end = label_size(line.text, *label);
      if (first.empty()) first = line.text.substr(0, end);
      rest += line.text.substr(end);
      rest += '\n';
    }
    notes.push_back(fmt::format("labels before its lines are taken off, as \"{}\"",
                                printable(std::string_view(first).substr(0, 60))));
    plain = std::move(rest);
  }
  return plain;
}

const RecordKey* find_record_key(std::string_view name) {
  const auto& keys = record_keys();
  const auto key = std::ranges::find(keys, name, &RecordKey::name);
  return key == keys.end() ? nullptr : &*key;
}

const RecordKey& record_key_named(std::string_view name, std::string_view option) {
  if (const RecordKey* key = find_record_key(name)) return *key;
  throw usage_error("records have no \"" + std::string(name) + "\"", std::string(option),
                    suggested_key(std::string(name)));
}

void set_value(Json& record, const std::string& assignment) {
  const std::size_t equals = assignment.find('=');
  const std::string name = assignment.substr(0, equals);
  if (equals == assignment.npos || equals == 0 || equals + 1 == assignment.size()) {
    throw usage_error("\"" + assignment + "\" is not KEY=VALUE", "--set",
                      "write for example --set gpus=8");
  }
  const std::string value = assignment.substr(equals + 1), where = "--set " + name;
  const RecordKey& key = record_key_named(name, "--set");
  if (key.is_result) {
    throw usage_error(name + " is a result, which only a file can give", where,
                      "import it with the file, or leave it out");
  }
  if (const std::string fault = fault_of_text(value);
      !fault.empty() || value.size() > kLongestText) {
    throw usage_error("the value " + (fault.empty() ? "has more than 200 characters" : fault),
                      where, "give one short line");
  }
  if (!key.is_text && value != "true" && value != "false" && !to_real(value)) {
    throw usage_error("\"" + value + "\" is not a number", where, "give one");
  }
  put_cell(record, {.to = key.to, .is_text = key.is_text, .replaces = true}, value, where);
}

}  // namespace paceline
