#include "run/program_run.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

#include "engine/comm/rendezvous/join.h"
#include "engine/core/child.h"
#include "engine/core/clock.h"
#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/hash.h"
#include "engine/core/log.h"
#include "engine/core/output.h"
#include "engine/core/text.h"
#include "engine/launch/program.h"
#include "engine/launch/topology.h"
#include "results/names.h"
#include "results/store.h"
#include "run/failure_line.h"
#include "run/meter_record.h"
#include "run/outcome_record.h"
#include "run/resolve.h"
#include "run/world.h"

namespace paceline {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostLog = std::size_t{64} << 20, kLastOfLog = 8 << 10;

std::uint16_t free_port() {
  const int socket_of_port = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  socklen_t size = sizeof address;
  auto* plain = reinterpret_cast<sockaddr*>(&address);
  const bool bound = socket_of_port >= 0 && bind(socket_of_port, plain, size) == 0 &&
                     getsockname(socket_of_port, plain, &size) == 0;
  if (socket_of_port >= 0) close(socket_of_port);
  if (!bound)
    throw usage_error("no port is free", std::strerror(errno), "check the network of this node");
  return ntohs(address.sin_port);
}

// Child, whether it is the standard output, and the process.
using Writer = std::tuple<std::size_t, bool, pid_t>;

// Passes output on by whole lines of each writer, up to a limit, and keeps its end.
class PassedOutput {
 public:
  // `hides_writers`: each piece is one write of a program that passes on what several wrote.
  PassedOutput(ProgramResults& results, bool hides_writers)
      : results_(results), hides_writers_(hides_writers) {}

  void append(const Writer& writer, std::string_view text) {
    Held& held = held_[writer];
    const std::size_t first = std::min(text.find_first_of("\r\n"), text.size());
    if (hides_writers_ && !held.text.empty() && first > 0) held.fault = LineFault::met;
    held.text += text.substr(0, first);
    text.remove_prefix(first);
    if (const std::size_t end = text.find_last_of("\r\n") + 1; end > 0) {
      pass_line(held, text.substr(0, end));
      held = {std::string(text.substr(end))};
    }
    if (held.text.size() > kMostLog) end_line(std::exchange(held, {}));
    if (held.text.empty()) held_.erase(writer);
  }

  void end() {
    for (const auto& [writer, held] : held_) end_line(held);
    held_.clear();
    flush_output();
    if (bytes_ <= kMostLog) return;
    print("\npaceline: {} of output follow, of which these are the last\n{}\n",
          format_bytes(static_cast<double>(bytes_ - kMostLog)), last_);
    flush_output();
  }

  FailureLine failure_line() const { return find_failure_line(last_); }

 private:
  // Of a line, what no end followed yet.
  struct Held {
    std::string text;
    LineFault fault = LineFault::none;
  };

  void pass(std::string_view text) {
    const std::size_t passed = std::min(text.size(), kMostLog - std::min(kMostLog, bytes_));
    print_text(text.substr(0, passed));
    flush_output();
    bytes_ += text.size();
    last_ += text;
    if (last_.size() > 2 * kLastOfLog) last_.erase(0, last_.size() - kLastOfLog);
  }

  void end_line(const Held& held) { pass_line({held.text, LineFault::cut}, "\n"); }

  // `rest`: its end, and whole lines.
  void pass_line(const Held& held, std::string_view rest) {
    results_.append(held.text, held.fault);
    results_.append(rest);
    pass(held.text);
    pass(rest);
  }

  ProgramResults& results_;
  const bool hides_writers_;
  std::map<Writer, Held> held_;
  std::size_t bytes_ = 0;
  std::string last_;
};

OwnUse use_of_children() {
  OwnUse use = own_use();
  rusage children{};
  getrusage(RUSAGE_CHILDREN, &children);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  use.cpu_seconds += seconds(children.ru_utime) + seconds(children.ru_stime);
  use.involuntary_switches += children.ru_nivcsw;
  use.peak_memory = 0;  // of several processes the kernel tells the largest only
  return use;
}

// The process that starts the others and writes the record.
class ProgramRun {
 public:
  explicit ProgramRun(const ProgramRequest& request)
      : request_(request),
        program_(request.program),
        study_(request.target.store),
        environment_(environment_of_process()),
        results_(program_.results, folder_of_run(request).parent_path()),
        started_at_(utc_time_stamp()) {}

