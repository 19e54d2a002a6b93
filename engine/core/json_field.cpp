#include "engine/core/json_field.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "engine/core/error.h"
#include "engine/core/text.h"

namespace paceline {

JsonField::JsonField(const JsonDocument& document, const char* cure)
    : document_(&document), cure_(cure), value_(&document.value()) {}

JsonField::JsonField(const JsonField& parent, const Json& value, const std::string& part,
                     std::string key)
    : document_(parent.document_),
      cure_(parent.cure_),
      value_(&value),
      path_(parent.path_ + "/" + part),
      key_(std::move(key)) {}

void JsonField::fail(const std::string& what, const std::string& fix) const {
  throw input_error(what, where(), fix);
}

const std::string& JsonField::text() const {
  if (text_or_empty().empty()) fail(key_ + " must be a text");
  return text_or_empty();
}

const std::string& JsonField::text_or_empty() const {
  if (!value_->is_string()) fail(key_ + " must be a text");
  return value_->get_ref<const std::string&>();
}

bool JsonField::flag() const {
  if (!value_->is_boolean()) fail(key_ + " must be true or false");
  return value_->get<bool>();
}

std::int64_t JsonField::whole(std::int64_t low, std::int64_t high) const {
  const double value = value_->is_number_integer() ? value_->get<double>() : NAN;
  if (!(value >= static_cast<double>(low) && value <= static_cast<double>(high))) {
    fail(fmt::format("{} must be a whole number from {} to {}", key_, low, high));
  }
  return value_->get<std::int64_t>();
}

double JsonField::number(double low, double high) const {
  const double value = value_->is_number() ? value_->get<double>() : NAN;
  if (!(value >= low && value <= high)) {
    fail(fmt::format("{} must be a number from {:g} to {:g}", key_, low, high));
  }
  return value;
}

double JsonField::above_zero() const {
  const double value = value_->is_number() ? value_->get<double>() : NAN;
  if (!(value > 0)) fail(key_ + " must be a number above 0");
  return value;
}

const std::string& JsonField::choice(const std::vector<std::string>& known) const {
  const std::string& word = text();
  if (std::ranges::find(known, word) == known.end()) {
    fail(fmt::format("{} cannot be \"{}\"", key_, word), suggestion(word, known));
  }
  return word;
}

std::vector<JsonField> JsonField::elements(const std::string& of) const {
  if (!value_->is_array()) fail(fmt::format("{} must be {}", key_, of), "put its values in [ ]");
  std::vector<JsonField> all;
  for (std::size_t i = 0; i < value_->size(); ++i) {
    all.push_back({*this, (*value_)[i], std::to_string(i), fmt::format("{}[{}]", key_, i)});
  }
  return all;
}

std::vector<std::string> JsonField::texts() const {
  return mapped(elements(), &JsonField::text);
}

std::vector<JsonField> JsonField::members(const std::string& of) const {
  if (!value_->is_object()) {
    fail(key_.empty() ? "the file must be a JSON object" : fmt::format("{} must be {}", key_, of));
  }
  std::vector<JsonField> all;
  for (const auto& [key, value] : value_->items()) {
    if (path_.empty() && key == "$schema") {
      JsonField(*this, value, key, key).text();
    } else {
      all.push_back({*this, value, key, key});
    }
  }
  return all;
}

std::optional<JsonField> JsonField::find(const std::string& key) const {
  if (!value_->is_object() || !value_->contains(key)) return std::nullopt;
  return JsonField(*this, (*value_)[key], key, key);
}

JsonField JsonField::at(const std::string& key) const {
  const auto found = find(key);
  if (!found) fail(fmt::format("\"{}\" is missing", key), "add it");
  return *found;
}

void JsonField::check_keys(const std::vector<std::string>& known) const {
  for (const JsonField& member : members()) {
    if (std::ranges::find(known, member.key()) != known.end()) continue;
    member.fail(fmt::format("unknown key \"{}\"", member.key()), suggestion(member.key(), known));
  }
}

void JsonField::read(const JsonFieldReaders& readers) const {
  check_keys(mapped(readers, [](const auto& entry) { return entry.first; }));
  for (const JsonField& member : members()) {
    std::ranges::find(readers, member.key(), &JsonFieldReaders::value_type::first)->second(member);
  }
}

std::string number_schema(const char* type, double low, double high) {
  return json_text({{"type", type}, {"minimum", low}, {"maximum", high}});
}

std::string choice_schema(const std::vector<std::string>& known) {
  return json_text({{"enum", known}});
}

std::string list_schema(const std::string& element, std::size_t fewest) {
  Json schema = {{"type", "array"}, {"items", Json::parse(element)}};
  if (fewest > 0) schema["minItems"] = fewest;
  return json_text(schema);
}

std::string text_schema(const std::string& refused, std::size_t longest) {
  return json_text({{"type", "string"},
                    {"minLength", 1},
                    {"maxLength", longest},
                    {"not", {{"pattern", refused}}}});
}

std::string object_schema(const JsonFieldReaders& readers) {
  Json properties = Json::object();
  for (const auto& [key, reader] : readers) properties[key] = Json::parse(reader.schema());
  return json_text(
      {{"type", "object"}, {"properties", properties}, {"additionalProperties", false}});
}

std::string schema_document(const std::string& title, const Json& object) {
  Json document = {{"$schema", "http://json-schema.org/draft-07/schema#"}, {"title", title}};
  document.update(object);
  document["properties"]["$schema"] = {{"type", "string"}};
  return json_text(document, 2) + "\n";
}

}  // namespace paceline
