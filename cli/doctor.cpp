// paceline doctor: what is here, what is missing, and what to do about it.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/study_options.h"
#include "cli/verb.h"
#include "engine/core/json.h"
#include "engine/core/output.h"
#include "engine/core/text.h"
#include "results/configuration.h"
#include "run/diagnosis.h"
#include "run/program_run.h"
#include "slurm/site.h"

namespace paceline {

namespace {

std::string make_key(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return c == ' ' ? '_' : std::tolower(c); });
  return name;
}

std::string format_json(const Diagnosis& diagnosis) {
  Json json = Json::object();
  for (const DiagnosisSection& section : diagnosis.sections) {
    Json& facts = json[section.title] = Json::object();
    for (const Fact& fact : section.facts) facts[make_key(fact.name)] = fact.text;
  }
  json["problems"] = Json::array();
  for (const Problem& problem : diagnosis.problems) {
    json["problems"].push_back(
        {{"what", problem.what}, {"cure", problem.cure}, {"blocks", problem.blocks}});
  }
  return json_text(json, 2) + "\n";
}

std::string format_diagnosis(const Diagnosis& diagnosis) {
  std::string text;
  for (const DiagnosisSection& section : diagnosis.sections) {
    text += section.title + "\n";
    for (const Fact& fact : section.facts) {
      text += name_and_text("  " + fact.name, 21, fact.text);
    }
  }
  if (diagnosis.problems.empty()) return text + "no problems found\n";
  text += "problems\n";
  for (const Problem& problem : diagnosis.problems) {
    text += name_and_text(problem.blocks ? "  failed:" : "  note:", 10,
                          problem.what + (problem.cure.empty() ? "" : "; " + problem.cure));
  }
  return text;
}

// What Slurm says here to a site profile, beside the rest.
void add_site(Diagnosis& diagnosis, const std::string& file) {
  const SiteReport report = check_site(read_site(file), SlurmCommands(environment_of_process()));
  DiagnosisSection section{"site", {}};
  for (const auto& [name, text] : report.facts) section.facts.push_back({name, text});
  diagnosis.sections.push_back(std::move(section));
  for (const SiteFinding& finding : report.findings) {
    diagnosis.problems.push_back({finding.what, finding.cure, finding.blocks});
  }
}

// What is set for all calls, and by which file.
void add_configuration(Diagnosis& diagnosis) {
  const auto& [settings, fault] = configuration();
  const auto describe = [](const Setting& setting) {
    if (setting.value.empty()) return std::string("not set");
    return setting.value + " (" + (setting.from.empty() ? "built in" : setting.from) + ")";
  };
  std::vector<std::string> files;
  for (const auto& file : configuration_files(environment_of_process())) files.push_back(file);
  diagnosis.sections.push_back({"configuration",
                                {{"results", describe(settings.results)},
                                 {"site", describe(settings.site)},
                                 {"files", join(files, ", then ")}}});
  if (fault) diagnosis.problems.push_back({fault->what(), "", true});
  if (settings.site.from.empty()) return;
  try {
    read_site(settings.site.value);
  } catch (const Error& error) {
    diagnosis.problems.push_back({settings.site.from + ": " + error.what(), "", true});
  }
}

int doctor(bool json, bool frameworks, const std::string& site, const SupportBundle& bundle) {
  Diagnosis diagnosis = diagnose(environment_of_process());
  add_configuration(diagnosis);
  if (!site.empty()) add_site(diagnosis, site);
  if (frameworks) diagnosis.sections.push_back(frameworks_here(environment_of_process()));
  if (!bundle.file.empty()) {
    write_support_bundle(bundle, format_diagnosis(diagnosis), format_json(diagnosis));
    return 0;
  }
  print("{}", json ? format_json(diagnosis) : format_diagnosis(diagnosis));
  return std::ranges::any_of(diagnosis.problems, &Problem::blocks) ? 1 : 0;
}

}  // namespace

void add_doctor(CLI::App& app, Action& action) {
  CLI::App* verb = app.add_subcommand(
      "doctor", "Check this machine: what works, what is missing, how to get it");
  struct Options {
    bool json = false, frameworks = false;
    std::string folder, site;
    SupportBundle bundle;
  };
  auto options = std::make_shared<Options>();
  verb->add_flag("--json", options->json, "print JSON");
  verb->add_flag("--frameworks", options->frameworks,
                 "also import PyTorch, TensorFlow, Horovod and JAX in the python3 of the PATH");
  add_value(*verb, "--post-mortem FOLDER", options->folder,
            "say why a run ended, from its status folder (RUN/status)");
  add_value(*verb, "--site NAME", options->site, "also compare Slurm with this site profile");
  CLI::Option* file =
      add_value(*verb, "--bundle FILE", options->bundle.file,
                "write a support archive of this machine, without secrets (NAME.tar.gz)");
  add_value(*verb, "--about FOLDER", options->bundle.about,
            "add records, logs and status files of this study or run to the archive")
      ->needs(file);
  verb->footer(
      "Exits with 1 if something that was built cannot be used here, and after a post-mortem with "
      "the\nrun's own exit code, or 2 while it still runs or may.\n"
      "Examples:\n  paceline doctor\n  srun --mpi=pmix -n 2 paceline doctor\n"
      "  paceline doctor --post-mortem 4711/status\n"
      "  paceline doctor --site slurm/sites/generic.json\n"
      "  paceline doctor --frameworks\n"
      "  paceline doctor --bundle support.tar.gz --about results/local/quick");
  verb->callback([options, &action] {
    action = [options] {
      return options->folder.empty()
                 ? doctor(options->json, options->frameworks, options->site, options->bundle)
                 : print_post_mortem(options->folder, options->json);
    };
  });
}

}  // namespace paceline
