// What a spec's axes and programs are, as JSON Schema: of the parameters, names of results and
// placeholders that its readers know.
#include "results/schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "engine/core/json_field.h"
#include "engine/core/text.h"
#include "sweeps/program.h"
#include "sweeps/spec.h"

namespace paceline {

namespace {

Json closed_object(const Json& properties) {
  return {{"type", "object"}, {"properties", properties}, {"additionalProperties", false}};
}

// A text whose placeholders have a value in some run.
Json placeholder_schema() {
  return {{"type", "string"},
          {"not",
           {{"pattern", fmt::format(R"((?<!\{{)\{{(?!({})\}})[a-z0-9_]+\}})",
                                    join(known_placeholders(), "|"))}}}};
}

Json refer(const std::string& definition) {
  return {{"$ref", "#/definitions/" + definition}};
}

// Where a result stands.
Json result_schema() {
  ResultSource any;
  Json schema = Json::parse(object_schema(result_readers(any, {})));
  schema["properties"]["file"] = refer("text");
  schema["oneOf"] = Json::array();
  for (const auto& [from, key] : kResultSources) {
    schema["oneOf"].push_back({{"required", {key}}});
  }
  schema["allOf"] = Json::parse(R"([
    {"if": {"anyOf": [{"required": ["csv"]}, {"required": ["events"]}]}, "then": {"required": ["file"]}},
    {"if": {"anyOf": [{"required": ["line"]}, {"required": ["json_line"]}]}, "then": {"properties": {"file": {"const": ""}}}},
    {"if": {"not": {"required": ["line"]}}, "then": {"properties": {"among": {"const": ""}, "not_between": false}}}])");
  return schema;
}

// The name of ours says its unit; one of the user's own has to.
Json results_schema() {
  Json presets = Json::array(), named = Json::object();
  for (const ResultPreset& preset : result_presets()) presets.push_back(preset.name);
  for (const ResultName& name : result_names()) {
    Json result = {{"description", name.about}, {"allOf", {refer("result")}}};
    if (&name != &result_names().front()) {
      result["properties"] = {{"unit", false}, {"better", false}};
    }
    named[name.name] = std::move(result);
  }
  const Json own = {{"allOf", {refer("result")}}, {"required", {"unit"}}};
  return {{"anyOf",
           {{{"enum", presets}},
            {{"type", "object"}, {"properties", named}, {"additionalProperties", own}}}}};
}

// By key.
Json program_properties() {
  const Json first = {{"allOf", {refer("text")}}, {"minLength", 1}};
  const Json words = {
      {"type", "array"}, {"items", {first}}, {"additionalItems", refer("text")}, {"minItems", 1}};
  const Json command = {{"anyOf", {words, first}}};
  return {{"command", command},
          {"shell", {{"type", "boolean"}}},
          {"environment",
           {{"type", "object"},
            {"propertyNames", {{"pattern", "^[^=]+$"}}},
            {"additionalProperties", refer("text")}}},
          {"directory", {{"type", "string"}}},
          {"setup", command},
          {"processes", parameter_schema(*find_parameter("processes"))},
          {"results", refer("results")},
          {"trace", refer("text")}};
}

// A shell reads one text, nobody else does.
Json program_rules() {
  return Json::parse(R"({
    "if": {"properties": {"shell": {"const": true}}, "required": ["shell"]},
    "then": {"properties": {"command": {"type": "string"}, "setup": {"type": "string"}}},
    "else": {"properties": {"command": {"type": "array"}, "setup": {"type": "array"}}}})");
}

}  // namespace

void add_spec_rules(Json& schema) {
  Json values = Json::object(), lists = Json::object();
  schema["definitions"] = {
      {"text", placeholder_schema()}, {"result", result_schema()}, {"results", results_schema()}};
  Json of_programs = Json::object();  // what only they take
  for (const Parameter& parameter : parameters()) {
    const std::string name(parameter.name);
    if (parameter.need == Requirement::own_program) of_programs[name] = false;
    if (std::ranges::count(program_keys(), name) > 0) continue;  // a key, no axis
    schema["definitions"][name] = parameter_schema(parameter);
    const Json value = refer(name);
    values[name] = value;
    if (!parameter.identity()) continue;
    lists[name] = {{"type", "array"}, {"items", value}, {"minItems", 1}, {"maxItems", 10000}};
  }
  const Json point = closed_object(values);
  Json axes = closed_object(lists), some_point = point, some_axes = axes;
  for (auto& [name, list] : axes["properties"].items()) list["uniqueItems"] = true;
  some_point["minProperties"] = some_axes["minProperties"] = 1;
  Json& keys = schema["properties"];
  keys["fixed"] = point;
  keys["axes"] = axes;
  keys["zip"] = {{"anyOf", {some_axes, {{"type", "array"}, {"items", some_axes}}}}};
  keys["include"] = {{"type", "array"}, {"items", point}};
  keys["exclude"] = {{"type", "array"},
                     {"items", {{"anyOf", {some_point, Json::parse(kTextSchema)}}}}};

  Json program = closed_object(program_properties());
  keys.update(program["properties"]);
  program.update(program_rules());
  program["required"] = {"command"};
  keys["programs"] = {{"type", "object"},
                      {"minProperties", 1},
                      {"propertyNames", {{"pattern", "^[A-Za-z0-9._-]+$"}}},
                      {"additionalProperties", program}};
  Json none = Json::object(), several;
  for (const std::string& key : program_keys()) none[key] = false;
  several = {{"required", {"programs"}}, {"properties", none}};
  none["programs"] = false;
  Json one = program_rules();
  one["required"] = {"command"};
  one["properties"] = {{"programs", false}};
  schema["required"] = {"name", "workload"};
  schema["if"] = {{"properties", {{"workload", {{"const", kCommandWorkload}}}}}};
  schema["then"] = {{"oneOf", {one, several}}};
  for (const char* key : {"fixed", "axes"}) none[key] = {{"properties", of_programs}};
  schema["else"] = {{"properties", none}};
}

}  // namespace paceline
