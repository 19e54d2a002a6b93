// paceline list workloads|backends|wrappers|devices|importers|parameters|record|findings
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "analysis/findings/trend.h"
#include "cli/study_options.h"
#include "cli/verb.h"
#include "engine/core/error.h"
#include "engine/core/json.h"
#include "engine/core/output.h"
#include "engine/core/text.h"
#include "results/import/formats.h"
#include "results/names.h"
#include "results/parameters.h"
#include "results/run_record.h"
#include "run/diagnosis.h"

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
                                  "mirrored/mpi (threads in a task, MPI between tasks), mpi+bf16, "
                                  "mirrored/gloo+fp16"));
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

std::string resume_text(OnResume on_resume) {
  switch (on_resume) {
    case OnResume::must_match:
      return "must match";
    case OnResume::announced:
      return "announced";
    case OnResume::free:
      break;
  }
  return "free";
}

std::string condition_text(const Parameter& parameter) {
  switch (parameter.need) {
    case Requirement::gpu:
      return "GPUs";
    case Requirement::batch_norm:
      return "networks with batch_norm";
    case Requirement::encoded_images:
      return "encoded images";
    case Requirement::own_program:
      return "workload `command`";
    case Requirement::nothing:
      break;
  }
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

int print_parameters_markdown() {
  std::vector<std::string> no_axes;
  for (const Parameter& parameter : parameters()) {
    if (!parameter.identity()) no_axes.push_back(fmt::format("`{}`", parameter.name));
  }
  print(
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
    print("\n## {}\n\n", group_title(group));
    print("| parameter | values | default | only for | on resume | |\n");
    print("| --- | --- | --- | --- | --- | --- |\n");
    for (const Parameter& parameter : parameters()) {
      if (parameter.group != group) continue;
      print("| `{}` | {} | {} | {} | {} | {} |\n", parameter.name, form_text(parameter),
            describe_default(parameter), condition_text(parameter),
            resume_text(parameter.on_resume), parameter.help);
    }
  }
  return 0;
}

int print_parameters(bool json) {
  Json rows = Json::array();
  for (const Parameter& parameter : parameters()) {
    if (!json) {
      print_text(name_and_text(parameter.name, 29,
                               fmt::format("{} {}", parameter.help, default_text(parameter))));
      continue;
    }
    rows.push_back({{"name", parameter.name},
                    {"group", group_title(parameter.group)},
                    {"values", form_text(parameter)},
                    {"default", describe_default(parameter)},
                    {"only_for", condition_text(parameter)},
                    {"on_resume", resume_text(parameter.on_resume)},
                    {"help", parameter.help}});
  }
  if (json) print("{}\n", json_text(rows, 2));
  return 0;
}

}  // namespace

void add_list(CLI::App& app, Action& action) {
  CLI::App* verb = app.add_subcommand(
      "list", "List workloads, backends, importers, parameters, keys of the record, findings");
  auto what = std::make_shared<std::string>();
  auto json = std::make_shared<bool>(false);
  verb->add_option(
          "what", *what,
          "workloads, backends, wrappers, devices, importers, parameters, record, findings")
      ->required()
      ->check(CLI::IsMember({"workloads", "backends", "wrappers", "devices", "importers",
                             "parameters", "record", "findings"}));
  auto markdown = std::make_shared<bool>(false);
  verb->add_flag("--json", *json, "print JSON");
  verb->add_flag("--markdown", *markdown,
                 "print Markdown: docs/options.md, docs/record.md or docs/findings.md");
  verb->footer(
      "Examples:\n  paceline list backends\n  paceline list workloads --json\n"
      "  paceline list parameters");
  verb->callback([what, json, markdown, &action] {
    action = [what, json, markdown] {
      const bool is_page = *what == "record" || *what == "findings";
      if (*markdown && *what != "parameters" && !is_page) {
        throw Error(ErrorKind::usage, "this option is for parameters, record and findings",
                    "--markdown", "write: paceline list parameters --markdown");
      }
      if (is_page && *json) {
        throw Error(ErrorKind::usage, *what + " is listed as Markdown only", "--json",
                    fmt::format("write: paceline list {} --markdown", *what));
      }
      if (is_page) {
        print_text(*what == "record" ? record_markdown() : findings_markdown());
        return 0;
      }
      if (*what == "parameters") {
        return *markdown ? print_parameters_markdown() : print_parameters(*json);
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
