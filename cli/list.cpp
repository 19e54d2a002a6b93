// paceline list
// workloads|backends|wrappers|devices|importers|parameters|record|findings|spec|site|configuration
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "analysis/findings/trend.h"
#include "cli/study_options.h"
#include "cli/verb.h"
#include "engine/core/error.h"
#include "engine/core/json.h"
#include "engine/core/output.h"
#include "results/configuration.h"
#include "results/import/formats.h"
#include "results/names.h"
#include "results/parameters.h"
#include "results/run_record.h"
#include "results/schema.h"
#include "run/diagnosis.h"
#include "slurm/site.h"
#include "sweeps/spec.h"

namespace paceline {

namespace {

std::string note_on(const Name& name) {
  if (!name.built) return "not built: " + name.reason;
  if (const std::string cards = describe_cards(name.name); !cards.empty()) return cards;
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
      if (const std::string cards = describe_cards(name.name); !cards.empty()) row["cards"] = cards;
      rows.push_back(row);
    }
    print("{}\n", json_text(rows, 2));
    return 0;
  }
  for (const Name& name : names) print_text(name_and_text(name.name, 18, note_on(name)));
  return 0;
}

int print_backends(const Names& names, bool json) {
  if (json) return print_names(names.backends, true);
  print_names(names.backends, false);
  print("\nbehind a backend, one or more:\n");
  for (const Name& name : names.wrappers) {
    print_text(name_and_text("+" + name.name, 18, note_on(name)));
  }
  print_text("\n" + name_and_text("stacks:", 8,
                                  "mirrored/mpi (threads in a task, MPI between tasks), ring/mpi, "
                                  "mirrored/ring+bf16"));
  return 0;
}

int print_importers(bool json) {
  Json rows = Json::array();
  for (const ImportFormat& format : import_formats()) {
    if (!json) print_text(name_and_text(format.name, 18, format.what));
    rows.push_back({{"name", format.name}, {"about", format.what}});
  }
  if (json) print("{}\n", json_text(rows, 2));
  return 0;
}

int print_parameters(bool json) {
  if (json) {
    print("{}\n", json_text(parameters_json(), 2));
    return 0;
  }
  for (const Parameter& parameter : parameters()) {
    print_text(name_and_text(parameter.name, 29,
                             fmt::format("{} {}", parameter.help, default_text(parameter))));
  }
  return 0;
}

void print_schema(const std::string& what, bool is_asked) {
  static constexpr EnumName<std::string (*)()> kSchemas[] = {
      {&spec_schema, "spec"},
      {&site_schema, "site"},
      {&record_schema, "record"},
      {&configuration_schema, "configuration"}};
  const auto make = value_in(kSchemas, what);
  if (make && is_asked) return print_text((*make)());
  throw usage_error(is_asked ? "this option is for spec, site, record and configuration"
                             : what + " is listed as a JSON Schema only",
                    is_asked ? "--json-schema" : what, "write: paceline list spec --json-schema");
}

}  // namespace

void add_list(CLI::App& app, Action& action) {
  CLI::App* verb = app.add_subcommand(
      "list", "List workloads, backends, importers, parameters, keys of the record, findings");
  auto what = std::make_shared<std::string>();
  auto json = std::make_shared<bool>(false);
  verb->add_option(
          "what", *what,
          "workloads, backends, wrappers, devices, importers, parameters, record, findings; "
          "spec, site, record, configuration with --json-schema")
      ->required()
      ->check(CLI::IsMember({"workloads", "backends", "wrappers", "devices", "importers",
                             "parameters", "record", "findings", "spec", "site", "configuration"}));
  auto markdown = std::make_shared<bool>(false);
  CLI::Option* as_json = verb->add_flag("--json", *json, "print JSON");
  verb->add_flag("--markdown", *markdown,
                 "print Markdown: docs/options.md, docs/record.md or docs/findings.md")
      ->excludes(as_json);
  auto schema = std::make_shared<bool>(false);
  verb->add_flag("--json-schema", *schema,
                 "print the JSON Schema of a spec, site profile, record or configuration")
      ->excludes(as_json)
      ->excludes("--markdown");
  verb->footer(
      "Examples:\n  paceline list backends\n  paceline list workloads --json\n"
      "  paceline list parameters\n"
      "  paceline list spec --json-schema > spec.schema.json");
  verb->callback([what, json, markdown, schema, &action] {
    action = [what, json, markdown, schema] {
      if (*schema || *what == "spec" || *what == "site" || *what == "configuration") {
        print_schema(*what, *schema);
        return 0;
      }
      const bool is_page = *what == "record" || *what == "findings";
      if (*markdown && *what != "parameters" && !is_page) {
        throw usage_error("this option is for parameters, record and findings", "--markdown",
                          "write: paceline list parameters --markdown");
      }
      if (is_page && *json) {
        throw usage_error(*what + " is listed as Markdown only", "--json",
                          fmt::format("write: paceline list {} --markdown", *what));
      }
      if (is_page) {
        print_text(*what == "record" ? record_markdown() : findings_markdown());
        return 0;
      }
      if (*what == "parameters") {
        if (!*markdown) return print_parameters(*json);
        print_text(parameters_markdown());
        return 0;
      }
      if (*what == "importers") return print_importers(*json);
      const Names& names = known_names();
      if (*what == "backends") return print_backends(names, *json);
      if (*what == "wrappers") return print_names(names.wrappers, *json);
      return print_names(*what == "workloads" ? names.workloads : names.devices, *json);
    };
  });
}

}  // namespace paceline
