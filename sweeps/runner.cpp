#include "sweeps/runner.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "engine/core/child.h"
#include "engine/core/clock.h"
#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/text.h"

namespace paceline {

namespace fs = std::filesystem;

namespace {

// One sweep at a time works in a study; the lock goes with the process.
class StudyLock {
 public:
  explicit StudyLock(const fs::path& study) {
    make_folder(study);
    const fs::path file = study / ".lock";
    descriptor_ = open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (descriptor_ < 0) {
      throw Error(ErrorKind::input, std::string("cannot be written: ") + std::strerror(errno),
                  study.string(), "choose another folder by --results");
    }
    if (flock(descriptor_, LOCK_EX | LOCK_NB) != 0) refuse(study);
    const std::string pid = std::to_string(getpid()) + "\n";
    if (ftruncate(descriptor_, 0) != 0 || write(descriptor_, pid.data(), pid.size()) < 0) {
      const int code = errno;
      close(descriptor_);
      throw Error(ErrorKind::input, std::string("cannot be written: ") + std::strerror(code),
                  study.string(), "free some space or choose another folder by --results");
    }
  }
  ~StudyLock() { close(descriptor_); }
  StudyLock(const StudyLock&) = delete;
  StudyLock& operator=(const StudyLock&) = delete;

 private:
  [[noreturn]] void refuse(const fs::path& study) {
    char pid[32] = {};
    const ssize_t got = read(descriptor_, pid, sizeof pid - 1);
    close(descriptor_);
    throw Error(ErrorKind::input,
                fmt::format("another sweep (process {}) works in this study",
                            got > 0 ? trim(pid) : std::string_view("unknown")),
                study.string(), "wait for it or choose another --results");
  }

  int descriptor_;
};

std::string flag_of(const std::string& name) {
  std::string flag = "--" + name;
  std::replace(flag.begin(), flag.end(), '_', '-');
  return flag;
}

// The last line of what a child said, and all of it in a log file.
class ChildLog {
 public:
  explicit ChildLog(const fs::path& file) : stream_(file, std::ios::binary | std::ios::trunc) {}

  void hear(std::string_view text) {
    stream_.write(text.data(), static_cast<std::streamsize>(text.size()));
    constexpr std::size_t kTail = 4096;
    tail_ += text;
    if (tail_.size() > 2 * kTail) tail_.erase(0, tail_.size() - kTail);
  }

  std::string last_line() const {
    const std::string_view text = trim(tail_);
    const auto start = text.rfind('\n');
    std::string line(start == std::string_view::npos ? text : text.substr(start + 1));
    for (const std::string_view own : {"paceline: "}) {
      if (line.starts_with(own)) line.erase(0, own.size());
    }
    return line.substr(0, 500);
  }

 private:
  std::ofstream stream_;
  std::string tail_;
};

std::string reason_of(const Watch& watch, const ChildLog& log, double limit) {
  if (watch.timed_out) return fmt::format("took longer than {}", format_seconds(limit));
  if (watch.end.signal) {
    return fmt::format("killed by {} ({})",
                       sigabbrev_np(watch.end.signal)
                           ? std::string("SIG") + sigabbrev_np(watch.end.signal)
                           : std::to_string(watch.end.signal),
                       strsignal(watch.end.signal));
  }
  const std::string said = log.last_line();
  if (said.empty()) return fmt::format("ended with exit code {}", watch.end.exit_code);
  return fmt::format("{} (exit code {})", said, watch.end.exit_code);
}

class StudyRunner {
 public:
  StudyRunner(const RunnerSetup& setup, const std::vector<RunStatus>& runs)
      : setup_(setup), runs_(runs), session_(new_session_id()) {
    for (const RunStatus& status : runs_) {
      if (status.state == RunState::done) {
        eta_.add(status.run.point, status.seconds);
      } else {
        waiting_.push_back(status.run.point);
      }
    }
    total_ = waiting_.size();
  }

  RunnerResult go() {
    const StudyLock lock(setup_.study);
    make_folder(setup_.study / "logs");
    for (const RunStatus& status : runs_) {
      if (status.state == RunState::done) continue;
      show_status(status.run);
      run_one(status.run);
      if (result_.stopped_by) break;
    }
    return result_;
  }

 private:
  const PlannedPoint& point_of(const ScheduledRun& run) const {
    return (*setup_.points)[run.point];
  }

  std::string place() const { return fmt::format("[{:>{}}/{}]", finished_ + 1, digits(), total_); }
  std::size_t digits() const { return std::to_string(total_).size(); }

  std::string left() const {
    const auto seconds = eta_.remaining(waiting_);
    if (waiting_.empty() || !seconds) return "";
    return fmt::format("; about {} left", format_seconds(*seconds));
  }

  void show_status(const ScheduledRun& run) const {
    if (!setup_.status) return;
    setup_.status(fmt::format("{} {} repeat {} is running{}", place(), point_of(run).point.text(),
                              run.repeat, left()));
  }

