// Readers of JSON whose every value is checked: sweep specs, site profiles, manifests. A complaint
// names file and line, and says what to do.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/core/json.h"
#include "engine/core/text.h"

namespace paceline {

class JsonField;
using JsonFieldReader = std::function<void(const JsonField&)>;
using JsonFieldReaders = std::vector<std::pair<std::string, JsonFieldReader>>;

// A value with its place in a document. All of its functions throw input if the value is of another
// type or out of range.
class JsonField {
 public:
  // The whole document, which outlives its fields. `cure` is of complaints that have none of their
  // own: "see slurm/README.md".
  JsonField(const JsonDocument& document, const char* cure);

  const Json& value() const { return *value_; }
  const std::string& key() const { return key_; }  // "form", or of a list "load[2]"
  std::string where() const { return document_->where(path_); }
  [[noreturn]] void fail(const std::string& what, const std::string& fix) const;
  [[noreturn]] void fail(const std::string& what) const { fail(what, cure_); }

  const std::string& text() const;  // not empty
  const std::string& text_or_empty() const;
  bool flag() const;
  std::int64_t whole(std::int64_t low, std::int64_t high) const;
  double number(double low, double high) const;
  double above_zero() const;
  // One of these texts.
  const std::string& choice(const std::vector<std::string>& known) const;
  template <typename Kind, std::size_t N>
  Kind choice(const EnumName<Kind> (&known)[N]) const {
    std::vector<std::string> names;
    for (const auto& row : known) names.emplace_back(row.name);
    return *value_in(known, choice(names));
  }

  // Of a list, `of` says what: "a list of words".
  std::vector<JsonField> elements(const std::string& of = "a list") const;
  std::vector<std::string> texts() const;
  // Of an object; the key is the member's.
  std::vector<JsonField> members(const std::string& of = "an object") const;
  std::optional<JsonField> find(const std::string& key) const;
  JsonField at(const std::string& key) const;  // which must be there
  // Refuses members that are not among these.
  void check_keys(const std::vector<std::string>& known) const;
  // Gives each member to the reader of its key. Refuses those that have none.
  void read(const JsonFieldReaders& readers) const;

 private:
  JsonField(const JsonField& parent, const Json& value, const std::string& part, std::string key);

  const JsonDocument* document_;
  const char* cure_;
  const Json* value_;
  std::string path_, key_;
};

// Readers into a variable.
inline JsonFieldReader into(std::string& target) {
  return [&target](const JsonField& field) { target = field.text(); };
}
inline JsonFieldReader into(bool& target) {
  return [&target](const JsonField& field) { target = field.flag(); };
}
template <std::integral Int>
JsonFieldReader into(Int& target, std::int64_t low, std::int64_t high) {
  return [&target, low, high](const JsonField& field) {
    target = static_cast<Int>(field.whole(low, high));
  };
}
inline JsonFieldReader into(double& target, double low, double high) {
  return [&target, low, high](const JsonField& field) { target = field.number(low, high); };
}
template <typename Kind, std::size_t N>
JsonFieldReader into(Kind& target, const EnumName<Kind> (&known)[N]) {
  return [&target, &known](const JsonField& field) { target = field.choice(known); };
}
inline JsonFieldReader into(JsonFieldReaders readers) {
  return [readers = std::move(readers)](const JsonField& field) { field.read(readers); };
}

}  // namespace paceline
