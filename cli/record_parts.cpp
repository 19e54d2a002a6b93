#include "cli/record_parts.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/version.h"
#include "engine/core/text.h"

namespace paceline {

double round_digits(double value) {
  return std::stod(fmt::format("{:.7g}", value));
}

Json values_json(const Point& parameters) {
  Json json = Json::object();
  for (const auto& [name, value] : parameters.values()) {
    json[name] = std::visit([](const auto& v) { return Json(v); }, value);
  }
  return json;
}

Json layout_json(const Layout& layout, const ThreadPlan& threads) {
  return {{"nodes", layout.nodes},
          {"ntasks", layout.ntasks},
          {"cpus_per_task", layout.cpus_per_task},
          {"gpus", layout.gpus},
          {"cpus_per_replica", layout.cpus_per_replica},
          {"replicas_are", layout.replicas_are_cores ? "cores" : "gpus"},
          {"compute_threads", threads.compute},
          {"input_threads", threads.input},
          {"comm_threads", threads.comm}};
}

Json build_json(const std::vector<std::string>& command) {
  const Build b = build();
  std::vector<std::string> words;
  for (const std::string& word : command) words.push_back(shell_quote(word));
  return {{"version", b.version},
          {"commit", b.commit},
          {"dirty", b.dirty},
          {"compiler", b.compiler},
          {"compiler_flags", b.compiler_flags},
          {"command", join(words, " ")}};
}

}  // namespace paceline