  int go() {
    adopt_orphans();
    assign();
    if (read_again()) return 0;
    prepare();
    const ChosenGpus gpus(Settings(request_.parameters).text("device"), lone_backend(), {},
                          request_.layout.gpus / request_.layout.nodes);
    if (!program_.setup.empty()) run_part("setup");
    GpuReport gpu_report(gpus, affinity_);
    gpu_report.warn_of_far_cpus(nullptr);
    EnergyReport energy(gpus, true);
    energy.measure_idle(nullptr);
    const LoadMeter meter(cpus_, {}, use_of_children);
    const double start = now_seconds();
    energy.enter(RunPart::training);
    run_part("run");
    energy.enter(RunPart::other);
    seconds_ = ended_ - start_of_program(start);
    LoadFacts load = meter.read();
    if (may_run_elsewhere()) load.other_cpu_share.reset();
    RunRecord record = make_record();
    record.provenance.machine_load = summarize({load});
    const GpuUse use = gpu_report.collect_here();
    record.gpus = use.each;
    record.energy = energy.collect_here(request_.layout.nodes);
    if (!record.energy.meters.empty()) record.energy.shared = count_other_jobs() > 0;
    record.utilization = use.utilization;
    record.flags.throttled = use.throttled;
    keep(record);
    add_results(std::move(record));
    return 0;
  }

 private:
  void add_results(RunRecord record) {
    const ProgramReport report = results_.finish(
        [this](const std::string& file) { return output_path(file); }, request_.layout.gpus);
    check_precision(report);
    set_results(record, report, record.provenance.program->seconds.value());
    const std::string steps = program_.trace.empty() ? compressed_steps(report) : add_trace(record);
    Store(study_).write(request_.target.point_folder, request_.target.repeat, to_json(record),
                        steps);
  }

  // What was measured, in one line, and what the program printed.
  fs::path kept_name() const { return name_of_run(request_) += ".kept"; }
  fs::path kept_file() const { return study_.path() / kept_name(); }

  void keep(RunRecord record) try {
    const std::string_view output = results_.output();
    if (output.size() > kMostLog) return;
    record.timing->fit_seconds = record.provenance.program->seconds;  // some result, to be a record
    const Json measured = {{"definition", program_.definition}, {"record", to_json(record)}};
    study_.replace_file(kept_name(), json_text(measured) + "\n" + std::string(output));
  } catch (const Error& error) {
    log::info("what it printed is not kept: {}", error.what());
  }

  // Where only the definition of its results is new, the last run need not be repeated.
  bool read_again() {
    if (!path_exists(kept_file())) return false;
    const std::string text = read_text(kept_file(), 2 * kMostLog);
    const std::size_t end = std::min(text.find('\n'), text.size() - 1);
    const Json kept = parse_json(text.substr(0, end));
    if (!kept.is_object()) return false;
    const std::string before = kept.value("definition", "");
    const auto recipe = [](const std::string& definition) {
      Json json = parse_json(definition);
      for (const char* key : {"results", "trace"}) json.erase(key);
      return json;
    };
    if (before == program_.definition || recipe(before) != recipe(program_.definition)) {
      return false;
    }
    RunRecord record = parse_run_record(kept["record"], kept_file().string());
    Point parameters = request_.parameters;
    if (const Value* tag = record.parameters.find("program")) parameters.set("program", *tag);
    if (parameters != record.parameters || record.provenance.cpu_model != cpu_model_ ||
        program_facts(program_, 0).differs_from(*record.provenance.program)) {
      return false;
    }
    log::info("what the run of {} printed is read again", record.provenance.started_at);
    record.session += "+" + hash_hex(program_.definition).substr(0, 8);  // of no run twice
    record.parameters = request_.parameters;
    record.identity = identity_hash(record.workload, record.parameters);
    results_.append(text.substr(end + 1));
    add_results(std::move(record));
    return true;
  }

  // Slurm's daemon starts the processes of srun, which so look like somebody else's.
  bool may_run_elsewhere() const {
    const bool in_job = !environment_value(environment_, "SLURM_JOB_ID").empty();
    return in_job && (request_.layout.nodes > 1 || !has_ranks(program_));
  }

  int tasks_here() const { return request_.layout.ntasks / request_.layout.nodes; }

  // Without the start of our own process, which became it.
  double start_of_program(double otherwise) const {
    double seconds = 0;
    const fs::path name = name_of_run(request_) += ".start";
    const bool is_known = static_cast<bool>(std::ifstream(study_.path() / name) >> seconds);
    study_.remove(name);
    return is_known && seconds > otherwise ? seconds : otherwise;
  }

