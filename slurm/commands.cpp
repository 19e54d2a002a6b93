#include "slurm/commands.h"

#include <fmt/format.h>
#include <unistd.h>

#include <string_view>

#include "engine/core/child.h"
#include "engine/core/error.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

constexpr char kNoSlurm[] = "log in to a node that has Slurm's commands in PATH";

std::string on_one_line(const std::string& text) {
  std::vector<std::string> lines;
  for (const std::string& line : split(text, '\n')) {
    if (!trim(line).empty()) lines.emplace_back(trim(line));
  }
  return join(lines, "; ");
}

}  // namespace

std::string CommandResult::complaint() const {
  if (timed_out) return "it did not answer in time";
  const std::string said = on_one_line(err.empty() ? out : err);
  return said.empty() ? fmt::format("it ended with exit code {}", code) : said;
}

SlurmCommands::SlurmCommands(Environment environment) : environment_(std::move(environment)) {
  environment_["SLURM_TIME_FORMAT"] = "standard";
  // Defaults of a user for his own calls would change what these print or do.
  for (const char* name : {"SQUEUE_FORMAT", "SQUEUE_FORMAT2", "SQUEUE_STATES", "SQUEUE_PARTITION",
                           "SQUEUE_USERS", "SQUEUE_SORT", "SACCT_FORMAT", "SBATCH_ARRAY_INX",
                           "SBATCH_JOB_NAME", "SBATCH_WAIT", "SBATCH_TIMELIMIT"}) {
    environment_.erase(name);
  }
}

std::string SlurmCommands::find(const std::string& program) const {
  const auto path = environment_.find("PATH");
  if (path == environment_.end()) return "";
  for (const std::string& folder : split(path->second, ':')) {
    std::string file = (folder.empty() ? "." : folder) + "/" + program;
    std::error_code ignored;
    if (std::filesystem::is_regular_file(file, ignored) && access(file.c_str(), X_OK) == 0) {
      return file;
    }
  }
  return "";
}

bool SlurmCommands::has(const std::string& program) const {
  return !find(program).empty();
}

CommandResult SlurmCommands::run(const std::vector<std::string>& words, double seconds) const {
  CommandResult result;
  ChildSetup setup;
  setup.command = words;
  setup.command[0] = find(words[0]);
  if (setup.command[0].empty()) {
    result.code = 127;
    result.err = words[0] + " is not in PATH";
    return result;
  }
  setup.environment = environment_;
  setup.separate_output = true;
  ChildLimits limits;
  limits.grace = 5;
  limits.run = seconds;
  const WatchOfMany watch = watch_children(
      {setup}, [&](std::size_t, std::string_view text) { result.err += text; }, limits,
      [&](std::size_t, std::string_view text) { result.out += text; });
  if (watch.stopped_by != 0) {
    throw Error(ErrorKind::usage, "stopped by a signal while " + words[0] + " ran", "",
                "call it again: nothing is lost");
  }
  result.timed_out = watch.timed_out;
  const ChildEnd& end = watch.ends.front();
  result.code = end.signal != 0 ? 128 + end.signal : end.exit_code;
  result.err = std::string(trim(result.err));
  return result;
}

std::int64_t SlurmCommands::submit(const std::filesystem::path& script,
                                   const std::filesystem::path& folder,
                                   const std::vector<std::string>& options,
                                   const std::string& fix) const {
  std::vector<std::string> words = {"sbatch", "--parsable", "--chdir=" + folder.string()};
  words.insert(words.end(), options.begin(), options.end());
  words.push_back(script.string());
  const CommandResult result = run(words);
  if (result.code == 127) throw Error(ErrorKind::usage, result.complaint(), "", kNoSlurm);
  // "123", or "123;cluster".
  const std::string_view answer = trim(result.out);
  const auto job = to_integer(answer.substr(0, answer.find(';')));
  if (result.ok() && job && *job > 0) return *job;
  throw Error(ErrorKind::usage, "sbatch refused it: " + result.complaint(), script.string(), fix);
}

void SlurmCommands::cancel(const std::vector<std::int64_t>& jobs) const {
  std::vector<std::string> words = {"scancel"};
  for (const std::int64_t job : jobs) words.push_back(std::to_string(job));
  const CommandResult result = run(words);
  if (result.code == 127) throw Error(ErrorKind::usage, result.complaint(), "", kNoSlurm);
  if (!result.ok()) {
    throw Error(ErrorKind::usage, "scancel failed: " + result.complaint(), "", "call it again");
  }
}

std::string SlurmCommands::configured(const std::string& key) const {
  const CommandResult result = run({"scontrol", "show", "config"});
  for (const std::string& line : split(result.out, '\n')) {
    const auto equals = line.find('=');
    if (equals == std::string::npos || trim(std::string_view(line).substr(0, equals)) != key) {
      continue;
    }
    return std::string(trim(std::string_view(line).substr(equals + 1)));
  }
  return "";
}

}  // namespace paceline
