#include "tests/faults/victim.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <functional>
#include <thread>

#include "engine/core/clock.h"
#include "engine/core/environment.h"
#include "engine/core/text.h"
#include "engine/launch/program.h"
#include "results/store.h"
#include "tests/support/expect_error.h"
#include "tests/support/scratch.h"

namespace paceline::faults {

namespace fs = std::filesystem;

namespace {

constexpr char kMark[] = "PACELINE_FAULT_RUN";

bool until(double patience, const std::function<bool()>& condition) {
  const double end = now_seconds() + patience;
  while (!condition()) {
    if (now_seconds() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return true;
}

std::string new_mark() {
  static std::atomic<int> runs{0};
  return fmt::format("{}-{}", getpid(), runs++);
}

// The value of a variable in /proc/PID/environ.
std::optional<std::string> variable(const std::string& environment, const std::string& name) {
  for (const std::string& entry : split(environment, '\0')) {
    if (entry.starts_with(name + "=")) return entry.substr(name.size() + 1);
  }
  return std::nullopt;
}

bool is_zombie(const fs::path& process) {
  const std::string stat = file_text(process / "stat");
  const auto name_end = stat.rfind(')');
  return name_end == stat.npos || name_end + 2 >= stat.size() || stat[name_end + 2] == 'Z';
}

int rank_in(const std::string& environment) {
  for (const char* name : {"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"}) {
    if (const auto value = variable(environment, name)) {
      return static_cast<int>(to_integer(*value).value_or(-1));
    }
  }
  return -1;
}

std::string read_last_line(const std::string& text) {
  std::string last;
  for (const std::string& line : split(text, '\n')) {
    if (!trim(line).empty()) last = line;
  }
  return last;
}

}  // namespace

std::vector<std::string> deadline(int seconds, int start_seconds) {
  return {"--abort-seconds", std::to_string(seconds), "--start-seconds",
          std::to_string(start_seconds)};
}

std::vector<std::string> training(const std::string& backend, Starter starter,
                                  const std::vector<std::string>& more) {
  const bool one_task_a_node = backend.starts_with("mirrored");
  const bool two_nodes = contains(backend, "/");
  std::vector<std::string> words;
  if (starter == Starter::mpirun) words = {"mpirun", "-np", "2"};
  if (starter == Starter::srun) words = {"srun", "-n", "2"};
  const char* gpus = two_nodes ? "4" : backend == "self" ? "1" : "2";
  words.insert(words.end(), {PACELINE_BINARY, "train", "mnist-mlp", "--backend", backend});
  words.insert(words.end(), {"--gpus", gpus, "--nodes", two_nodes ? "2" : "1"});
  words.insert(words.end(), {"--cpus-per-task", one_task_a_node ? "2" : "1", "--oversubscribe"});
  words.insert(words.end(), {"--epochs", "100000", "--evaluate", "none"});
  words.insert(words.end(), {"--train-limit", "10000", "--log-every", "50"});
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

Victim::Victim(const std::vector<std::string>& command,
               const std::map<std::string, std::string>& environment,
               const std::vector<Limit>& limits)
    : mark_(new_mark()) {
  Environment all = environment_of_process();
  for (const auto& [name, value] :
       std::map<std::string, std::string>{{"OMPI_ALLOW_RUN_AS_ROOT", "1"},
                                          {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"},
                                          {"OMPI_MCA_rmaps_base_oversubscribe", "1"},
                                          {"OMPI_MCA_hwloc_base_binding_policy", "none"},
                                          {"PACELINE_PORTS", "22000-22999"},
                                          {"PACELINE_TOKEN", mark_},
                                          {kMark, mark_}}) {
    all[name] = value;
  }
  for (const auto& [name, value] : environment) all[name] = value;
  std::vector<std::string> assignments;
  for (const auto& [name, value] : all) assignments.push_back(name + "=" + value);
  std::vector<char*> words, variables;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  for (const std::string& each : assignments) variables.push_back(const_cast<char*>(each.c_str()));
  words.push_back(nullptr);
  variables.push_back(nullptr);
  const std::string where = folder(), out = streams_.path() / "out", err = streams_.path() / "err";
  child_ = fork();
  if (child_ != 0) return;
  setsid();
  const int input = open("/dev/null", O_RDONLY);
  const int output = open(out.c_str(), O_WRONLY | O_CREAT, 0644);
  const int errors = open(err.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
  dup2(input, STDIN_FILENO);
  dup2(output, STDOUT_FILENO);
  dup2(errors, STDERR_FILENO);
  for (const Limit& limit : limits) {
    const rlimit both{limit.value, limit.value};
    setrlimit(static_cast<__rlimit_resource>(limit.resource), &both);
  }
  if (chdir(where.c_str()) == 0) execvpe(words[0], words.data(), variables.data());
  _exit(127);
}

Victim::~Victim() {
  kill_all();
  if (!code_ && child_ > 0) {
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
  }
}

std::vector<Victim::Process> Victim::processes() const {
  std::vector<Process> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/proc", error)) {
    const auto id = to_integer(entry.path().filename().string());
    if (!id) continue;
    const std::string environment = file_text(entry.path() / "environ");
    if (variable(environment, kMark) != mark_ || is_zombie(entry.path())) continue;
    std::string command = file_text(entry.path() / "cmdline");
    std::replace(command.begin(), command.end(), '\0', ' ');
    const fs::path program = fs::read_symlink(entry.path() / "exe", error);
    const bool ours = program.string().starts_with(PACELINE_BINARY);  // "(deleted)": built anew
    found.push_back({static_cast<pid_t>(*id), ours ? rank_in(environment) : -1,
                     fmt::format("{} {}", *id, command)});
  }
  return found;
}

bool Victim::says(const std::string& text, double patience) {
  return until(patience, [&] { return contains(errors(), text) || ended(); }) &&
         contains(errors(), text);
}

std::optional<pid_t> Victim::rank(int number, double patience) {
  std::optional<pid_t> found;
  until(patience, [&] {
    for (const Process& process : processes()) {
      if (process.rank == number) found = process.id;
    }
    return found.has_value() || ended();
  });
  return found;
}

void Victim::send(pid_t process, int signal_number) const {
  kill(process, signal_number);
}

bool Victim::ended() {
  int status = 0;
  if (!code_ && waitpid(child_, &status, WNOHANG) == child_) {
    code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  return code_.has_value();
}

End Victim::wait(double seconds) {
  const double start = now_seconds();
  End end;
  end.in_time = until(seconds, [&] { return ended(); });
  end.seconds = now_seconds() - start;
  if (!end.in_time) {
    kill_all();
    until(10, [&] { return ended(); });
  }
  end.code = code_.value_or(-1);
  end.err = errors();
  end.last_line = read_last_line(end.err);
  return end;
}

std::vector<std::string> Victim::left(double patience) const {
  std::vector<std::string> commands;
  until(patience, [&] {
    commands.clear();
    for (const Process& process : processes()) commands.push_back(process.command);
    return commands.empty();
  });
  return commands;
}

void Victim::kill_all() const {
  for (const Process& process : processes()) kill(process.id, SIGKILL);
}

std::string Victim::errors() const {
  return file_text(streams_.path() / "err");
}

std::string Victim::disorder() const {
  for (const auto& entry : fs::recursive_directory_iterator(folder())) {
    const std::string name = entry.path().filename();
    if (contains(name, ".tmp")) return "a temporary file: " + name;
    if (!name.ends_with(".json")) continue;
    const StoreContent content = load_store(entry.path());
    for (const Rejected& rejected : content.rejected) return rejected.reason;
  }
  return "";
}

}  // namespace paceline::faults
