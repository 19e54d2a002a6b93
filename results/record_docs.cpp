#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <type_traits>
#include <typeindex>

#include "engine/core/json_field.h"
#include "engine/facts/json.h"
#include "engine/facts/rank.h"
#include "results/run_record.h"
#include "results/schema.h"

namespace paceline {

namespace {

template <typename T>
struct Inner {
  using Type = T;
  static constexpr bool is_list = false;
};
template <typename T>
struct Inner<std::optional<T>> : Inner<T> {};
template <typename T>
struct Inner<std::vector<T>> : Inner<T> {
  static constexpr bool is_list = true;
};
template <typename T>
struct Inner<fact::Box<T>> : Inner<T> {};
template <typename T>
struct Inner<fact::OfRanks<T>> : Inner<std::vector<T>> {};

template <typename T>
std::string form_text(FactRule rule) {
  using Type = typename Inner<T>::Type;
  const std::string of = Inner<T>::is_list ? "list of " : "";
  if constexpr (HasFacts<Type> || std::is_same_v<Type, Point>) {
    return of + (of.empty() ? "object" : "objects");
  } else if constexpr (std::is_same_v<Type, std::string>) {
    return of + (of.empty() ? "text" : "texts");
  } else if constexpr (std::is_same_v<Type, bool>) {
    return "true, false";
  } else {
    std::string text = of + (std::is_integral_v<Type> ? "whole number" : "number");
    if (!of.empty()) text += "s";
    if (rule.share) return text + " from 0 to 1";
    return text + (rule.above ? " above 0" : rule.least == 1 ? " from 1" : "");
  }
}

// A table for each struct, a row for each of its facts.
class Page {
 public:
  template <typename Facts>
  void add(const std::string& path) {
    // A struct that stands in several places is described at the first.
    if (!described_.emplace(typeid(Facts), path).second) return;
    text_ += fmt::format("\n## {}\n\n| key | values | |\n| --- | --- | --- |\n",
                         path.empty() ? "The record" : "`" + path + "`");
    Facts facts;
    visit_facts(facts, [&]<typename T>(const FactInfo& fact, T&) { add_row<T>(fact); });
    if (path.empty()) add_other_lists();
    visit_facts(facts, [&]<typename T>(const FactInfo& fact, T&) {
      using Type = typename Inner<T>::Type;
      if constexpr (HasFacts<Type>) {
        if (!fact.rule.is_inlined) add<Type>(path + (path.empty() ? "" : ".") + fact.name);
      }
    });
  }
  const std::string& text() const { return text_; }

 private:
  template <typename T>
  void add_row(const FactInfo& fact) {
    using Type = typename Inner<T>::Type;
    if (std::is_same_v<T, RankSpread>) return;  // RunRecord::ranks describes it
    if constexpr (HasFacts<Type>) {
      if (fact.rule.is_inlined) {
        Type members;
        visit_facts(members, [&]<typename U>(const FactInfo& inner, U&) { add_row<U>(inner); });
        return;
      }
    }
    const auto known = described_.find(typeid(Type));
    text_ += fmt::format(
        "| `{}` | {} | {} |\n", fact.name,
        known == described_.end() ? form_text<T>(fact.rule) : "as `" + known->second + "`",
        fact.meaning);
  }

  // Over ranks, that stand at the record's end.
  void add_other_lists() {
    RankFacts rank;
    visit_facts(rank, [&]<typename T>(const FactInfo& fact, T&) {
      const std::string meaning = std::string("one per rank: ") + fact.meaning;
      if (!fact.rule.list) add_row<std::vector<T>>({fact.name, meaning.c_str(), fact.rule});
    });
  }

