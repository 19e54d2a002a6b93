#include "sweeps/run_context.h"

#include <nlohmann/json.hpp>

#include "engine/core/error.h"
#include "engine/core/json.h"
#include "engine/core/json_text.h"

namespace paceline {

std::string RunContext::json() const {
  Json context = {{"study", study},   {"point", point},     {"point_folder", point_folder},
                  {"repeat", repeat}, {"session", session}, {"round", round}};
  if (sequential) context["sequential"] = true;
  if (!program.empty()) context["program"] = Json::parse(program);
  return json_text(context);
}

RunContext parse_run_context(const std::string& text) {
  const JsonDocument document("--context", text);
  const Json& json = document.value();
  RunContext context;
  try {
    context.study = json.at("study");
    context.point = json.at("point");
    context.point_folder = json.at("point_folder");
    context.session = json.at("session");
    context.repeat = json.at("repeat");
    context.round = json.at("round");
    context.sequential = json.value("sequential", false);
    if (json.contains("program")) context.program = json_text(json.at("program"));
  } catch (const nlohmann::json::exception& error) {
    throw Error(ErrorKind::usage, std::string("--context is incomplete: ") + error.what(), "",
                "it is for sweeps: leave it out");
  }
  return context;
}

}  // namespace paceline
