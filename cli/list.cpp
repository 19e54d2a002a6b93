// paceline list workloads|backends|devices
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/verb.h"
#include "engine/core/json.h"
#include "results/names.h"

namespace paceline {

namespace {

int print_names(const std::vector<Name>& names, bool json) {
  if (json) {
    Json rows = Json::array();
    for (const Name& name : names) {
      Json row = {{"name", name.name}, {"built", name.built}, {"reason", name.reason}};
      if (!name.tasks.empty()) row["tasks"] = name.tasks;
      rows.push_back(row);
    }
    fmt::print("{}\n", rows.dump(2));
    return 0;
  }
  for (const Name& name : names) {
    std::string note = name.built ? "" : "not built: " + name.reason;
    if (name.built && !name.tasks.empty()) note = "one task a " + name.tasks;
    fmt::print("{:<14}{}\n", name.name, note);
  }
  return 0;
}

}  // namespace

void add_list(CLI::App& app, Action& action) {
  CLI::App* verb = app.add_subcommand("list", "Names of workloads, backends and devices");
  auto what = std::make_shared<std::string>();
  auto json = std::make_shared<bool>(false);
  verb->add_option("what", *what, "workloads, backends or devices")
      ->required()
      ->check(CLI::IsMember({"workloads", "backends", "devices"}));
  verb->add_flag("--json", *json, "machine-readable");
  verb->footer("Examples:\n  paceline list backends\n  paceline list workloads --json");
  verb->callback([what, json, &action] {
    action = [what, json] {
      const Names& names = known_names();
      return print_names(*what == "workloads"  ? names.workloads
                         : *what == "backends" ? names.backends
                                               : names.devices,
                         *json);
    };
  });
}

}  // namespace paceline
