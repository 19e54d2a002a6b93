// What help, lists and docs/options.md say of a parameter.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "engine/core/json.h"
#include "engine/core/json_field.h"
#include "engine/core/text.h"
#include "results/names.h"
#include "results/parameters.h"
#include "results/schema.h"

namespace paceline {

std::string type_text(const Parameter& parameter) {
  if (!parameter.form.empty()) return std::string(parameter.form);
  if (parameter.is_file) return "FILE";
  if (parameter.kind == ValueKind::integer) return "N";
  if (parameter.kind == ValueKind::real) return "X";
  return parameter.values.empty() ? "TEXT" : "{" + join(split(parameter.values, '|'), ",") + "}";
}

std::string_view describe_default(const Parameter& parameter) {
  return parameter.otherwise.empty() ? parameter.initial : parameter.otherwise;
}

std::string default_text(const Parameter& parameter) {
  return fmt::format("[default: {}]", describe_default(parameter));
}

namespace {

constexpr std::size_t kLongestText = 1 << 20;  // as a spec

constexpr EnumName<OnResume> kOnResume[] = {{OnResume::must_match, "must match"},
                                            {OnResume::announced, "announced"},
                                            {OnResume::free, "free"}};
constexpr EnumName<Requirement> kRequirements[] = {
    {Requirement::gpu, "GPUs"},
    {Requirement::batch_norm, "networks with batch_norm"},
    {Requirement::encoded_images, "encoded images"},
    {Requirement::own_program, "workload `command`"}};

std::string condition_text(const Parameter& parameter) {
  if (parameter.need != Requirement::nothing) return name_in(kRequirements, parameter.need);
  if (parameter.with.parameter.empty()) return "";
  if (parameter.with.values.empty()) return fmt::format("with `{}`", parameter.with.parameter);
  return fmt::format("with `{}` {}", parameter.with.parameter,
                     join(split(parameter.with.values, '|'), " or "));
}

std::string form_text(const Parameter& parameter) {
  if (parameter.kind == ValueKind::boolean) return "true, false";
  if (parameter.values.find('|') != std::string_view::npos) {
    return join(split(parameter.values, '|'), ", ");
  }
  const auto dots = parameter.values.find("..");
  if (dots == std::string_view::npos) return parameter.is_file ? "file" : "text";
  const std::string kind = parameter.kind == ValueKind::integer ? "whole number" : "number";
  const std::string low(parameter.values.substr(0, dots)), high(parameter.values.substr(dots + 2));
  return high.empty() ? fmt::format("{} from {}", kind, low)
                      : fmt::format("{} from {} to {}", kind, low, high);
}

}  // namespace

std::string parameters_markdown() {
  std::vector<std::string> no_axes;
  for (const Parameter& parameter : parameters()) {
    if (!parameter.identity()) no_axes.push_back(fmt::format("`{}`", parameter.name));
  }
  std::string page = fmt::format(
      "# Options\n\n"
      "Every parameter of a run. It is an option of `paceline train` (`--batch-per-replica 64`, "
      "`--no-overlap`), an axis or a fixed value of a\n[spec](../sweeps/README.md) "
      "(`\"batch_per_replica\": [32, 64]`), and where rows differ in it a column of reports. *On "
      "resume* says what another "
      "value means for a run\nthat starts from a checkpoint: it must match, is announced, or is "
      "free. No axes are {}:\nthey change nothing that is measured. `paceline list parameters "
      "--markdown` writes this page.\n",
      join(no_axes, ", "));
  for (const Group group : groups()) {
    page += fmt::format("\n## {}\n\n", group_title(group));
    page +=
        "| parameter | values | default | only for | on resume | |\n"
        "| --- | --- | --- | --- | --- | --- |\n";
    for (const Parameter& parameter : parameters()) {
      if (parameter.group != group) continue;
      page +=
          fmt::format("| `{}` | {} | {} | {} | {} | {} |\n", parameter.name, form_text(parameter),
                      describe_default(parameter), condition_text(parameter),
                      name_in(kOnResume, parameter.on_resume), parameter.help);
    }
  }
  return page;
}

Json parameters_json() {
  Json rows = Json::array();
  for (const Parameter& parameter : parameters()) {
    rows.push_back({{"name", parameter.name},
                    {"group", group_title(parameter.group)},
                    {"values", form_text(parameter)},
                    {"default", describe_default(parameter)},
                    {"only_for", condition_text(parameter)},
                    {"on_resume", name_in(kOnResume, parameter.on_resume)},
                    {"help", parameter.help}});
  }
  return rows;
}

Json parameter_schema(const Parameter& parameter) {
  Json schema = {{"description", parameter.help}};
  std::vector<std::string> choices;
  if (parameter.name == "device") choices = accepted_names(parameter.name);
  if (parameter.values.find('|') != std::string_view::npos) choices = split(parameter.values, '|');
  if (!choices.empty()) {
    schema["enum"] = choices;
  } else if (parameter.kind == ValueKind::boolean) {
    schema["type"] = "boolean";
  } else if (parameter.kind == ValueKind::text) {
    schema.update(Json::parse(text_schema(R"([\x00-\x1f\x7f])", kLongestText)));
    if (parameter.name == "steps_per_epoch") {
      schema.update({{"type", {"string", "integer"}}, {"minimum", 1}});
      schema["pattern"] = "^[1-9][0-9]*(/replicas)?$";
      schema.erase("not");  // which no number passes
    }
    if (parameter.name == "backend") {
      std::vector<std::string> wrappers = mapped(known_names().wrappers, &Name::name);
      schema["pattern"] = fmt::format(R"(^({})(\+({}))*$)", join(accepted_names("backend"), "|"),
                                      join(wrappers, "|"));
    }
  } else {
    schema["type"] = parameter.kind == ValueKind::integer ? "integer" : "number";
    const auto dots = parameter.values.find("..");
    const auto bound = [&](const char* key, std::string_view text) {
      if (const auto number = to_real(text)) schema[key] = *number;
    };
    if (parameter.kind == ValueKind::integer) schema["maximum"] = kMostOfAParameter;
    if (dots == std::string_view::npos) return schema;
    bound("minimum", parameter.values.substr(0, dots));
    bound("maximum", parameter.values.substr(dots + 2));
  }
  return schema;
}

}  // namespace paceline
