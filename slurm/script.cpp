#include "slurm/script.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "sweeps/program.h"

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

// A word of a profile: literal, except for a leading variable ("$SCRATCH/x"), which the shell
// expands, with an error if it is unset.
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

std::string format_modules(const Site& site) {
  std::vector<std::string> lines;
  if (site.module_purge) lines.emplace_back("module purge");
  if (!site.modules.empty()) {
    lines.push_back(fmt::format(
        "module load {} || refuse \"$(hostname) cannot load the modules of the site profile\" 64",
        shell_quote(site.modules)));
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
  throw usage_error("a container path cannot contain a comma", path, "choose another folder");
}

// What runs read and write, beside what the profile names: the folder of studies, as reference runs
// are a study of their own.
std::vector<std::string> bound_paths(const Site& site, const ScriptSetup& setup) {
  std::vector<std::string> paths = {setup.folder.parent_path().string()};
  for (const std::string& path : {site.data, site.stage}) {
    if (!path.empty()) paths.push_back(path);
  }
  paths.insert(paths.end(), setup.reads.begin(), setup.reads.end());
  if (!setup.by_hand.empty()) paths.push_back(setup.by_hand.string());
  std::ranges::for_each(paths, check_bind);
  return paths;
}

// The words before a program in the container: of srun its options, as srun starts it there.
std::string format_container(const Site& site, const ScriptSetup& setup, bool gpus) {
  const SiteContainer& container = site.container;
  if (!container.edf.empty()) return "--environment=" + script_word(container.edf) + " ";
  std::string text;
  if (container.is_of_srun()) {
    for (const std::string& path : bound_paths(site, setup)) {
      text += (text.empty() ? "" : ",") + script_word(path) + ":" + script_word(path);
    }
    for (const std::string& bind : container.binds) text += "," + script_word(bind);
    return "--container-image=" + script_word(container.image) + " --container-mounts=" + text +
           " ";
  }
  text = script_word(container.command) + " exec";
  if (container.nv && gpus) text += " --nv";
  for (const std::string& overlay : container.overlays)
    text += " --overlay " + script_word(overlay);
  for (const std::string& path : bound_paths(site, setup)) text += " --bind " + script_word(path);
  for (const std::string& bind : container.binds) text += " --bind " + script_word(bind);
  return text + " " + script_word(container.image) + " ";
}

std::string program_within(const Site& site) {
  return site.program.empty() ? "paceline" : script_word(site.program);
}

// Of a program of the user's on several nodes: started outside of the container, where there are
// Slurm's commands; each process that srun starts is in one.
bool starts_containers(const Site& site, const JobShape& shape, const ScriptSetup& setup) {
  return site.container.on && setup.own_program && shape.nodes > 1;
}

std::string format_program(const Site& site, const ScriptSetup& setup, const JobShape& shape) {
  const SiteContainer& container = site.container;
  if (starts_containers(site, shape, setup)) return shell_quote(setup.program.string());
  if (!container.on) {
    return site.program.empty() ? shell_quote(setup.program.string()) : script_word(site.program);
  }
  const std::string step =
      container.is_of_srun()
          ? fmt::format("srun --nodes=1 --ntasks=1 --overlap --cpus-per-task={} ",
                        shape.tasks_per_node() * shape.cpus_per_task)
          : "";
  return step + format_container(site, setup, shape.gpus > 0) + program_within(site);
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
  return shell_quote(words);
}

// The same work in each job, so that unlike nodes and drift between jobs show.
std::string format_reference(const Site& site, const ScriptSetup& setup) {
  if (!site.reference) return "";
  const std::string study = setup.study + ".reference";
  const RunContext context{{study, "gpus=1", "gpus=1", setup.session}};
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
         shell_quote(words) +
         " ||\n  echo \"paceline: note: the reference run failed\" >&2\nrm -rf \"$status\"\n";
}

// Ranks meet at a store on the first node of the job: so each hears at once of another's end.
std::string store_address(const JobShape& shape) {
  return shape.nodes > 1 ? "$SLURMD_NODENAME" : "127.0.0.1";
}

// A rank of Paceline for each task of a shape.
std::string format_ranks(const Site& site, const JobShape& shape, const ScriptSetup& setup,
                         const std::string& more = "") {
  const std::string program =
      site.container.on      ? format_container(site, setup, shape.gpus > 0) + program_within(site)
      : site.program.empty() ? shell_quote(setup.program.string())
                             : script_word(site.program);
  return format_launch(site, shape) + more + " " + program;
}

std::string screen_options(const JobShape& shape, const ScriptSetup& setup) {
  const std::string device = !setup.screen_device.empty() ? setup.screen_device
                             : shape.gpus > 0             ? "cuda"
                                                          : "cpu";
  return fmt::format("--gpus={} --nodes={} --cpus-per-task={} --device={} {}", shape.ntasks,
                     shape.nodes, shape.cpus_per_task, shell_quote(device),
                     shell_quote(setup.screen_words));
}

// A process for each GPU, or for each task.
JobShape shape_of_screen(JobShape shape) {
  if (shape.gpus == 0 || shape.gpus == shape.ntasks) return shape;
  shape.cpus_per_task = std::max(1, shape.cpus() / shape.gpus);
  shape.ntasks = shape.gpus;
  return shape;
}

std::string format_screen(const Site& site, const JobShape& of_runs, const ScriptSetup& setup) {
  if (!setup.screen) return "";
  const JobShape shape = shape_of_screen(of_runs);
  // What the job asked for a task is not what one of these gets.
  const bool has_other_tasks = !(shape == of_runs) && site.gpu_form == GpuForm::gpus_per_task &&
                               site.launcher == JobLauncher::srun;
  return fmt::format(
      "# What of this job is slow, before the run, whose record says it.\n"
      "screen=${{log%.log}}.screen${{SLURM_RESTART_COUNT:-}}\n"
      "if timeout -k 10 {} {} screen {} --out \"$screen\"; then\n"
      "  export PACELINE_SCREEN=$screen\n"
      "else\n"
      "  echo \"paceline: note: the screen failed\" >&2\n"
      "fi",
      60 * kScreenMinutes,
      format_ranks(site, shape, setup, has_other_tasks ? " --gpus-per-task=1" : ""),
      screen_options(shape, setup));
}

// Of a job that is no array.
std::string plain_script(const std::string& what, const std::vector<std::string>& directives,
                         const Site& site, const std::string& command) {
  std::vector<std::string> parts = {"#!/bin/bash\n" + what, join(directives, "\n"),
                                    "refuse() {\n  echo \"paceline: $1\" >&2\n  exit \"$2\"\n}"};
  for (const std::string& part :
       {format_modules(site), format_environment(site), join(site.setup, "\n"), command}) {
    if (!part.empty()) parts.push_back(part);
  }
  return join(parts, "\n") + "\n";
}

// A program of the user's own is started once, on the first node, and starts what else it needs:
// its record and what it prints are of one place.
std::string format_start(const Site& site, const JobArray& array, const ScriptSetup& setup) {
  const std::string program = "\"${paceline[@]}\"",
                    within = site.container.on
                                 ? format_container(site, setup, array.shape.gpus > 0) +
                                       program_within(site)
                                 : "";
  if (!setup.own_program) {
    return "\"${launch[@]}\" " +
           (site.container.is_of_srun() && site.container.on ? within : program);
  }
  if (array.shape.nodes == 1) return program;
  const auto lines = [](const char* variable, const std::string& words) {
    return fmt::format("{}=$(printf '%s\\n' {}) ", variable, words);
  };
  return lines(kLauncherVariable, "\"${launch[@]}\"") +
         (within.empty() ? "" : lines(kContainerVariable, within)) + program;
}

// Another signal than the limit's may end a run with 138, too.
std::string format_own_signal(const Site& site) {
  if (join(site.extra, "\n").find("--signal") == std::string::npos) return "";
  return "# The profile's own --signal may send it to the ranks alone.\n"
         "[ \"$code\" != 138 ] || signalled=(--signalled)";
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
  throw usage_error("the name of the study's folder " + fault, folder.string(),
                    "use another --results");
}

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
  return fmt::format(
      "[ -r \"$files/{}.points\" ] || refuse \"$(hostname) does not see $files; "
      "write the scripts to a folder that all nodes share, by --scripts\" 65\nmkdir -p \"$study\"",
      array.name);
}

}  // namespace

