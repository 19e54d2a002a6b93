// paceline doctor: what is here, what is missing, and what to do about it.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/diagnosis.h"
#include "cli/post_mortem.h"
#include "cli/verb.h"
#include "engine/core/json.h"
#include "slurm/site_check.h"

namespace paceline {

namespace {

std::string key_of(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return c == ' ' ? '_' : std::tolower(c); });
  return name;
}

void print_json(const Diagnosis& diagnosis) {
  Json json = Json::object();
  for (const Section& section : diagnosis.sections) {
    Json& facts = json[section.title] = Json::object();
    for (const Fact& fact : section.facts) facts[key_of(fact.name)] = fact.text;
  }
  json["problems"] = Json::array();
  for (const Problem& problem : diagnosis.problems) {
    json["problems"].push_back(
        {{"what", problem.what}, {"cure", problem.cure}, {"blocks", problem.blocks}});
  }
  fmt::print("{}\n", json.dump(2));
}

void print_text(const Diagnosis& diagnosis) {
  for (const Section& section : diagnosis.sections) {
    fmt::print("{}\n", section.title);
    for (const Fact& fact : section.facts) fmt::print("  {:<19}{}\n", fact.name, fact.text);
  }
  if (diagnosis.problems.empty()) {
    fmt::print("no problems found\n");
    return;
  }
  fmt::print("problems\n");
  for (const Problem& problem : diagnosis.problems) {
    fmt::print("  {}: {}{}{}\n", problem.blocks ? "failed" : "note", problem.what,
               problem.cure.empty() ? "" : "; ", problem.cure);
  }
}

// What Slurm says here to a site profile, beside the rest.
void add_site(Diagnosis& diagnosis, const std::string& file) {
  const SiteReport report = check_site(read_site(file), SlurmCommands(environment_of_process()));
  Section section{"site", {}};
  for (const auto& [name, text] : report.facts) section.facts.push_back({name, text});
  diagnosis.sections.push_back(std::move(section));
  for (const SiteFinding& finding : report.findings) {
    diagnosis.problems.push_back({finding.what, finding.cure, finding.blocks});
  }
}

int doctor(bool json, const std::string& site) {
  Diagnosis diagnosis = diagnose(environment_of_process());
  if (!site.empty()) add_site(diagnosis, site);
  if (json) {
    print_json(diagnosis);
  } else {
    print_text(diagnosis);
  }
  const bool blocked = std::any_of(diagnosis.problems.begin(), diagnosis.problems.end(),
                                   [](const Problem& problem) { return problem.blocks; });
  return blocked ? 1 : 0;
}

}  // namespace

void add_doctor(CLI::App& app, Action& action) {
  CLI::App* verb =
      app.add_subcommand("doctor", "What is here, what is missing, and what to do about it");
  struct Options {
    bool json = false;
    std::string folder, site;
  };
  auto options = std::make_shared<Options>();
  verb->add_flag("--json", options->json, "machine-readable");
  verb->add_option("--post-mortem", options->folder,
                   "why a run ended, from its status folder (RUN/status)");
  verb->add_option("--site", options->site,
                   "also whether Slurm here is what this site profile says");
  verb->footer(
      "Exits with 1 if something that was built cannot be used here, and after a post-mortem with "
      "the\nrun's own exit code, or 2 while it still runs.\n"
      "Examples:\n  paceline doctor\n  srun --mpi=pmix -n 2 paceline doctor\n"
      "  paceline doctor --post-mortem 4711/status\n"
      "  paceline doctor --site slurm/sites/generic.json");
  verb->callback([options, &action] {
    action = [options] {
      return options->folder.empty() ? doctor(options->json, options->site)
                                     : print_post_mortem(options->folder, options->json);
    };
  });
}

}  // namespace paceline
