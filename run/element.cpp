#include "run/element.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <fstream>
#include <thread>

#include "engine/core/backend_stack.h"
#include "engine/core/child.h"
#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/output.h"
#include "engine/failure/rank_status.h"
#include "engine/failure/verdict.h"
#include "engine/launch/program.h"
#include "engine/launch/topology.h"
#include "results/names.h"
#include "results/run_record.h"
#include "results/store.h"
#include "run/diagnosis.h"
#include "slurm/job_array.h"
#include "slurm/job_check.h"
#include "slurm/needs.h"
#include "sweeps/program.h"

namespace paceline {

namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse_words(const std::string& what) {
  throw usage_error(what, "paceline element", "submit the study again");
}

void read_word(const std::string& word, ElementRun& run) {
  const auto equals = word.find('=');
  if (!word.starts_with("--")) refuse_words(fmt::format("unknown word \"{}\"", word));
  std::string name = word.substr(2, equals - 2);
  const std::string value = equals == std::string::npos ? "" : word.substr(equals + 1);
  std::ranges::replace(name, '-', '_');
  if (name == "store") {
    run.store = value;
  } else if (name == "context") {
    static_cast<RunPlace&>(run.what) = parse_run_context(value);
  } else if (find_parameter(name)) {
    run.what.parameters.set(name, parsed_value(name, value, word));
  }
}

void check_folder(const ElementRun& run) {
  const fs::path folder = run.store / run.what.point_folder;
  Folder(run.store).make_folder(run.what.point_folder);
  if (access(folder.c_str(), W_OK) == 0) return;
  throw input_error("this node cannot write the study's folder", folder.string(),
                    "use --results with a folder that all nodes can write");
}

// The device and backends of the run, asked on this node.
void check_services(const ElementRun& run, const Environment& environment) {
  const auto device = Settings(run.what.parameters).text("device");
  const BackendStack stack =
      split_stack(run.what.parameters.text("backend").value_or(lone_backend()));
  for (const Service& service : services(find_process_rank(environment), device)) {
    const bool is_device = service.kind == "device" && service.name == device;
    const bool is_backend = service.kind == "backend" && service.name == stack.between;
    if (service.serves || !(is_device || is_backend)) continue;
    throw usage_error(fmt::format("{} {} cannot be used on this node: {}", service.kind,
                                  service.name, service.description),
                      "", "check the profile's modules, or paceline doctor in a job there");
  }
}

// "device=cuda", of a study that is to run later by this program.
void check_program_has(const std::string& service) {
  const auto equals = service.find('=');
  const std::string kind = service.substr(0, equals);
  const Name name = find_name(kind, service.substr(equals + 1), "--built " + service);
  if (name.built) return;
  throw usage_error(fmt::format("{} {} is not built into the program of this job: {}", kind,
                                name.name, name.reason),
                    this_program().string(), "build it there, or name another in the site profile");
}

// The last line of ours in the log, without our name; else the last error of the launcher.
std::string last_error_line(const fs::path& log) {
  constexpr std::size_t kTail = 16384, kMaxLine = 500;
  std::ifstream stream(log, std::ios::binary | std::ios::ate);
  const auto size = static_cast<std::size_t>(std::max<std::streamoff>(0, stream.tellg()));
  stream.seekg(static_cast<std::streamoff>(size - std::min(size, kTail)));
  std::string line, ours, error;
  while (std::getline(stream, line)) {
    if (line.starts_with(kOwnName)) ours = line.substr(kOwnName.size(), kMaxLine);
    if (line.find("error: ") != std::string::npos) error = line.substr(0, kMaxLine);
  }
  return ours.empty() ? error : ours;
}

// That a rank was lost, stalled or stopped on request may follow from the signal.
bool has_own_error(const RankStatus& status) {
  const ErrorKind kind = kind_of_exit_code(status.exit_code);
  return status.state == RankState::failed && kind != ErrorKind::peer_lost &&
         kind != ErrorKind::stall && kind != ErrorKind::preempted;
}

RunArtifacts find_remains(const fs::path& status) {
  try {
    return remains_of_latest(status);
  } catch (const Error&) {
    return {};  // no rank began, or they were of a program of the user's own
  }
}

// " at step 416 of 6000", of the replica that came least far.
std::string format_progress(const RunArtifacts& remains) {
  if (remains.statuses.empty()) return " before any rank began";
  const std::vector<Flight>& flights = remains.flights;
  const auto last = std::ranges::min_element(flights, {}, &Flight::step);
  if (last == flights.end() || last->step == 0) return " before the first step";
  return fmt::format(" at step {}{}", last->step,
                     last->last_step > 0 ? fmt::format(" of {}", last->last_step) : "");
}

std::string describe_limit(const ElementRun& run, const ElementEnd& end,
                           const RunArtifacts& remains) {
  const bool is_saved = end.exit_code == exit_code(ErrorKind::preempted);
  std::string text =
      fmt::format("ended by the signal before the job's time limit of {} min", end.minutes);
  if (run.what.workload == kCommandWorkload) {
    if (const std::string said = last_error_line(end.log); !said.empty()) text += ": " + said;
  } else {
    text += format_progress(remains);
    if (is_saved) text += ", with a complete checkpoint, from which the next submit goes on";
  }
  const bool will_double = !is_saved && end.limit_key != kMostMinutesKey;
  return fmt::format("{}; raise {} of the site profile{}", text, end.limit_key,
                     will_double ? ", or let the next submit double the limit" : "");
}

// A launcher that kills the other ranks after a failure ends with 128 and its signal: what the
// first one said counts more.
std::string find_reason(int code, const std::string& said) {
  if (code == 0) return "exit code 0, but it left no record";
  if (!said.empty()) return fmt::format("{} (exit code {})", said, code);
  if (code <= 128 || code >= 128 + NSIG) return fmt::format("ended with exit code {}", code);
  return "killed by " + signal_name(code - 128);
}

void write_unfinished(ElementRun run, const std::string& status, const std::string& reason) {
  run.what.status = status;
  run.what.reason = reason;
  Store(run.store).write(run.what);
}

void check_program_and_node(const ElementRun& run, const std::vector<std::string>& built,
                            const Environment& environment) {
  for (const std::string& service : built) check_program_has(service);
  const JobGrant grant = read_grant(environment, static_cast<int>(usable_cpus().size()));
  print_note("{}: {} repeat {}\n", grant.text(), run.what.point, run.what.repeat);
  check_grant(grant, run.what.parameters);
  check_services(run, environment);
}

// Whether no replica of that run came to its second step.
bool ended_at_start(const fs::path& status) {
  const RunArtifacts remains = remains_of_latest(status);
  return std::ranges::all_of(remains.flights,
                             [](const Flight& flight) { return flight.step <= 1; });
}

}  // namespace