std::string job_name(const std::string& array, const ScriptSetup& setup) {
  return fmt::format("{}.{}.{}", array, setup.study, setup.session);
}

fs::path file_of_array(const std::string& session, const std::string& array,
                       std::string_view ending) {
  return fs::path("slurm") / session / (array + std::string(ending));
}

std::string script_text(const Site& site, const JobArray& array, const ScriptSetup& setup) {
  check_folder(setup.folder);
  const std::size_t count = array.runs.size();
  return filled(kTemplate, {{"directives", join(array_directives(site, array, setup), "\n")},
                            {"study", setup.study},
                            {"count", counted(count, "run")},
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
                            {"store", store_address(array.shape)},
                            {"program", format_program(site, setup, array.shape)},
                            {"launch", format_launch(site, array.shape)},
                            {"start", format_start(site, array, setup)},
                            {"services", format_services(setup)},
                            {"reference", format_reference(site, setup)},
                            {"screen", format_screen(site, array.shape, setup)},
                            {"fallback", format_fallback(setup)},
                            {"own_signal", format_own_signal(site)},
                            {"requeue", format_requeue(site)},
                            {"minutes", std::to_string(array.need.minutes)},
                            {"limit_key", limit_key(site, array.need)},
                            {"errors", site.error_file ? "${log%.log}.err" : "$log"}});
}

std::string collect_script_text(const Site& site, const ScriptSetup& setup) {
  check_folder(setup.folder);
  return plain_script(
      "# Collects study " + setup.study + " once its arrays have ended.",
      collect_directives(site, setup), site,
      fmt::format("paceline=({})\n\"${{paceline[@]}}\" collect {}", format_program(site, setup, {}),
                  shell_quote(setup.folder.string())));
}

std::string screen_script_text(const Site& site, const JobArray& job, const ScriptSetup& setup) {
  check_folder(setup.folder);
  return plain_script(
      "# Which node, device or link is slow? By \"paceline screen\" from the site profile " +
          site.name + ".",
      screen_directives(site, job, setup), site,
      fmt::format("folder={}\n"
                  "cd \"$folder\" || refuse \"$(hostname) does not see $folder\" 65\n"
                  "export PACELINE_STORE={} PACELINE_TOKEN=$(< /proc/sys/kernel/random/uuid)\n"
                  "{} screen {} --out \"$folder\"",
                  shell_quote(setup.folder.string()), store_address(job.shape),
                  format_ranks(site, job.shape, setup), screen_options(job.shape, setup)));
}

}  // namespace paceline