  // Assigns CPUs to the tasks of this node.
  void assign() {
    for (int i = 0; i < tasks_here(); ++i) {
      ProcessRank process;
      process.rank = process.local_rank = i;
      process.size = request_.layout.ntasks;
      process.local_size = tasks_here();
      const CpuAssignment assignment = assign_cpus(make_launch_spec(request_), process);
      machine_ = assignment.machine;
      cpu_model_ = assignment.cpu_model;
      affinity_.insert(affinity_.end(), assignment.replicas.begin(), assignment.replicas.end());
    }
    cpus_ = all_cpus(affinity_);
    const int wanted = tasks_here() * request_.layout.cpus_per_task;
    oversubscribed_ = wanted > static_cast<int>(cpus_.size());
  }

  void prepare() {
    study_.remove(name_of_run(request_));
    study_.remove(kept_name());
    study_.make_folder(name_of_run(request_));
    const std::string hosts = environment_value(environment_, "SLURM_JOB_NODELIST");
    environment_["MASTER_ADDR"] =
        hosts.empty() || request_.layout.nodes == 1 ? std::string("127.0.0.1") : first_host(hosts);
    environment_["MASTER_PORT"] = std::to_string(free_port());
  }

  fs::path output_path(const std::string& file) const {
    const std::string name = filled(file, [&](const std::string& placeholder) {
      return value_in_run(placeholder, request_).value_or("");
    });
    return fs::path(program_.directory) / name;
  }

  // Returns the steps for the sidecar.
  std::string add_trace(RunRecord& record) const {
    const auto escape = [](std::string_view text) {
      std::string escaped;
      for (const char c : text) {
        if (std::string_view("*?[]\\").find(c) != std::string_view::npos) escaped += '\\';
        escaped += c;
      }
      return escaped;
    };
    const auto names = placeholders_in(program_.trace);
    const bool by_rank = std::find(names.begin(), names.end(), "rank") != names.end();
    std::vector<std::string> files;
    for (int rank = 0; rank < (by_rank ? request_.layout.gpus : 1); ++rank) {
      const std::string glob = filled(program_.trace, [&](const std::string& name) {
        return name == "rank" ? std::to_string(rank)
                              : escape(value_in_run(name, request_).value_or(""));
      });
      const auto found = find_traces((fs::path(escape(program_.directory)) / glob).string());
      files.insert(files.end(), found.begin(), found.end());
    }
    const KinetoRun trace = read_kineto_run(files);
    for (const std::string& note : trace.notes) log::info("trace: {}", note);
    return set_traced_phases(record, trace);
  }

  std::vector<ChildSetup> make_children(const std::string& part) const {
    ChildSetup child;
    child.command = request_.command;
    child.command.front() = this_program().string();
    child.environment = environment_;
    child.environment[kPartVariable] = part;
    child.separate_output = true;
    child.keeps_writes = hides_ranks(request_);
    child.names_writers = !child.keeps_writes && request_.layout.gpus > 1;
    const bool is_setup = part == "setup";
    if (request_.layout.nodes > 1 && (is_setup || has_ranks(program_))) {
      const std::vector<std::string> words_of_job =
          split(environment_value(environment_, kLauncherVariable), '\n');
      const std::string nodes = std::to_string(request_.layout.nodes);
      const std::vector<std::string> words_of_setup = {"srun", "--nodes=" + nodes,
                                                       "--ntasks=" + nodes, "--ntasks-per-node=1"};
      std::vector<std::string> words = is_setup ? words_of_setup : words_of_job;
      const auto program = find_program(words.front(), environment_);
      if (!program) {
        throw usage_error(fmt::format("launcher {} is not on this node", words.front()), "",
                          "check the PATH of the job");
      }
      words.front() = program->string();
      const std::string within = environment_value(environment_, kContainerVariable);
      if (!within.empty()) {
        const std::vector<std::string> container = split(within, '\n');
        words.insert(words.end(), container.begin(), container.end());
        child.command.erase(child.command.begin());
      }
      child.command.insert(child.command.begin(), words.begin(), words.end());
      return {child};
    }
    const int count = is_setup || !has_ranks(program_) ? 1 : tasks_here();
    std::vector<ChildSetup> children(static_cast<std::size_t>(count), child);
    if (!has_ranks(program_) || is_setup) return children;
    for (int i = 0; i < count; ++i) {
      Environment& environment = children[static_cast<std::size_t>(i)].environment;
      environment["RANK"] = environment["LOCAL_RANK"] = std::to_string(i);
      environment["WORLD_SIZE"] = environment["LOCAL_WORLD_SIZE"] = std::to_string(count);
    }
    return children;
  }