  Json context_of(const ScheduledRun& run) const {
    const Point& point = point_of(run).point;
    return {{"study", setup_.spec->name}, {"point", point.text()}, {"point_folder", point.folder()},
            {"repeat", run.repeat},       {"session", session_},   {"round", run.repeat}};
  }

  void run_one(const ScheduledRun& run) {
    const PlannedPoint& point = point_of(run);
    ChildSetup child;
    child.command = run_command(setup_, point);
    child.command.push_back("--quiet");
    child.command.push_back("--store=" + setup_.study.string());
    child.command.push_back("--context=" + context_of(run).dump());
    child.environment = environment_of_process();
    child.capture_output = true;
    ChildLog log(setup_.study / "logs" /
                 fmt::format("{}.{}.log", point.point.folder(), run.repeat));
    const double start = now_seconds();
    constexpr double kGrace = 10;
    const Watch watch = watch_child(
        child, [&](std::string_view text) { log.hear(text); }, kGrace, setup_.timeout_seconds);
    const double seconds = now_seconds() - start;
    if (watch.stopped_by) {
      result_.stopped_by = watch.stopped_by;
      return;
    }
    waiting_.erase(std::find(waiting_.begin(), waiting_.end(), run.point));
    const bool good = !watch.timed_out && !watch.end.signal && watch.end.exit_code == 0;
    if (good) {
      finish(run, seconds);
    } else {
      fail(run, watch.timed_out ? "timeout" : "failed",
           reason_of(watch, log, setup_.timeout_seconds));
    }
    ++finished_;
  }

  // Done is what a record says, never an exit code.
  void finish(const ScheduledRun& run, double seconds) {
    const PlannedPoint& point = point_of(run);
    const fs::path folder = setup_.study / point.point.folder();
    std::optional<Record> newest;
    for (int attempt = 1;; ++attempt) {
      const fs::path file = folder / fmt::format("{}.{}.json", run.repeat, attempt);
      if (!fs::exists(file)) break;
      try {
        newest.emplace(read_record(file));
      } catch (const Error&) {
        newest.reset();
      }
    }
    if (!newest || !newest->completed() || newest->session() != session_) {
      return fail(run, "failed", "it ended well but left no record");
    }
    eta_.add(run.point, seconds);
    ++result_.completed;
    setup_.line(fmt::format("{} {} repeat {}: {}, {:.0f} samples/s{}", place(), point.point.text(),
                            run.repeat,
                            format_seconds(newest->number("/timing/fit_seconds").value_or(0)),
                            newest->number("/throughput/samples_per_second").value_or(0), left()));
  }

  void fail(const ScheduledRun& run, const std::string& status, const std::string& reason) {
    const PlannedPoint& point = point_of(run);
    Json parameters = {{"workload", setup_.spec->workload}};
    for (const auto& [name, value] : point.parameters.values()) {
      parameters[name] = std::visit([](const auto& v) { return Json(v); }, value);
    }
    const Layout& layout = point.layout;
    Json record = {{"schema", kRecordSchema},
                   {"kind", "measured"},
                   {"study", setup_.spec->name},
                   {"point", point.point.text()},
                   {"repeat", run.repeat},
                   {"attempt", 1},
                   {"session", session_},
                   {"round", run.repeat},
                   {"status", status},
                   {"reason", reason},
                   {"parameters", parameters},
                   {"identity", ""},
                   {"layout",
                    {{"nodes", layout.nodes},
                     {"ntasks", layout.ntasks},
                     {"cpus_per_task", layout.cpus_per_task},
                     {"gpus", layout.gpus},
                     {"cpus_per_replica", layout.cpus_per_replica},
                     {"replicas_are", layout.replicas_are_cores ? "cores" : "gpus"}}}};
    Store(setup_.study).write(point.point.folder(), run.repeat, record, "");
    ++result_.failed;
    setup_.line(fmt::format(
        "{} {} repeat {} {}: {}; log: {}{}", place(), point.point.text(), run.repeat,
        status == "timeout" ? "timed out" : "failed", reason,
        (setup_.study / "logs" / fmt::format("{}.{}.log", point.point.folder(), run.repeat))
            .string(),
        left()));
  }

  const RunnerSetup& setup_;
  const std::vector<RunStatus>& runs_;
  std::string session_;
  Eta eta_;
  std::vector<std::size_t> waiting_;
  std::size_t finished_ = 0, total_ = 0;
  RunnerResult result_;
};

}  // namespace

std::vector<std::string> run_command(const RunnerSetup& setup, const PlannedPoint& point) {
  std::vector<std::string> command = setup.program;
  command.insert(command.end(), {"train", setup.spec->workload});
  for (const auto& [name, value] : point.parameters.values()) {
    command.push_back(flag_of(name) + "=" + to_text(value));
  }
  command.insert(command.end(), setup.extra.begin(), setup.extra.end());
  return command;
}

RunnerResult run_study(const RunnerSetup& setup, const std::vector<RunStatus>& runs) {
  return StudyRunner(setup, runs).go();
}

}  // namespace paceline