  std::string text_;
  std::map<std::type_index, std::string> described_;
};

// Readers treat null as nothing.
Json or_null(const Json& schema) {
  return {{"anyOf", {schema, {{"const", nullptr}}}}};
}

// What value_from_json() and its kind take.
template <HasFacts Facts>
Json facts_schema();

template <typename Type>
Json value_schema(FactRule rule) {
  if constexpr (HasFacts<Type>) {
    return facts_schema<Type>();
  } else if constexpr (std::is_same_v<Type, Point>) {
    Json values = Json::object();
    for (const Parameter& parameter : recorded_parameters()) {
      const char* type = parameter.kind == ValueKind::boolean   ? "boolean"
                         : parameter.kind == ValueKind::integer ? "integer"
                         : parameter.kind == ValueKind::real    ? "number"
                                                                : "string";
      values[std::string(parameter.name)] = or_null({{"type", type}});
    }
    return {{"type", "object"}, {"properties", values}};
  } else if constexpr (std::is_same_v<Type, std::string>) {
    return {{"type", "string"}};
  } else if constexpr (std::is_same_v<Type, bool>) {
    return {{"type", "boolean"}};
  } else if constexpr (std::is_integral_v<Type>) {
    const double most = sizeof(Type) < sizeof(std::int64_t) ? kMostOfAnInt : kMostOfACount;
    Json schema = {{"type", "integer"}, {"maximum", most}};
    if (std::isfinite(rule.least)) schema["minimum"] = rule.above ? 1 : rule.least;
    return schema;
  } else {
    Json schema = {{"type", "number"}};
    if (rule.share) schema["maximum"] = 1;
    if (std::isfinite(rule.least)) schema["minimum"] = 0;
    if (rule.above) schema["exclusiveMinimum"] = rule.least;
    return schema;
  }
}

template <HasFacts Facts>
void add_properties(Json& schema) {
  Facts facts;
  visit_facts(facts, [&]<typename T>(const FactInfo& fact, T&) {
    using Type = typename Inner<T>::Type;
    if constexpr (std::is_same_v<T, RankSpread>) {
      return;  // any statistics of any facts of ranks
    } else if constexpr (HasFacts<Type>) {
      if (fact.rule.is_inlined) return add_properties<Type>(schema);
    }
    if constexpr (!std::is_same_v<T, RankSpread>) {
      Json value = value_schema<Type>(fact.rule);
      constexpr bool of_ranks = requires(T list) {
        []<typename U>(fact::OfRanks<U>&) {}(list);
      };
      if (Inner<T>::is_list) {
        value = {{"type", "array"}, {"items", of_ranks ? or_null(value) : value}};
      }
      if (*fact.meaning) value["description"] = fact.meaning;
      schema["properties"][fact.name] = fact.rule.required ? value : or_null(value);
      if (fact.rule.required) schema["required"].push_back(fact.name);
    }
  });
}

template <HasFacts Facts>
Json facts_schema() {
  Json schema = {{"type", "object"}, {"properties", Json::object()}};
  add_properties<Facts>(schema);
  return schema;
}

}  // namespace

std::string record_markdown() {
  Page page;
  page.add<RunRecord>("");
  return fmt::format(
             "# The run record\n\n"
             "A record is one JSON object of at most 32 KB, with `\"schema\": {}`. Units are in "
             "the names: "
             "seconds, bytes, per second. Keys that are\nunknown or do not apply are left out, and "
             "readers "
             "treat null the same. `paceline list record --markdown` writes this page.\n",
             kRecordSchema) +
         page.text();
}

std::string record_schema() {
  Json schema = facts_schema<RunRecord>();
  schema["properties"]["schema"] = {{"const", kRecordSchema}};
  schema["properties"]["kind"] = {{"enum", kRecordKinds}};
  schema["properties"]["status"] = {{"enum", kRecordStates}};
  for (const char* key : {"schema", "kind", "status"}) schema["required"].push_back(key);
  // As parse_run_record() looks at several keys together.
  schema["definitions"]["given"] = Json::parse(R"({"not": {"const": null}})");
  schema["definitions"]["collective"] = Json::parse(R"({
    "anyOf": [{"properties": {"kind": {"const": "collective"}}, "required": ["kind"]},
              {"properties": {"kind": {"const": "imported"},
                              "collective": {"type": "object", "properties": {"rows": {"type": "array", "minItems": 1}}, "required": ["rows"]}},
               "required": ["kind", "collective"]}]})");
  schema["allOf"] = Json::parse(R"([
    {"if": {"$ref": "#/definitions/collective"},
     "then": {"properties": {"collective": {"type": "object", "properties": {"rows": {"type": "array", "minItems": 1}}, "required": ["rows"]},
                             "provenance": {"$ref": "#/definitions/given"}},
              "required": ["collective", "provenance"]},
     "else": {"properties": {"parameters": {"properties": {"workload": {"type": "string", "minLength": 1}}, "required": ["workload"]}}}},
    {"if": {"properties": {"status": {"const": "completed"}}, "not": {"$ref": "#/definitions/collective"}},
     "then": {"anyOf": [
       {"properties": {"timing": {"type": "object", "properties": {"fit_seconds": {"type": "number"}}, "required": ["fit_seconds"]}}, "required": ["timing"]},
       {"properties": {"throughput": {"type": "object", "properties": {"samples_per_second": {"type": "number"}}, "required": ["samples_per_second"]}},
        "required": ["throughput"],
        "not": {"properties": {"kind": {"const": "measured"}, "provenance": {"anyOf": [{"const": null}, {"properties": {"program": {"const": null}}}]}}}}]}}])");
  Json layout = Json::object();
  for (const auto& [key, known] : measured_layout({})) {
    layout["properties"][key] = {{"type", "integer"}};
    layout["required"].push_back(key);
  }
  Json measured = Json::parse(R"({"if": {"properties": {"kind": {"const": "measured"}}}})");
  measured["then"]["properties"]["layout"] = layout;
  schema["allOf"].push_back(measured);
  return schema_document("Run record of Paceline", schema);
}

}  // namespace paceline
