#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>

#include "engine/core/error.h"
#include "engine/core/json.h"
#include "engine/core/text.h"
#include "slurm/commands.h"
#include "slurm/job_array.h"

namespace paceline {

namespace {

constexpr std::size_t kMaxCompletions = std::size_t{256} << 20;

// "CANCELLED by 1000", "CANCELLED+" -> "CANCELLED"; "OUT_OF_ME+" -> "OUT_OF_MEMORY"
std::string plain_state(std::string_view text) {
  constexpr std::string_view kLongStates[] = {
      "CANCELLED", "COMPLETED",    "COMPLETING",    "CONFIGURING", "NODE_FAIL",    "OUT_OF_MEMORY",
      "PREEMPTED", "REQUEUE_HOLD", "RESV_DEL_HOLD", "SIGNALING",   "SPECIAL_EXIT", "SUSPENDED"};
  text = trim(text);
  std::size_t length = 0;
  while (length < text.size() &&
         (text[length] == '_' || (text[length] >= 'A' && text[length] <= 'Z'))) {
    ++length;
  }
  const std::string_view state = text.substr(0, length);
  if (!text.substr(length).starts_with('+')) return std::string(state);
  const auto whole = std::ranges::find_if(
      kLongStates, [&](std::string_view known) { return known.starts_with(state); });
  return std::string(whole == std::end(kLongStates) ? state : *whole);
}

void put(ElementStates& states, const ArrayId& id, const ElementState& state) {
  for (const int element : id.elements) states[{id.job, element}] = state;
}

std::vector<std::string> split_columns(const std::string& line, std::size_t count) {
  std::vector<std::string> columns = split(line, '|');
  columns.resize(std::max(columns.size(), count));
  return columns;
}

std::string describe_exit(const std::string& exit_code, const std::string& nodes) {
  std::vector<std::string> parts;
  if (!exit_code.empty() && exit_code != "0:0") parts.push_back("exit code " + exit_code);
  if (!nodes.empty() && nodes != "(null)" && nodes != "None assigned") {
    parts.push_back("on " + nodes);
  }
  return join(parts, ", ");
}

// KEY=value KEY=value; a value ends at a space.
std::map<std::string, std::string> parse_pairs(const std::string& line) {
  std::map<std::string, std::string> pairs;
  for (const std::string& word : split(line, ' ')) {
    const auto equals = word.find('=');
    if (equals != std::string::npos) pairs.emplace(word.substr(0, equals), word.substr(equals + 1));
  }
  return pairs;
}

void keep_only(ElementStates& states, const std::vector<std::int64_t>& jobs) {
  std::erase_if(states, [&](const auto& entry) {
    return std::find(jobs.begin(), jobs.end(), entry.first.job) == jobs.end();
  });
}

// Most sites let only the controller read it.
ElementStates completed_jobs(const SlurmCommands& slurm) {
  if (slurm.configured("JobCompType") != "jobcomp/filetxt") return {};
  try {
    return parse_job_lines(read_text(slurm.configured("JobCompLoc"), kMaxCompletions));
  } catch (const Error&) {
    return {};
  }
}

// Accounting hears of an end somewhat later than the queue forgets the job.
bool is_settled(const ElementStates& states, std::int64_t job) {
  bool known = false;
  for (auto it = states.lower_bound({job, 0}); it != states.end() && it->first.job == job; ++it) {
    if (it->second.in_queue()) return false;
    known = true;
  }
  return known;
}

// Of an identity, a state, and more that `describe` makes a text of.
template <typename Describe>
ElementStates parse_lines(std::string_view text, std::size_t columns, const Describe& describe) {
  ElementStates states;
  for (const std::string& line : split(text, '\n')) {
    const auto parts = split_columns(line, columns);
    const auto id = parse_array_id(parts[0]);
    const std::string state = plain_state(parts[1]);
    if (id && !state.empty()) put(states, *id, {state, describe(parts)});
  }
  return states;
}

}  // namespace

std::string ElementKey::text() const {
  return fmt::format("{}_{}", job, element);
}

bool ElementState::pending() const {
  return state == "PENDING" || state == "REQUEUED" || state == "REQUEUE_HOLD" ||
         state == "REQUEUE_FED" || state == "SPECIAL_EXIT" || state == "RESV_DEL_HOLD";
}

bool ElementState::in_queue() const {
  return pending() || state == "RUNNING" || state == "CONFIGURING" || state == "COMPLETING" ||
         state == "SUSPENDED" || state == "STOPPED" || state == "SIGNALING" ||
         state == "STAGE_OUT" || state == "RESIZING";
}

ElementStates parse_squeue(std::string_view text) {
  return parse_lines(text, 3, [](const auto& columns) { return std::string(trim(columns[2])); });
}

ElementStates parse_sacct(std::string_view text) {
  return parse_lines(text, 4,
                     [](const auto& columns) { return describe_exit(columns[2], columns[3]); });
}

ElementStates parse_job_lines(std::string_view text) {
  ElementStates states;
  for (const std::string& line : split(text, '\n')) {
    const auto pairs = parse_pairs(line);
    const auto value = [&](const char* key) {
      const auto found = pairs.find(key);
      return found == pairs.end() ? std::string() : found->second;
    };
    const auto job = to_integer(value("ArrayJobId"));
    ArrayId id{job.value_or(0), {}, 0, false};
    const std::string state = plain_state(value("JobState"));
    if (!job || *job < 1 || state.empty() || !parse_elements(value("ArrayTaskId"), id)) continue;
    const bool waits = ElementState{state, ""}.pending();
    put(states, id,
        {state, waits ? value("Reason") : describe_exit(value("ExitCode"), value("NodeList"))});
  }
  return states;
}

ElementStates ask_queue(const SlurmCommands& slurm, const std::vector<std::int64_t>& jobs) {
  if (jobs.empty()) return {};
  // Not by -j: it fails as soon as one of the jobs has left the queue's memory.
  const CommandResult result = slurm.run(
      {"squeue", "-h", "-r", "-a", "-t", "all", "-u", std::to_string(geteuid()), "-o", "%i|%T|%r"});
  if (!result.ok()) {
    throw usage_error("squeue failed: " + result.complaint(), "",
                      result.code == 127 ? "log in to a node that has Slurm's commands in PATH"
                                         : "try again when Slurm answers");
  }
  ElementStates states = parse_squeue(result.out);
  keep_only(states, jobs);
  std::erase_if(states, [](const auto& entry) { return !entry.second.in_queue(); });
  return states;
}

ElementStates ask_history(const SlurmCommands& slurm, const std::vector<std::int64_t>& jobs) {
  if (jobs.empty()) return {};
  const CommandResult result =
      slurm.run({"sacct", "-n", "-P", "-X", "-j", fmt::format("{}", fmt::join(jobs, ",")), "-o",
                 "JobID,State,ExitCode,NodeList"});
  ElementStates states = result.ok() ? parse_sacct(result.out) : completed_jobs(slurm);
  for (const std::int64_t job : jobs) {
    if (is_settled(states, job)) continue;
    const CommandResult shown = slurm.run({"scontrol", "-o", "show", "job", std::to_string(job)});
    for (const auto& [key, state] : parse_job_lines(shown.out)) states[key] = state;
  }
  keep_only(states, jobs);
  return states;
}

}  // namespace paceline
