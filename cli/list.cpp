// paceline list workloads|backends|wrappers|devices
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/diagnosis.h"
#include "cli/verb.h"
#include "engine/core/json.h"
#include "engine/core/json_text.h"
#include "engine/core/output.h"
#include "results/names.h"

namespace paceline {

namespace {

std::string note_on(const Name& name) {
  if (!name.built) return "not built: " + name.reason;
  if (const std::string cards = cards_of(name.name); !cards.empty()) return cards;
  if (name.tasks.empty()) return name.about;
  return fmt::format("{}; one task a {}", name.about, name.tasks);
}

int print_names(const std::vector<Name>& names, bool json) {
  if (json) {
    Json rows = Json::array();
    for (const Name& name : names) {
      Json row = {{"name", name.name}, {"built", name.built}, {"reason", name.reason}};
      if (!name.about.empty()) row["about"] = name.about;
      if (!name.tasks.empty()) row["tasks"] = name.tasks;
      if (const std::string cards = cards_of(name.name); !cards.empty()) row["cards"] = cards;
      rows.push_back(row);
    }
    print("{}\n", json_text(rows, 2));
    return 0;
  }
  for (const Name& name : names) print("{:<18}{}\n", name.name, note_on(name));
  return 0;
}

int print_backends(const Names& names, bool json) {
  if (json) return print_names(names.backends, true);
  print_names(names.backends, false);
  print("\nbehind a backend, one or more:\n");
  for (const Name& name : names.wrappers) {
    print("{:<18}{}\n", "+" + name.name, note_on(name));
  }
  print(
      "\nstacks: mirrored/mpi (threads in a task, MPI between tasks), mpi+bf16, "
      "mirrored/gloo+fp16\n");
  return 0;
}

}  // namespace

void add_list(CLI::App& app, Action& action) {
  CLI::App* verb = app.add_subcommand("list", "Names of workloads, backends, wrappers and devices");
  auto what = std::make_shared<std::string>();
  auto json = std::make_shared<bool>(false);
  verb->add_option("what", *what, "workloads, backends, wrappers or devices")
      ->required()
      ->check(CLI::IsMember({"workloads", "backends", "wrappers", "devices"}));
  verb->add_flag("--json", *json, "machine-readable");
  verb->footer("Examples:\n  paceline list backends\n  paceline list workloads --json");
  verb->callback([what, json, &action] {
    action = [what, json] {
      const Names& names = known_names();
      if (*what == "backends") return print_backends(names, *json);
      if (*what == "wrappers") return print_names(names.wrappers, *json);
      return print_names(*what == "workloads" ? names.workloads : names.devices, *json);
    };
  });
}

}  // namespace paceline
