// paceline element begin|run|end: what a job of a study does for its run. For scripts.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <memory>

#include "cli/verb.h"
#include "engine/core/backend_stack.h"
#include "engine/core/environment.h"
#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/output.h"
#include "engine/core/text.h"
#include "engine/failure/verdict.h"
#include "engine/launch/program.h"
#include "engine/launch/topology.h"
#include "results/names.h"
#include "results/parameters.h"
#include "results/store.h"
#include "run/diagnosis.h"
#include "slurm/job_array.h"
#include "slurm/job_check.h"
#include "sweeps/inventory.h"
#include "sweeps/program.h"

namespace paceline {

namespace {

namespace fs = std::filesystem;

// An element of a job array, as its script names it.
struct ElementOptions {
  std::string points, backend;
  std::int64_t index = 0;
  std::vector<std::string> built;
};

// The run of a line of a points file.
struct LineOfRun {
  UnfinishedRun what;  // as its record would say it
  fs::path store;
};

[[noreturn]] void refuse_words(const std::string& what) {
  throw Error(ErrorKind::usage, what, "paceline element", "submit the study again");
}

// With the backend that the run fell back to, if it did.
std::vector<std::string> words_of_run(const ElementOptions& options) {
  auto words = words_of_element(options.points, static_cast<std::size_t>(options.index));
  if (words.size() < 2 || words[0] != "train") refuse_words("the line does not describe a run");
  for (std::string& word : words) {
    if (!options.backend.empty() && word.starts_with("--backend=")) {
      word = "--backend=" + options.backend;
    }
    constexpr std::string_view kContext = "--context=";
    if (!word.starts_with(kContext)) continue;
    RunContext context = parse_run_context(word.substr(kContext.size()));
    if (context.session != kDryRunSession) continue;
    context.session =
        "by-hand-" + environment_value(environment_of_process(), "SLURM_ARRAY_JOB_ID");
    word = std::string(kContext) + context.json();
  }
  return words;
}

void read_context(const std::string& text, UnfinishedRun& run) {
  const RunContext context = parse_run_context(text);
  run.study = context.study;
  run.point = context.point;
  run.point_folder = context.point_folder;
  run.session = context.session;
  run.repeat = context.repeat;
}

void read_word(const std::string& word, LineOfRun& run) {
  const auto equals = word.find('=');
  if (!word.starts_with("--")) refuse_words(fmt::format("unknown word \"{}\"", word));
  std::string name = word.substr(2, equals - 2);
  const std::string value = equals == std::string::npos ? "" : word.substr(equals + 1);
  std::replace(name.begin(), name.end(), '-', '_');
  if (name == "store") {
    run.store = value;
  } else if (name == "context") {
    read_context(value, run.what);
  } else if (find_parameter(name)) {
    run.what.parameters.set(name, parsed_value(name, value, word));
  }
}

LineOfRun read_run(const ElementOptions& options) {
  const std::vector<std::string> words = words_of_run(options);
  LineOfRun run;
  run.what.workload = words[1];
  for (std::size_t i = 2; i < words.size(); ++i) read_word(words[i], run);
  if (run.store.empty() || run.what.point_folder.empty()) {
    refuse_words("--store and --context are missing");
  }
  return run;
}

// By this submission: a job that was put back into the queue may have ended its run before.
bool is_done(const LineOfRun& run) {
  const fs::path folder = run.store / run.what.point_folder;
  std::error_code ignored;
  if (!fs::exists(folder, ignored)) return false;
  const StoreContent content = load_store(folder);
  return std::any_of(content.records.begin(), content.records.end(), [&](const Record& record) {
    return record->completed() && record->repeat == run.what.repeat &&
           record->session == run.what.session;
  });
}

void check_folder(const LineOfRun& run) {
  const fs::path folder = run.store / run.what.point_folder;
  make_folder(folder);
  if (access(folder.c_str(), W_OK) == 0) return;
  throw Error(ErrorKind::input, "this node cannot write the study's folder", folder.string(),
              "use --results with a folder that all nodes can write");
}

// The device and backends of the run, asked on this node.
void check_services(const LineOfRun& run, const Environment& environment) {
  const auto device = Settings(run.what.parameters).text("device");
  const BackendStack stack =
      split_stack(run.what.parameters.text("backend").value_or(lone_backend()));
  for (const Service& service : services(find_process_rank(environment), device)) {
    const bool is_device = service.kind == "device" && service.name == device;
    const bool is_backend = service.kind == "backend" && service.name == stack.between;
    if (service.serves || !(is_device || is_backend)) continue;
    throw Error(ErrorKind::usage,
                fmt::format("{} {} cannot be used on this node: {}", service.kind, service.name,
                            service.description),
                "", "check the profile's modules, or paceline doctor in a job there");
  }
}

// "device=cuda", of a study that is to run later by this program.
void check_program_has(const std::string& service) {
  const auto equals = service.find('=');
  const std::string kind = service.substr(0, equals);
  const Name name = find_name(kind, service.substr(equals + 1), "--built " + service);
  if (name.built) return;
  throw Error(ErrorKind::usage,
              fmt::format("{} {} is not built into the program of this job: {}", kind, name.name,
                          name.reason),
              this_program().string(), "build it there, or name another in the site profile");
}

int begin_run(const ElementOptions& options) {
  const LineOfRun run = read_run(options);
  const Environment environment = environment_of_process();
  if (is_done(run)) {
    print_note("the record of this run exists already\n");
    print("done\n");
    return 0;
  }
  check_folder(run);
  for (const std::string& service : options.built) check_program_has(service);
  const JobGrant grant = read_grant(environment, static_cast<int>(usable_cpus().size()));
  print_note("{}: {} repeat {}\n", grant.text(), run.what.point, run.what.repeat);
  check_grant(grant, run.what.parameters);
  check_services(run, environment);
  if (const std::string note = set_aside_note(); !note.empty()) print_note("note: {}\n", note);
  for (const Problem& note : check_environment(environment)) {
    print_note("note: {}; {}\n", note.what, note.cure);
  }
  print("run\n");
  return 0;
}

// The process becomes the run, under the name by which it was called.
int become_run(const ElementOptions& options) {
  std::vector<std::string> words = words_of_run(options);
  words.insert(words.begin(), program_invocation_name);
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  restore_environment();
  execv(this_program().c_str(), arguments.data());
  throw Error(ErrorKind::internal, std::string("the run cannot be started: ") + strerror(errno),
              this_program().string(), "check that the program still exists");
}

// The last line of ours in the log, without our name; else the last error of the launcher.
std::string last_error_line(const std::string& log) {
  constexpr std::string_view kOwnName = "paceline: ";
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

// A launcher that kills the other ranks after a failure ends with 128 and its signal: what the
// first one said counts more.
std::string find_reason(int code, const std::string& said) {
  if (code == 0) return "exit code 0, but it left no record";
  if (!said.empty()) return fmt::format("{} (exit code {})", said, code);
  if (code <= 128 || code >= 128 + NSIG) return fmt::format("ended with exit code {}", code);
  const char* name = sigabbrev_np(code - 128);
  return fmt::format("killed by {}{}", name ? "SIG" : "signal ",
                     name ? name : std::to_string(code - 128));
}

// Whether no replica of that run came to its second step.
bool ended_at_start(const fs::path& status) {
  const RunArtifacts remains = remains_of_latest(status);
  return std::all_of(remains.flights.begin(), remains.flights.end(),
                     [](const Flight& flight) { return flight.step <= 1; });
}

// Prints the backend to try instead and returns 0, or returns 1: the run ended by something else
// than its communication, or later than at its start.
int fall_back(int code, const std::string& status, const std::string& to,
              const ElementOptions& options) {
  const bool by_communication =
      code == exit_code(ErrorKind::peer_lost) || code == exit_code(ErrorKind::stall);
  const LineOfRun run = read_run(options);
  const std::string asked = run.what.parameters.text("backend").value_or(lone_backend());
  BackendStack stack = split_stack(asked);
  if (!by_communication || stack.between == to || !ended_at_start(status)) return 1;
  stack.between = to;
  const std::string other = to_text(stack);
  print_note("note: backend {} could not sum on these nodes: falling back to {}\n", asked, other);
  print("{}\n", other);
  return 0;
}

int end_run(int code, const std::string& log, const ElementOptions& options) {
  LineOfRun run = read_run(options);
  if (is_done(run)) return 0;
  run.what.status = code == 75 ? "preempted" : "failed";
  run.what.reason = find_reason(code, last_error_line(log));
  write_unfinished(run.store, run.what);
  return code == 0 ? exit_code(ErrorKind::internal) : code;
}

}  // namespace

void add_element(CLI::App& app, Action& action) {
  CLI::App* verb = app.add_subcommand("element", "What a job does for its run, for scripts");
  verb->require_subcommand(1);
  verb->group("");
  auto options = std::make_shared<ElementOptions>();
  const auto add = [&](const char* name, const char* help) {
    CLI::App* part = verb->add_subcommand(name, help);
    part->add_option("--points", options->points, "the points file of the array")->required();
    part->add_option("--index", options->index, "of the element in its array")
        ->check(CLI::NonNegativeNumber);
    part->add_option("--backend", options->backend, "instead of the run's own");
    return part;
  };
  auto code = std::make_shared<int>(0);
  auto log = std::make_shared<std::string>();
  CLI::App* first = add("begin", "Check this job; print \"run\" or \"done\"");
  first->add_option("--built", options->built, "what the program must have, as device=cuda");
  first->callback([options, &action] { action = [options] { return begin_run(*options); }; });
  add("run", "Become the run")->callback([options, &action] {
    action = [options] { return become_run(*options); };
  });
  CLI::App* last = add("end", "Write down why a run left no record");
  last->add_option("--exit-code", *code, "of the run")->required();
  last->add_option("--log", *log, "of this job");
  last->callback([options, code, log, &action] {
    action = [options, code, log] { return end_run(*code, *log, *options); };
  });
  auto status = std::make_shared<std::string>();
  auto to = std::make_shared<std::string>();
  CLI::App* instead = add("fallback", "Print the backend to try instead, if any");
  instead->add_option("--exit-code", *code, "of the run")->required();
  instead->add_option("--status", *status, "its status folder")->required();
  instead->add_option("--to", *to, "what stands in between tasks")->required();
  instead->callback([options, code, status, to, &action] {
    action = [options, code, status, to] { return fall_back(*code, *status, *to, *options); };
  });
  verb->footer("Example:\n  paceline element begin --points STUDY/slurm/S/1n1t1c.points --index 0");
}

}  // namespace paceline
