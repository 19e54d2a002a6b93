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

// Reads a field. Its schema says which values it takes, as far as JSON Schema can.
class JsonFieldReader {
 public:
  template <typename Read>
  requires std::invocable<const Read&, const JsonField&> &&
      (!std::same_as<Read, JsonFieldReader>)JsonFieldReader(Read read, std::string schema = "{}")
      : read_(std::move(read)), schema_(std::move(schema)) {}

  void operator()(const JsonField& field) const { read_(field); }
  const std::string& schema() const { return schema_; }  // JSON

 private:
  std::function<void(const JsonField&)> read_;
  std::string schema_;
};
using JsonFieldReaders = std::vector<std::pair<std::string, JsonFieldReader>>;

template <typename Kind, std::size_t N>
std::vector<std::string> names_in(const EnumName<Kind> (&known)[N]) {
  return mapped(known, [](const auto& row) { return std::string(row.name); });
}

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
    return *value_in(known, choice(names_in(known)));
  }

  // Of a list, `of` says what: "a list of words".
  std::vector<JsonField> elements(const std::string& of = "a list") const;
  std::vector<std::string> texts() const;
  // Of an object; the key is the member's. "$schema", by which a document names its schema, is
  // none.
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

// Schemas of what the functions of JsonField take.
inline constexpr char kFlagSchema[] = R"({"type": "boolean"})";
inline constexpr char kTextSchema[] = R"({"type": "string", "minLength": 1})";
inline constexpr char kAboveZeroSchema[] = R"({"type": "number", "exclusiveMinimum": 0})";
std::string number_schema(const char* type, double low, double high);
std::string choice_schema(const std::vector<std::string>& known);
std::string list_schema(const std::string& element, std::size_t fewest = 0);
// Texts in which this regular expression finds nothing.
std::string text_schema(const std::string& refused, std::size_t longest);
std::string object_schema(const JsonFieldReaders& readers);
// A schema as a document; `object` is what a whole file holds.
std::string schema_document(const std::string& title, const Json& object);

// Readers into a variable.
inline JsonFieldReader into(std::string& target) {
  return {[&target](const JsonField& field) { target = field.text(); }, kTextSchema};
}
inline JsonFieldReader into(bool& target) {
  return {[&target](const JsonField& field) { target = field.flag(); }, kFlagSchema};
}
template <std::integral Int>
JsonFieldReader into(Int& target, std::int64_t low, std::int64_t high) {
  return {[&target, low, high](const JsonField& field) {
            target = static_cast<Int>(field.whole(low, high));
          },
          number_schema("integer", static_cast<double>(low), static_cast<double>(high))};
}
inline JsonFieldReader into(double& target, double low, double high) {
  return {[&target, low, high](const JsonField& field) { target = field.number(low, high); },
          number_schema("number", low, high)};
}
template <typename Kind, std::size_t N>
JsonFieldReader into(Kind& target, const EnumName<Kind> (&known)[N]) {
  return {[&target, &known](const JsonField& field) { target = field.choice(known); },
          choice_schema(names_in(known))};
}
inline JsonFieldReader into(JsonFieldReaders readers) {
  std::string schema = object_schema(readers);
  return {[readers = std::move(readers)](const JsonField& field) { field.read(readers); },
          std::move(schema)};
}

}  // namespace paceline
