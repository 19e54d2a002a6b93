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

// A name that Slurm takes for a pattern.
std::string log_pattern(const JobArray& array, const ScriptSetup& setup, const char* ending) {
  if (setup.by_hand.empty()) return file_of_array(setup.session, array.name, ending).string();
  const std::string folder = setup.by_hand.string();
  if (folder.find_first_of("%\\\"'\n") != std::string::npos) {
    throw usage_error("Slurm cannot take the name of this folder for its logs", folder,
                      "name another: --scripts FOLDER");
  }
  const std::string name = folder + "/" + array.name + ending;
  return name.find(' ') == std::string::npos ? name : '"' + name + '"';
}

constexpr int kCollectMinutes = 10;

class Directives {
 public:
  void add(const std::string& option, const std::string& value) {
    if (!value.empty()) line("--" + option + "=" + value);
  }
  void line(const std::string& option) { lines_.push_back("#SBATCH " + option); }
  void verbatim(const std::vector<std::string>& lines) {
    lines_.insert(lines_.end(), lines.begin(), lines.end());
  }
  std::vector<std::string> take() { return std::move(lines_); }

 private:
  std::vector<std::string> lines_;
};

void add_who(Directives& directives, const Site& site) {
  directives.add("account", site.account);
  directives.add("partition", site.partition);
  directives.add("qos", site.qos);
}

std::string with_type(const Site& site, int count) {
  return site.gpu_type.empty() ? std::to_string(count) : fmt::format("{}:{}", site.gpu_type, count);
}

[[noreturn]] void refuse(const Site& site, const std::string& what, const std::string& fix) {
  throw usage_error(what, site.where, fix);
}

std::string memory_text(std::int64_t mb) {
  return mb % 1024 == 0 ? fmt::format("{}G", mb / 1024) : fmt::format("{}M", mb);
}

int even_share(const Site& site, const JobShape& shape, int parts, const char* of_what) {
  if (parts > 0 && shape.gpus % parts == 0) return shape.gpus / parts;
  refuse(site,
         fmt::format("{} cannot be requested as equal GPUs per {} with form {}", shape.text(),
                     of_what, to_string(site.gpu_form)),
         "use form gres or gpus");
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
                            {"store", array.shape.nodes > 1 ? "$SLURMD_NODENAME" : "127.0.0.1"},
                            {"program", format_program(site, setup, array.shape)},
                            {"launch", format_launch(site, array.shape)},
                            {"start", format_start(site, array, setup)},
                            {"services", format_services(setup)},
                            {"reference", format_reference(site, setup)},
                            {"fallback", format_fallback(setup)},
                            {"own_signal", format_own_signal(site)},
                            {"requeue", format_requeue(site)},
                            {"minutes", std::to_string(array.need.minutes)},
                            {"limit_key", limit_key(site, array.need)},
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
                              format_program(site, setup, {}), shell_quote(setup.folder.string())));
  return "" + join(parts, "\n") + "\n";
}

std::vector<std::string> gpu_options(const Site& site, const JobShape& shape) {
  if (shape.gpus == 0) return {};
  switch (site.gpu_form) {
    case GpuForm::gres:
      return {"--gres=gpu:" + with_type(site, even_share(site, shape, shape.nodes, "node"))};
    case GpuForm::gpus:
      return {"--gpus=" + with_type(site, shape.gpus)};
    case GpuForm::gpus_per_task:
      return {"--gpus-per-task=" + with_type(site, even_share(site, shape, shape.ntasks, "task"))};
    case GpuForm::gpus_per_node:
      return {"--gpus-per-node=" + with_type(site, even_share(site, shape, shape.nodes, "node")),
              "--gpu-bind=none"};
    case GpuForm::none:
      break;
  }
  refuse(site,
         fmt::format("{} needs GPUs, but the site profile has no form for them", shape.text()),
         "add \"gpus\": {\"form\": \"gres\"}, or run on the cpu device (--set device=cpu)");
}

std::vector<std::string> memory_options(const Site& site, const JobShape& shape,
                                        std::int64_t memory_mb) {
  if (memory_mb <= 0) return {};
  const auto share = [&](std::int64_t parts) { return (memory_mb + parts - 1) / parts; };
  const std::int64_t cpus_of_node = std::int64_t{shape.tasks_per_node()} * shape.cpus_per_task;
  switch (site.memory_form) {
    case MemoryForm::none:
      return {};
    case MemoryForm::mem_per_cpu:
      return {"--mem-per-cpu=" +
              memory_text(std::max(share(cpus_of_node), std::int64_t{site.gb_per_cpu} * 1024))};
    case MemoryForm::mem_per_gpu:
      if (shape.gpus_per_node() > 0) {
        return {"--mem-per-gpu=" + memory_text(share(shape.gpus_per_node()))};
      }
      return {"--mem=" + memory_text(memory_mb)};  // a run without GPUs
    case MemoryForm::mem:
      return {"--mem=" + memory_text(memory_mb)};
  }
  return {};
}

std::string time_text(int minutes) {
  const int days = minutes / (24 * 60), hours = minutes / 60 % 24;
  if (days > 0) return fmt::format("{}-{:02}:{:02}:00", days, hours, minutes % 60);
  return fmt::format("{}:{:02}:00", hours, minutes % 60);
}

std::vector<std::string> array_directives(const Site& site, const JobArray& array,
                                          const ScriptSetup& setup) {
  const JobShape& shape = array.shape;
  Directives directives;
  directives.add("job-name", job_name(array.name, setup));
  directives.add("array", fmt::format("0-{}{}", array.runs.size() - 1,
                                      site.throttle > 0 ? fmt::format("%{}", site.throttle) : ""));
  directives.add("output", log_pattern(array, setup, ".%A_%a.log"));
  if (site.error_file) directives.add("error", log_pattern(array, setup, ".%A_%a.err"));
  directives.line("--open-mode=append");
  add_who(directives, site);
  directives.add("constraint", site.constraint);
  directives.add("nodes", std::to_string(shape.nodes));
  directives.add("ntasks", std::to_string(shape.ntasks));
  if (site.ntasks_per_node) {
    directives.add("ntasks-per-node", std::to_string(shape.tasks_per_node()));
  }
  directives.add("cpus-per-task", std::to_string(shape.cpus_per_task));
  directives.add("hint", site.hint);
  for (const std::string& option : gpu_options(site, shape)) directives.line(option);
  for (const std::string& option : memory_options(site, shape, array.need.memory_mb)) {
    directives.line(option);
  }
  if (site.exclusive) directives.line("--exclusive");
  directives.add("time", time_text(array.need.minutes));
  if (site.signal_seconds > 0 && array.need.minutes * 60 > 2 * site.signal_seconds) {
    directives.add("signal", fmt::format("B:USR1@{}", site.signal_seconds));
  }
  directives.line(site.requeue ? "--requeue" : "--no-requeue");
  directives.verbatim(site.extra);
  directives.verbatim(site.burst_buffer);
  return directives.take();
}

std::vector<std::string> collect_directives(const Site& site, const ScriptSetup& setup) {
  Directives directives;
  directives.add("job-name", job_name("collect", setup));
  directives.add("output", file_of_array(setup.session, "collect", ".%j.log").string());
  if (site.error_file) {
    directives.add("error", file_of_array(setup.session, "collect", ".%j.err").string());
  }
  add_who(directives, site);
  directives.add("nodes", "1");
  directives.add("ntasks", "1");
  directives.add("cpus-per-task", "1");
  directives.add("time", time_text(kCollectMinutes));
  directives.verbatim(site.extra);
  return directives.take();
}

}  // namespace paceline
