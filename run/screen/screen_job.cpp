#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "engine/core/clock.h"
#include "engine/core/environment.h"
#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/text.h"
#include "engine/launch/program.h"
#include "engine/launch/topology.h"
#include "results/names.h"
#include "run/screen/screen_run.h"
#include "slurm/script.h"
#include "slurm/site_plan.h"

namespace paceline {

namespace {

namespace fs = std::filesystem;

constexpr char kScript[] = "screen.sbatch";
constexpr std::chrono::seconds kPause{10};

int whole_number(const std::string& text, const char* option) {
  const auto number = to_integer(text);
  if (number && *number > 0 && *number <= 1'000'000) return static_cast<int>(*number);
  throw usage_error(text.empty() ? "a job of a site needs a number of nodes"
                                 : fmt::format("\"{}\" is no number of them", text),
                    option, "give for example --nodes 16");
}

// All of each node: a task for each GPU, else one.
JobShape whole_nodes(const ScreenJobRequest& request, const Site& site, const SlurmCommands& slurm,
                     std::string& warning) {
  const std::string device = request.device.empty() ? site.device : request.device;
  const bool on_cpus = device.empty() ? site.gpu_form == GpuForm::none
                                      : !find_name("device", device, "--device").gpus;
  const SiteMachine nodes =
      find_target_machine(site, on_cpus, slurm, topology_of_machine().usable_cores());
  const TargetMachine& machine = nodes.machine;
  warning = nodes.warning;
  JobShape shape{.nodes = whole_number(request.nodes, "--nodes")};
  const int gpus = on_cpus || !machine.node ? 0 : machine.node->gpus;
  if (!on_cpus && gpus == 0) {
    throw usage_error("nobody says how many GPUs a node has", site.where,
                      "add \"gpus_per_node\", or --device cpu");
  }
  const int each = std::max(1, gpus);
  shape.gpus = shape.nodes * gpus;
  shape.ntasks = shape.nodes * each;
  shape.cpus_per_task = request.cpus_per_task.empty()
                            ? std::max(1, machine.cores / each)
                            : whole_number(request.cpus_per_task, "--cpus-per-task");
  if (gpus > 0 && site.most_cpus_per_gpu > 0) {
    shape.cpus_per_task = std::min(shape.cpus_per_task, site.most_cpus_per_gpu);
  }
  return shape;
}

std::vector<std::string> option_words(const ScreenJobRequest& request) {
  if (!request.backend.empty()) find_name("backend", request.backend, "--backend");
  std::vector<std::string> words = {"--backend=" +
                                    (request.backend.empty() ? "ring" : request.backend)};
  if (request.rounds > 0) words.push_back(fmt::format("--rounds={}", request.rounds));
  if (request.busy_ok) words.emplace_back("--busy-ok");
  return words;
}

void wait_for_end(const SlurmCommands& slurm, const std::string& name) {
  while (true) {
    std::this_thread::sleep_for(kPause);
    const CommandResult queue = slurm.run({"squeue", "-h", "-a", "--name=" + name, "-o", "%T"});
    if (queue.ok() && trim(queue.out).empty()) return;  // a controller that is silent may be back
  }
}

}  // namespace

std::optional<std::string> submit_screen(const ScreenJobRequest& request,
                                         const std::function<void(const std::string&)>& print,
                                         const std::function<bool()>& confirm) {
  const Site site = read_site(request.site);
  const SlurmCommands slurm(environment_of_process());
  ScriptSetup setup;
  setup.session = new_session_id();
  setup.study = "screen";
  setup.program = this_program();
  setup.folder = fs::absolute(request.out.empty() ? fs::path("screens") / setup.session
                                                  : fs::path(request.out))
                     .lexically_normal();
  setup.screen_words = option_words(request);
  setup.screen_device = request.device;
  JobArray job;
  job.name = "screen";
  job.runs.resize(1);
  std::string warning;
  job.shape = whole_nodes(request, site, slurm, warning);
  if (site.most_minutes > 0 && request.minutes > site.most_minutes) {
    throw usage_error(fmt::format("--minutes {} is above {} {}", request.minutes, kMostMinutesKey,
                                  site.most_minutes),
                      site.where, "ask for less");
  }
  job.need.minutes = request.minutes;
  job.need.memory_mb =
      static_cast<std::int64_t>(1024 * site.gb_per_replica * job.shape.tasks_per_node());
  const std::string script = screen_script_text(site, job, setup);
  if (!warning.empty()) print(fmt::format("# warning: {}\n", warning));
  if (request.dry_run) {
    for (const std::string& placeholder : list_placeholders(site)) {
      print(fmt::format("# warning: {}: {}; write your own before you submit\n", site.where,
                        placeholder));
    }
    print(script);
    return "";
  }
  refuse_placeholders(site);
  OutputFile(setup.folder / kScreenFile, "--out", "a screen").check_name();
  print(fmt::format("{}, {}: at most {:.1f} GPU-hours, {:.1f} CPU-hours\n", job.shape.text(),
                    counted(request.minutes, "minute"), job.gpu_hours(), job.cpu_hours()));
  if (!confirm()) return std::nullopt;
  make_folder(setup.folder);
  replace_file(setup.folder / kScript, script);
  const std::string name = job_name(job.name, setup);
  const SbatchAnswer answer = slurm.submit(setup.folder / kScript, setup.folder, {}, name);
  if (answer.job == 0) {
    throw usage_error("sbatch: " + answer.why, (setup.folder / kScript).string(),
                      answer.is_refused
                          ? "check account, partition, qos and the requests in " + site.where
                          : "Slurm may have it: look for it by squeue --name=" + name);
  }
  print(fmt::format("job {}; when it has ended: paceline screen report {}\n", answer.job,
                    shell_quote(fs::relative(setup.folder).string())));
  if (!request.wait) return "";
  wait_for_end(slurm, name);
  if (!path_exists(setup.folder / kScreenFile)) {
    throw input_error("the job left no screen", setup.folder.string(),
                      fmt::format("see screen.{}.log there", answer.job));
  }
  return setup.folder.string();
}

}  // namespace paceline
