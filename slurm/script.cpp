#include "slurm/script.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/core/utf8.h"
#include "slurm/directives.h"
#include "sweeps/program.h"
#include "sweeps/run_context.h"

namespace paceline {

namespace fs = std::filesystem;

namespace {

constexpr char kTemplate[] =
#include "job.sbatch.inc"
    ;

using Marks = std::map<std::string, std::string>;

// In one pass: a value that looks like a mark stays what it is. A line that holds nothing but an
// empty value goes away with it.
std::string filled(std::string_view text, const Marks& marks) {
  std::string result;
  for (auto at = text.find("{{"); at != std::string_view::npos; at = text.find("{{")) {
    const auto end = text.find("}}", at);
    const std::string& value = marks.at(std::string(text.substr(at + 2, end - at - 2)));
    const bool whole_line = at > 0 && text[at - 1] == '\n' && text[end + 2] == '\n';
    result += text.substr(0, at);
    result += value;
    text.remove_prefix(end + 2 + (value.empty() && whole_line ? 1 : 0));
  }
  return result.append(text);
}

std::string quoted(const std::vector<std::string>& words) {
  std::vector<std::string> texts;
  texts.reserve(words.size());
  for (const std::string& word : words) texts.push_back(shell_quote(word));
  return join(texts, " ");
}

std::string format_modules(const Site& site) {
  std::vector<std::string> lines;
  if (site.module_purge) lines.emplace_back("module purge");
  if (!site.modules.empty()) {
    lines.push_back(fmt::format(
        "module load {} || refuse \"$(hostname) cannot load the modules of the site profile\" 64",
        quoted(site.modules)));
  }
  if (!lines.empty()) lines.emplace_back("module list");
  return join(lines, "\n");
}

// PMIx keeps what the ranks of a node share in a folder that a container need not show; a rank that
// finds none of it can die of that (PMIx 4.2). "hash" gives each rank its own.
std::string format_environment(const Site& site) {
  std::vector<std::string> lines;
  if (!site.unset.empty()) lines.push_back("unset " + join(site.unset, " "));
  if (site.container.on) lines.emplace_back("export PMIX_MCA_gds=hash");
  for (const auto& [name, value] : site.environment) {
    lines.push_back(fmt::format("export {}={}", name, script_word(value)));
  }
  if (!site.data.empty()) lines.push_back("export PACELINE_DATA=" + script_word(site.data));
  if (site.container.on && !site.container.cache.empty()) {
    for (const char* name : {"APPTAINER_CACHEDIR", "SINGULARITY_CACHEDIR"}) {
      lines.push_back(fmt::format("export {}={}", name, script_word(site.container.cache)));
    }
  }
  return join(lines, "\n");
}

void check_bind(const std::string& path) {
  if (path.find(',') == std::string::npos) return;
  throw Error(ErrorKind::usage, "a container path cannot contain a comma", path,
              "choose another folder");
}

// What runs read and write, beside what the profile names: the folder of studies, as reference runs
// are a study of their own.
std::string format_binds(const Site& site, const ScriptSetup& setup) {
  std::vector<std::string> paths = {setup.folder.parent_path().string()};
  for (const std::string& path : {site.data, site.stage}) {
    if (!path.empty()) paths.push_back(path);
  }
  paths.insert(paths.end(), setup.reads.begin(), setup.reads.end());
  if (!setup.by_hand.empty()) paths.push_back(setup.by_hand.string());
  std::string text;
  for (const std::string& path : paths) {
    check_bind(path);
    text += " --bind " + script_word(path);
  }
  for (const std::string& bind : site.container.binds) text += " --bind " + script_word(bind);
  return text;
}

std::string format_program(const Site& site, const ScriptSetup& setup, bool gpus) {
  const SiteContainer& container = site.container;
  if (!container.on) {
    return site.program.empty() ? shell_quote(setup.program.string()) : script_word(site.program);
  }
  std::string text = script_word(container.command) + " exec";
  if (container.nv && gpus) text += " --nv";
  for (const std::string& overlay : container.overlays)
    text += " --overlay " + script_word(overlay);
  text += format_binds(site, setup) + " " + script_word(container.image) + " ";
  return text + (site.program.empty() ? "paceline" : script_word(site.program));
}

// Newer Slurm does not pass the job's --cpus-per-task on to its steps. A rank that dies while MPI
// starts would leave the others waiting until the time limit; those that end well, all do within
// the wait. Killing at the first bad end (--kill-on-bad-exit) would hit ranks that end with 75.
std::string format_launch(const Site& site, const JobShape& shape) {
  std::vector<std::string> words;
  if (site.launcher == JobLauncher::srun) {
    words = {"srun", fmt::format("--nodes={}", shape.nodes),
             fmt::format("--ntasks={}", shape.ntasks),
             fmt::format("--cpus-per-task={}", shape.cpus_per_task), "--wait=120"};
  } else {
    words = {"mpirun",
             "-np",
             std::to_string(shape.ntasks),
             "--map-by",
             fmt::format("ppr:{}:node", shape.tasks_per_node()),
             "--bind-to",
             "none"};
  }
  words.insert(words.end(), site.launcher_options.begin(), site.launcher_options.end());
  return quoted(words);
}

// The same work in each job, so that unlike nodes and drift between jobs show.
std::string format_reference(const Site& site, const ScriptSetup& setup) {
  if (!site.reference) return "";
  const std::string study = setup.study + ".reference";
  const RunContext context{study, "gpus=1", "gpus=1", setup.session};
  const std::vector<std::string> words = {"train",
                                          "mnist-mlp",
                                          "--gpus=1",
                                          "--cpus-per-task=1",
                                          "--backend=self",
                                          "--device=" + setup.device,
                                          "--input=synthetic",
                                          "--steps=100",
                                          "--evaluate=none",
                                          "--quiet",
                                          "--store=" + setup.folder.string() + ".reference",
                                          "--context=" + context.json()};
  return "# A small run that is the same in all jobs: unlike nodes show in it.\n"
         "status=${TMPDIR:-/tmp}/paceline-reference.$SLURM_JOB_ID\n"
         "PACELINE_STATUS_DIR=$status \"${paceline[@]}\" " +
         quoted(words) +
         " ||\n  echo \"paceline: note: the reference run failed\" >&2\nrm -rf \"$status\"\n";
}

// A program of the user's own is started once, on the first node, and starts what else it needs:
// its record and what it prints are of one place.
std::string format_start(const JobArray& array, const ScriptSetup& setup) {
  if (!setup.own_program) return "\"${launch[@]}\" ";
  if (array.shape.nodes == 1) return "";
  return fmt::format("{}=$(printf '%s\\n' \"${{launch[@]}}\") ", kLauncherVariable);
}

std::string format_requeue(const Site& site) {
  if (!site.requeue) return "";
  return "# 75: saved before its end. It goes on there in this job's next turn.\n"
         "if [ \"$code\" = 75 ]; then\n"
         "  scontrol requeue \"${SLURM_ARRAY_JOB_ID}_$index\" && exit 75\n"
         "fi";
}

std::string format_fallback(const ScriptSetup& setup) {
  if (setup.fallback.empty()) return "";
  const std::string to = shell_quote(setup.fallback);
  return "# Asked for by --fallback: where the run's own backend could not sum on these nodes.\n"
         "if other=$(\"${paceline[@]}\" element fallback --to " +
         to +
         " --exit-code \"$code\" --status \"$PACELINE_STATUS_DIR\" \"${element[@]}\"); then\n"
         "  export PACELINE_FELL_BACK=1 PACELINE_STATUS_DIR=$PACELINE_STATUS_DIR.fallback\n"
         "  element+=(--backend \"$other\")\n"
         "  train\n"
         "fi";
}

// For a smoke test, which runs on less than the study it stands for.
std::string format_services(const ScriptSetup& setup) {
  std::string text;
  for (const std::string& service : setup.services) {
    text += " " + shell_quote("--built=" + service);
  }
  return text;
}

void check_folder(const fs::path& folder) {
  const std::string fault = fault_of_text(folder.string());
  if (fault.empty()) return;
  throw Error(ErrorKind::usage, "the name of the study's folder " + fault, folder.string(),
              "use another --results");
}

}  // namespace

std::string script_word(const std::string& text) {
  if (!text.starts_with('$')) return shell_quote(text);
  const bool braced = text.size() > 1 && text[1] == '{';
  const std::size_t begin = braced ? 2 : 1;
  std::size_t end = begin;
  while (end < text.size() &&
         (text[end] == '_' || (static_cast<unsigned char>(text[end]) < 128 &&
                               std::isalnum(static_cast<unsigned char>(text[end]))))) {
    ++end;
  }
  const bool closed = !braced || (end < text.size() && text[end] == '}');
  const bool named = end > begin && !std::isdigit(static_cast<unsigned char>(text[begin]));
  if (!named || !closed) return shell_quote(text);
  const std::string rest = text.substr(end + (braced ? 1 : 0));
  return fmt::format("\"${{{}:?is not set on this node}}\"{}", text.substr(begin, end - begin),
                     rest.empty() ? "" : shell_quote(rest));
}

std::string job_name(const std::string& array, const ScriptSetup& setup) {
  return fmt::format("{}.{}.{}", array, setup.study, setup.session);
}

fs::path file_of_array(const std::string& session, const std::string& array,
                       std::string_view ending) {
  return fs::path("slurm") / session / (array + std::string(ending));
}

namespace {

std::string command_by_hand(const JobArray& array, const ScriptSetup& setup) {
  if (setup.by_hand.empty()) {
    return file_of_array(setup.session, array.name, ".sbatch").string();
  }
  return shell_quote((setup.by_hand / (array.name + ".sbatch")).string());
}

// A study that was not submitted may have no folder yet. It is not made on a node that sees none of
// these files: there it would be another one.
std::string preparations_by_hand(const JobArray& array, const ScriptSetup& setup) {
  if (setup.by_hand.empty()) return "";
  const std::string folder = shell_quote(setup.by_hand.string());
  return "[ -r " + folder + "/" + array.name + ".points ] || refuse \"$(hostname) does not see \"" +
         folder +
         "\"; write the scripts to a folder that all nodes share, by --scripts\" 65\n"
         "mkdir -p \"$study\"";
}

}  // namespace

std::string script_text(const Site& site, const JobArray& array, const ScriptSetup& setup) {
  check_folder(setup.folder);
  const std::size_t count = array.runs.size();
  return filled(kTemplate, {{"directives", join(array_directives(site, array, setup), "\n")},
                            {"study", setup.study},
                            {"count", fmt::format("{} run{}", count, count == 1 ? "" : "s")},
                            {"shape", array.shape.text()},
                            {"site", site.name},
                            {"from", setup.by_hand.empty() ? ", from the study's folder" : ""},
                            {"script", command_by_hand(array, setup)},
                            {"by_hand", preparations_by_hand(array, setup)},
                            {"files", setup.by_hand.empty() ? "$study/slurm/" + setup.session
                                                            : shell_quote(setup.by_hand.string())},
                            {"array", array.name},
                            {"study_folder", shell_quote(setup.folder.string())},
                            {"modules", format_modules(site)},
                            {"environment", format_environment(site)},
                            {"setup", join(site.setup, "\n")},
                            {"store", array.shape.nodes > 1 ? "$SLURMD_NODENAME" : "127.0.0.1"},
                            {"program", format_program(site, setup, array.shape.gpus > 0)},
                            {"launch", format_launch(site, array.shape)},
                            {"start", format_start(array, setup)},
                            {"services", format_services(setup)},
                            {"reference", format_reference(site, setup)},
                            {"fallback", format_fallback(setup)},
                            {"requeue", format_requeue(site)},
                            {"errors", site.error_file ? "${log%.log}.err" : "$log"}});
}

std::string collect_script_text(const Site& site, const ScriptSetup& setup) {
  check_folder(setup.folder);
  std::vector<std::string> parts = {"#!/bin/bash\n# Collects study " + setup.study +
                                    " once its arrays have ended."};
  parts.push_back(join(collect_directives(site, setup), "\n"));
  for (const std::string& part :
       {format_modules(site), format_environment(site), join(site.setup, "\n")}) {
    if (!part.empty()) parts.push_back(part);
  }
  parts.push_back(fmt::format("paceline=({})\n\"${{paceline[@]}}\" collect {}",
                              format_program(site, setup, false),
                              shell_quote(setup.folder.string())));
  return "" + join(parts, "\n") + "\n";
}

}  // namespace paceline