  // Returns when all processes have ended, also those that they left behind.
  void run_part(const std::string& part) {
    ProgramResults ignored({});
    const std::vector<ChildSetup> children = make_children(part);
    PassedOutput output(part == "run" ? results_ : ignored, children.front().keeps_writes);
    const WatchOfMany watch = watch_children(
        children,
        [&](std::size_t child, std::string_view text) {
          output.append({child, false, 0}, text);
        },
        {},
        [&](std::size_t child, std::string_view text, pid_t process) {
          output.append({child, true, process}, text);
        });
    ended_ = watch.ended_at;
    output.end();
    const int left = end_orphans();
    if (watch.stopped_by != 0) {
      throw Error(ErrorKind::preempted, fmt::format("stopped by {}", strsignal(watch.stopped_by)),
                  make_name(part));
    }
    for (std::size_t i = 0; i < watch.ends.size(); ++i) check_end(watch, i, part, output);
    if (left > 0) {
      log::warning("{} left {} process{} running, which {} ended", make_name(part), left,
                   left == 1 ? "" : "es", left == 1 ? "was" : "were");
    }
  }

  std::string make_name(const std::string& part) const {
    return part == "run" ? program_.name : "setup of " + program_.name;
  }

  // The first that ended badly by itself; the others were told to stop because of it.
  void check_end(const WatchOfMany& watch, std::size_t i, const std::string& part,
                 const PassedOutput& output) const {
    const ChildEnd& end = watch.ends[i];
    const auto is_cause = [](const ChildEnd& one) {
      return (one.exit_code != 0 || one.signal != 0) && !one.asked_to_stop;
    };
    const bool some_cause = std::any_of(watch.ends.begin(), watch.ends.end(), is_cause);
    if ((end.exit_code == 0 && end.signal == 0) || (some_cause && !is_cause(end))) return;
    const auto [said, is_last] = output.failure_line();
    if (said.starts_with(kOwnName) && end.exit_code >= exit_code(ErrorKind::usage)) {
      throw Error(kind_of_exit_code(end.exit_code), std::string(said.substr(kOwnName.size())));
    }
    const std::string who =
        watch.ends.size() > 1 ? fmt::format("rank {} of {}", i, make_name(part)) : make_name(part);
    const std::string how = end.signal != 0 ? "was killed by " + signal_name(end.signal)
                                            : fmt::format("ended with exit code {}", end.exit_code);
    const char* const what = said.empty() ? ""
                             : is_last    ? "; its last line: "
                                          : "; its last error: ";
    throw Error(ErrorKind::failed, fmt::format("{} {}{}{}", who, how, what, said));
  }

  void check_precision(const ProgramReport& report) const {
    const auto asked = request_.parameters.text("precision");
    const auto word = report.words.find("precision");
    if (!asked || word == report.words.end() || *asked == word->second) return;
    throw input_error(fmt::format("the program trained in {}, and the point has precision {}",
                                  word->second, *asked),
                      program_.name, "give it {precision}");
  }

  RunRecord make_record() const {
    RunRecord record = begin_record(request_.target, kCommandWorkload, request_.parameters);
    record.identity = identity_hash(record.workload, record.parameters);
    record.layout = layout_facts(request_.layout);
    record.provenance = build_facts({});
    record.provenance.command = command_text();
    record.provenance.screened = find_screened();
    record.provenance.started_at = started_at_;
    record.provenance.cpu_model = cpu_model_;
    record.provenance.machine = machine_;
    if (request_.layout.nodes == 1) {  // others are not asked
      for (const CpuSet& cpus : affinity_) {
        record.each_rank->push_back({.host = host_name(), .affinity = format_cpus(cpus)});
      }
    }
    record.flags.oversubscribed = oversubscribed_;
    record.provenance.program = program_facts(program_, seconds_);
    return record;
  }

  // As its first process is told.
  std::string command_text() const {
    std::vector<std::string> words;
    for (const std::string& word : program_.command) {
      const std::string text = filled(word, [&](const std::string& name) {
        return value_in_run(name, request_).value_or("{" + name + "}");
      });
      words.push_back(program_.shell ? text : shell_quote(text));
    }
    return join(words, " ");
  }

  const ProgramRequest& request_;
  const UserProgram& program_;
  const Folder study_;  // open from the start: a record follows a study that is moved
  Environment environment_;
  ProgramResults results_;
  const std::string started_at_;
  std::string cpu_model_;
  NodeFacts machine_;
  std::vector<CpuSet> affinity_;  // of each task here
  std::vector<int> cpus_;
  bool oversubscribed_ = false;
  double ended_ = 0, seconds_ = 0;
};

}  // namespace

int run_program(const ProgramRequest& request) {
  const Environment environment = environment_of_process();
  if (const std::string part = environment_value(environment, kPartVariable); !part.empty()) {
    become_program(request, part);
  }
  return ProgramRun(request).go();
}

}  // namespace paceline
