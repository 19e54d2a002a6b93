#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <set>
#include <utility>

#include "engine/core/child.h"
#include "engine/core/clock.h"
#include "engine/core/environment.h"
#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/text.h"
#include "engine/launch/program.h"
#include "engine/launch/topology.h"
#include "results/names.h"
#include "run/gpus.h"
#include "run/program_run.h"
#include "run/world.h"
#include "sweeps/program.h"

namespace paceline {

namespace fs = std::filesystem;

LaunchSpec make_launch_spec(const ProgramRequest& request) {
  const Settings given(request.parameters);
  LaunchSpec launch;
  launch.backend = lone_backend();  // asked for nothing here
  launch.device = given.text("device");
  launch.layout = request.layout;
  launch.oversubscribe = given.flag("oversubscribe");
  launch.near_gpu = given.text("cpu_binding") != "in-order";
  return launch;
}

ProgramRequest make_program_request(const Point& given, const std::string& definition,
                                    const std::vector<std::string>& command) {
  ProgramRequest request;
  request.parameters = resolve_program(given);
  const std::string tag = request.parameters.text("program").value_or("");
  request.program = parse_program(name_of_program(tag), definition);
  request.layout = make_layout(request.parameters);
  request.command = command;
  return request;
}

bool has_ranks(const UserProgram& program) {
  return program.processes != "one";
}

bool hides_ranks(const ProgramRequest& request) {
  static const std::set<std::string> launchers = {"mpirun",  "mpiexec",    "orterun",
                                                  "prterun", "horovodrun", "srun"};
  const UserProgram& program = request.program;
  if (request.layout.gpus == 1) return false;
  for (const std::string& text : program.command) {
    for (const std::string& word : program.shell ? split(text, ' ') : std::vector{text}) {
      if (launchers.contains(fs::path(word).filename())) return true;
    }
  }
  return request.layout.nodes > 1 && has_ranks(program);
}

fs::path name_of_run(const ProgramRequest& request) {
  const RecordTarget& target = request.target;
  return fs::path("runs") / fmt::format("{}.{}", target.point_folder, target.repeat);
}

fs::path folder_of_run(const ProgramRequest& request) {
  return fs::absolute(request.target.store) / name_of_run(request);
}

std::optional<std::string> value_in_run(const std::string& name, const ProgramRequest& request) {
  if (name == "repeat") return std::to_string(request.target.repeat);
  if (name == "out") return folder_of_run(request).string();
  if (name == "paceline") return this_program().string();
  return value_in_point(name, request.parameters, request.layout);
}

namespace {

class Becoming {
 public:
  Becoming(const ProgramRequest& request, std::string part)
      : request_(request),
        program_(request.program),
        part_(std::move(part)),
        environment_(environment_of_process()),
        process_(find_process_rank(environment_)) {}

  [[noreturn]] void go() {
    const bool runs = part_ == "run";
    if (runs) {
      bind();
      show_gpus();
    }
    set_variables();
    restore_environment();
    const std::vector<std::string>& words = runs ? program_.command : program_.setup;
    std::vector<std::string> command =
        mapped(words, [&](const std::string& word) { return substitute(word, program_.shell); });
    for (const auto& [name, value] : program_.environment) {
      setenv(name.c_str(), substitute(value, false).c_str(), 1);
    }
    unsetenv(kPartVariable);
    unsetenv(kLauncherVariable);
    unsetenv(kContainerVariable);
    if (program_.shell) command = {"/bin/sh", "-c", command.front()};
    if (runs && process_.rank == 0) {
      Folder(request_.target.store)
          .replace_file(name_of_run(request_) += ".start", fmt::format("{:.9f}", now_seconds()));
    }
    if (chdir(program_.directory.c_str()) != 0) fail(program_.directory, "cannot be entered");
    execvp(command.front().c_str(), as_arguments(command).data());
    fail(command.front(), "cannot be started");
  }

 private:
  [[noreturn]] static void fail(const std::string& what, const char* why) {
    throw input_error(fmt::format("{}: {}", why, std::strerror(errno)), what,
                      "check the program's command and directory");
  }

  void bind() {
    const CpuAssignment assignment = assign_cpus(make_launch_spec(request_), process_);
    bind_this_thread(all_cpus(assignment.replicas));
    // What most libraries ask; a spec's own value replaces it.
    setenv("OMP_NUM_THREADS", std::to_string(request_.layout.cpus_per_replica).c_str(), 1);
  }

  // Its GPUs only; of a point on cores none, as frameworks take what they see.
  void show_gpus() {
    const ChosenGpus gpus(Settings(request_.parameters).text("device"), lone_backend(), process_,
                          request_.layout.gpus / request_.layout.ntasks);
    const std::vector<std::string> listed =
        split(environment_value(environment_, "CUDA_VISIBLE_DEVICES"), ',');
    std::vector<std::string> devices;
    for (const Gpu& gpu : gpus.cards()) {
      const auto index = static_cast<std::size_t>(gpu.index);
      const bool named = index < listed.size() && !listed[index].empty();
      devices.push_back(named ? listed[index] : std::to_string(gpu.index));
    }
    devices_ = join(devices, ",");
    setenv("CUDA_VISIBLE_DEVICES", devices_.c_str(), 1);
  }

  // As torchrun names them, for processes that are ranks.
  void set_variables() const {
    if (!has_ranks(program_)) return;
    for (const auto& [name, value] : {std::pair{"RANK", process_.rank},
                                      {"WORLD_SIZE", process_.size},
                                      {"LOCAL_RANK", process_.local_rank},
                                      {"LOCAL_WORLD_SIZE", process_.local_size},
                                      {"GROUP_RANK", process_.node}}) {
      setenv(name, std::to_string(value).c_str(), 1);
    }
  }

  std::string substitute(const std::string& text, bool is_for_shell) const {
    const auto value = [&](const std::string& name) { return value_of_placeholder(name); };
    return is_for_shell ? fill_shell_command(text, value) : filled(text, value);
  }

  std::string value_of_placeholder(const std::string& name) const {
    if (name == "rank") return std::to_string(process_.rank);
    if (name == "local_rank") return std::to_string(process_.local_rank);
    if (name == "node_rank") return std::to_string(process_.node);
    if (name == "world_size") return std::to_string(process_.size);
    if (name == "address") return environment_value(environment_, "MASTER_ADDR");
    if (name == "port") return environment_value(environment_, "MASTER_PORT");
    if (name == "devices") return devices_;
    return value_in_run(name, request_).value();
  }

  const ProgramRequest& request_;
  const UserProgram& program_;
  const std::string part_;
  const Environment environment_;
  const ProcessRank process_;
  std::string devices_;
};

}  // namespace

void become_program(const ProgramRequest& request, const std::string& part) {
  Becoming(request, part).go();
}

}  // namespace paceline
