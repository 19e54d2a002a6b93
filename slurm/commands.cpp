#include "slurm/commands.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <set>
#include <thread>

#include "engine/core/child.h"
#include "engine/core/error.h"
#include "engine/core/json.h"
#include "engine/core/text.h"
#include "slurm/job_array.h"

namespace paceline {

namespace {

constexpr char kNoSlurm[] = "log in to a node that has Slurm's commands in PATH";

std::string on_one_line(const std::string& text) {
  auto lines = mapped(split(text, '\n'), [](const auto& line) { return std::string(trim(line)); });
  std::erase(lines, "");
  return join(lines, "; ");
}

// "123" or "123;cluster": what sbatch --parsable prints. 0: the line is something else.
std::int64_t bare_job(std::string_view line) {
  line = trim(line);
  const std::int64_t job = to_integer(line.substr(0, line.find(';'))).value_or(0);
  return std::max<std::int64_t>(job, 0);
}

// The job that an answer names among greetings of the site. 0: none, or not only one.
std::int64_t job_among(const std::string& answer) {
  constexpr std::string_view kSentence = "Submitted batch job ";
  std::set<std::int64_t> jobs;
  for (const std::string& line : split(answer, '\n')) {
    std::string_view text = line;
    if (const auto at = text.find(kSentence); at != std::string_view::npos) {
      text.remove_prefix(at + kSentence.size());
      text = text.substr(0, text.find(' '));
    }
    if (const std::int64_t job = bare_job(text); job > 0) jobs.insert(job);
  }
  return jobs.size() == 1 ? *jobs.begin() : 0;
}

// 0 if `program` lists no job. Throws usage if what it prints is no list.
std::int64_t newest_job(const std::string& list, const char* program) {
  std::int64_t newest = 0;
  std::string unreadable;
  for (const std::string& line : split(list, '\n')) {
    if (const auto id = parse_array_id(trim(line))) {
      newest = std::max(newest, id->job);
    } else if (!trim(line).empty()) {
      unreadable = line;
    }
  }
  if (newest > 0 || unreadable.empty()) return newest;
  throw usage_error(fmt::format("{} lists no jobs but \"{}\"", program, on_one_line(unreadable)),
                    "", "try again when Slurm answers");
}

// Slurm said no, and was there to say it.
bool is_clear_refusal(const CommandResult& result) {
  if (result.timed_out || result.code == 0 || result.code > 128) return false;
  const std::string said = to_lower(result.err + result.out);
  const auto mentions = [&](const char* words) { return said.find(words) != std::string::npos; };
  constexpr const char* kLostOnTheWay[] = {"timed out",
                                           "time out",
                                           "timeout",
                                           "contact",
                                           "connect",
                                           "socket",
                                           "zero bytes",
                                           "send/recv",
                                           "communication",
                                           "transport",
                                           "unexpected message",
                                           "not respond",
                                           "broken pipe"};
  return !said.empty() && job_among(result.out) == 0 &&
         std::none_of(std::begin(kLostOnTheWay), std::end(kLostOnTheWay), mentions);
}

// What a profile may leave to its user, whose centre tells him to export it.
struct UsersOwn {
  const char* variable;
  const char* options[2];
};
constexpr UsersOwn kUsersOwn[] = {{"SBATCH_ACCOUNT", {"--account", "-A"}},
                                  {"SBATCH_PARTITION", {"--partition", "-p"}},
                                  {"SBATCH_QOS", {"--qos", "-q"}},
                                  {"SBATCH_CONSTRAINT", {"--constraint", "-C"}},
                                  {"SBATCH_RESERVATION", {"--reservation", "--reservation"}},
                                  {"SBATCH_WCKEY", {"--wckey", "--wckey"}}};

bool has_directive(const std::string& script, const std::string& option) {
  for (const std::string& line : split(script, '\n')) {
    constexpr std::string_view kMark = "#SBATCH";
    if (!line.starts_with(kMark)) continue;
    const std::string_view words = trim(std::string_view(line).substr(kMark.size()));
    if (words.starts_with(option) &&
        (option[1] != '-' || words.substr(option.size()).find_first_of("= ") == 0)) {
      return true;
    }
  }
  return false;
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
  std::erase_if(environment_, [](const auto& variable) {
    constexpr const char* kOfQueries[] = {"SQUEUE_", "SACCT_", "SCANCEL_", "SINFO_", "SACCTMGR_"};
    return std::any_of(std::begin(kOfQueries), std::end(kOfQueries),
                       [&](const char* begin) { return variable.first.starts_with(begin); });
  });
}

std::string SlurmCommands::find(const std::string& program) const {
  const auto file = find_program(program, environment_);
  return file ? file->string() : "";
}

bool SlurmCommands::has(const std::string& program) const {
  return !find(program).empty();
}

void SlurmCommands::need(const std::string& program) const {
  if (!has(program)) throw usage_error(program + " is not in PATH", "", kNoSlurm);
}

CommandResult SlurmCommands::run(const std::vector<std::string>& words, double seconds,
                                 const std::vector<std::string>& unset) const {
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
  for (const std::string& variable : unset) setup.environment.erase(variable);
  setup.separate_output = true;
  ChildLimits limits{.grace = 5, .run = seconds};
  const WatchOfMany watch = watch_children(
      {setup}, [&](std::size_t, std::string_view text) { result.err += text; }, limits,
      [&](std::size_t, std::string_view text, pid_t) { result.out += text; });
  if (watch.stopped_by != 0) {
    throw usage_error("stopped by a signal while " + words[0] + " ran", "",
                      "call it again: nothing is lost");
  }
  result.timed_out = watch.timed_out;
  const ChildEnd& end = watch.ends.front();
  result.code = end.signal != 0 ? 128 + end.signal : end.exit_code;
  result.err = std::string(trim(result.err));
  return result;
}

SbatchAnswer SlurmCommands::submit(const std::filesystem::path& script,
                                   const std::filesystem::path& folder,
                                   const std::vector<std::string>& options,
                                   const std::string& name) const {
  constexpr double kSeconds = 120;
  constexpr int kPauses[] = {0, 1, 2, 4};  // a busy controller needs some time to list it
  need("sbatch");
  std::vector<std::string> words = {"sbatch", "--parsable", "--chdir=" + folder.string()};
  words.insert(words.end(), options.begin(), options.end());
  words.push_back(script.string());
  const CommandResult result = run(words, kSeconds, overriding_variables(read_text(script)));
  const std::int64_t bare = bare_job(result.out);
  if (result.ok() && bare > 0) return {bare, false, ""};
  SbatchAnswer answer{0, is_clear_refusal(result), result.complaint()};
  for (const int pause : kPauses) {
    std::this_thread::sleep_for(std::chrono::seconds(pause));
    try {
      answer.job = find_job(name);
    } catch (const Error&) {
      break;
    }
    if (answer.job > 0 || answer.is_refused) return answer;
  }
  // What it names is not listed any more, or nobody lists it.
  if (result.ok()) answer.job = job_among(result.out);
  return answer;
}

std::int64_t SlurmCommands::find_job(const std::string& name) const {
  const CommandResult queue = run({"squeue", "-h", "-a", "--name=" + name, "-o", "%F"});
  if (!queue.ok()) {
    throw usage_error("squeue failed: " + queue.complaint(), "",
                      queue.code == 127 ? kNoSlurm : "try again when Slurm answers");
  }
  if (const std::int64_t job = newest_job(queue.out, "squeue"); job > 0) return job;
  // It may have ended already.
  const CommandResult history =
      run({"sacct", "-n", "-P", "-X", "--name=" + name, "-S", "now-7days", "-o", "JobID"});
  if (history.ok()) return newest_job(history.out, "sacct");
  const bool keeps_none =
      history.code == 127 || history.err.find("storage is disabled") != std::string::npos;
  if (keeps_none) return 0;
  throw usage_error("sacct failed: " + history.complaint(), "", "try again when Slurm answers");
}

std::vector<std::string> SlurmCommands::overriding_variables(const std::string& script) const {
  std::vector<std::string> names;
  for (const auto& variable : environment_) {
    const std::string& name = variable.first;
    if (name != "SLURM_HINT" && !name.starts_with("SBATCH_")) continue;
    const auto* const own =
        std::find_if(std::begin(kUsersOwn), std::end(kUsersOwn),
                     [&](const UsersOwn& each) { return name == each.variable; });
    const bool is_left_to_user =
        own != std::end(kUsersOwn) &&
        std::none_of(std::begin(own->options), std::end(own->options),
                     [&](const char* option) { return has_directive(script, option); });
    if (!is_left_to_user) names.push_back(name);
  }
  return names;
}

void SlurmCommands::cancel(const std::vector<std::int64_t>& jobs) const {
  std::vector<std::string> words = {"scancel"};
  for (const std::int64_t job : jobs) words.push_back(std::to_string(job));
  const CommandResult result = run(words);
  if (result.code == 127) throw usage_error(result.complaint(), "", kNoSlurm);
  if (!result.ok()) {
    throw usage_error("scancel failed: " + result.complaint(), "", "call it again");
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