std::vector<std::string> read_words(const ArrayElement& element, const Environment& environment) {
  auto words = words_of_element(element.points, static_cast<std::size_t>(element.index));
  if (words.size() < 2 || words[0] != "train") refuse_words("the line does not describe a run");
  for (std::string& word : words) {
    if (!element.backend.empty() && word.starts_with("--backend=")) {
      word = "--backend=" + element.backend;
    }
    constexpr std::string_view kContext = "--context=";
    if (!word.starts_with(kContext)) continue;
    RunContext context = parse_run_context(word.substr(kContext.size()));
    if (context.session != kDryRunSession) continue;
    context.session = "by-hand-" + environment_value(environment, "SLURM_ARRAY_JOB_ID");
    word = std::string(kContext) + context.json();
  }
  return words;
}

ElementRun read_run(const ArrayElement& element, const Environment& environment) {
  const std::vector<std::string> words = read_words(element, environment);
  ElementRun run;
  run.what.workload = words[1];
  for (std::size_t i = 2; i < words.size(); ++i) read_word(words[i], run);
  if (run.store.empty() || run.what.point_folder.empty()) {
    refuse_words("--store and --context are missing");
  }
  return run;
}

bool ElementRun::is_done() const {
  const fs::path folder = store / what.point_folder;
  std::error_code ignored;
  if (!fs::exists(folder, ignored)) return false;
  const StoreContent content = load_store(folder);
  return std::ranges::any_of(content.records, [&](const Record& record) {
    return record->completed() && record->repeat == what.repeat && record->session == what.session;
  });
}

void check_job(const ElementRun& run, const std::vector<std::string>& built,
               const Environment& environment) {
  check_folder(run);
  try {
    check_program_and_node(run, built, environment);
  } catch (const Error& refusal) {
    write_unfinished(run, "failed", refusal.what());
    throw;
  }
  if (const std::string note = set_aside_note(); !note.empty()) print_note("note: {}\n", note);
  for (const Problem& note : check_environment(environment)) {
    print_note("note: {}; {}\n", note.what, note.cure);
  }
}

std::string find_fallback(const ElementRun& run, int code, const fs::path& status,
                          const std::string& stand_in) {
  const bool by_communication =
      code == exit_code(ErrorKind::peer_lost) || code == exit_code(ErrorKind::stall);
  BackendStack stack = split_stack(run.what.parameters.text("backend").value_or(lone_backend()));
  const bool fits = stack.inside.empty() || !find_name("backend", stand_in).bare;
  if (!by_communication || stack.between == stand_in || !fits || !ended_at_start(status)) return "";
  stack.between = stand_in;
  return to_text(stack);
}

int write_end(const ElementRun& run, const ElementEnd& end) {
  if (run.is_done()) return 0;
  const int code = end.exit_code;
  // A job that is cancelled may end its run before it ends this process, and Slurm knows why.
  if (code == 128 + SIGTERM && !end.was_signalled) {
    std::this_thread::sleep_for(std::chrono::seconds(2));
  }
  const bool is_saved = code == exit_code(ErrorKind::preempted);
  const RunArtifacts remains = find_remains(end.status);
  const bool by_error = std::ranges::any_of(remains.statuses, has_own_error);
  if (end.was_signalled && !by_error) {
    const std::string line = describe_limit(run, end, remains);
    print_note("{}{}\n", kOwnName, line);
    write_unfinished(run, is_saved ? "preempted" : "timeout", line);
    if (!remains.statuses.empty()) write_verdict(end.status, remains.attempt, {code, line, ""});
  } else {
    write_unfinished(run, is_saved ? "preempted" : "failed",
                     find_reason(code, last_error_line(end.log)));
  }
  return code == 0 ? exit_code(ErrorKind::internal) : code;
}

}  // namespace paceline
