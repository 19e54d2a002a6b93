#include "sweeps/runner.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>

#include "engine/core/child.h"
#include "engine/core/clock.h"
#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/text.h"
#include "engine/facts/timing.h"
#include "results/run_record.h"
#include "results/store.h"
#include "sweeps/program.h"

namespace paceline {

namespace fs = std::filesystem;

namespace {

bool file_exists(const fs::path& file) {
  std::error_code ignored;
  return fs::exists(file, ignored);
}

std::string find_reason(const Watch& watch, const RunLog& log, double limit) {
  const std::string line = log.last_line();
  const std::string last = line.empty() ? "" : "; its last line: " + line;
  if (watch.timed_out) return fmt::format("took longer than {}", format_seconds(limit));
  if (watch.end.signal != 0) {
    return fmt::format("killed by {} ({}){}", signal_name(watch.end.signal),
                       strsignal(watch.end.signal), last);
  }
  if (line.empty()) return fmt::format("ended with exit code {}", watch.end.exit_code);
  return fmt::format("{} (exit code {})", line, watch.end.exit_code);
}

class StudyRunner {
 public:
  StudyRunner(const RunnerSetup& setup, const std::vector<RunnerSide>& sides,
              const std::vector<RunStatus>& runs)
      : setup_(setup), sides_(sides), runs_(runs), session_(new_session_id()) {}

  RunnerResult run() {
    HeldSignals signals;
    adopt_orphans();
    while (!runs_.empty()) {
      expect(runs_);
      for (const RunStatus& status : runs_) {
        if (status.state == RunState::done) continue;
        result_.stopped_by = signals.take();
        if (result_.stopped_by == 0) run_if_affordable(status.run);
        if (result_.stopped_by != 0) return result_;
        if (nothing_works()) {
          result_.not_started = waiting_.size();
          return result_;
        }
      }
      runs_ = setup_.more ? setup_.more() : std::vector<RunStatus>();
    }
    return result_;
  }

 private:
  void expect(const std::vector<RunStatus>& runs) {
    for (const RunStatus& status : runs) {
      if (status.state == RunState::done) {
        eta_.add(status.run.point, status.seconds);
        has_results_ = true;
      } else {
        first_round_.insert(status.run.point);
        waiting_.push_back(status.run.point);
        ++total_;
      }
    }
  }

  // Whatever is wrong with each point once is wrong with its repeats. A gate tells its sides apart.
  bool nothing_works() const {
    return sides_.size() == 1 && !has_results_ && result_.completed == 0 && !waiting_.empty() &&
           failed_points_.size() == first_round_.size();
  }

  void run_if_affordable(const ScheduledRun& run) {
    if (!setup_.affordable || setup_.affordable(run)) return run_one(run);
    waiting_.erase(std::find(waiting_.begin(), waiting_.end(), run.point));
    --total_;
  }

  const PlannedPoint& point_at(const ScheduledRun& run) const {
    return (*sides_[run.side].points)[run.point];
  }

  const Folder& study(const ScheduledRun& run) const { return *sides_[run.side].study; }
  const fs::path& study_folder(const ScheduledRun& run) const { return study(run).path(); }

  // Runs of a study that is no longer in its place would be lost one after another.
  void check_in_place(const Folder& study, int just_ended) const {
    if (study.is_at_path()) return;
    const auto count = [](const fs::path& folder) {
      return file_exists(folder) ? load_store(folder).records.size() : 0;
    };
    const fs::path now = study.find_path();
    throw input_error(
        fmt::format(
            "the study was {} while its runs were made: {} ended; records here now: {}",
            now.empty()
                ? "removed"
                : fmt::format("moved to {} ({})", now.string(), counted(count(now), "record")),
            counted(result_.completed + result_.failed + just_ended, "run"), count(study.path())),
        study.path().string(), "put it back, and call sweep again for what is missing");
  }

  // "[ 7/18] gpus=2 repeat 2"
  std::string place(const ScheduledRun& run) const {
    const std::size_t number = total_ - waiting_.size() + (is_running_ ? 1 : 0);
    const std::string& side = sides_[run.side].name;
    return fmt::format("[{:>{}}/{}] {}{}{} repeat {}", number, std::to_string(total_).size(),
                       total_, side, side.empty() ? "" : " ", point_at(run).point.text(),
                       run.repeat);
  }

  std::string left() const {
    const auto seconds = eta_.remaining(waiting_);
    if (waiting_.empty() || !seconds) return "";
    return fmt::format("; {} left", about(*seconds));
  }

  // STUDY/<point>/<repeat>.<attempt>, with the first attempt that neither a record nor samples
  // have: where Store will put this run's record.
  std::string next_name(const ScheduledRun& run) const {
    const fs::path folder = study_folder(run) / point_at(run).point.folder();
    for (int attempt = 1;; ++attempt) {
      const std::string name = fmt::format("{}.{}", run.repeat, attempt);
      if (!file_exists(folder / (name + ".json")) && !file_exists(folder / (name + ".steps.gz"))) {
        return name;
      }
    }
  }

  ChildSetup make_child(const ScheduledRun& run) const {
    ChildSetup child;
    const RunnerSide& side = sides_[run.side];
    child.command = side.program;
    for (std::string& word : run_words(side.spec ? *side.spec : *setup_.spec, point_at(run), run,
                                       study_folder(run), session_)) {
      child.command.push_back(std::move(word));
    }
    child.environment = environment_of_process();
    child.capture_output = true;
    return child;
  }

  void run_one(const ScheduledRun& run) {
    is_running_ = true;
    if (setup_.status) setup_.status(place(run) + " is running" + left());
    const std::string name = next_name(run);
    check_in_place(study(run), 0);
    RunLog log(study(run),
               fs::path("logs") / fmt::format("{}.{}.log", point_at(run).point.folder(), name));
    const double start = now_seconds();
    const Watch watch = watch_child(
        make_child(run), [&](std::string_view text) { log.append(text); }, setup_.grace_seconds,
        setup_.spec->timeout_seconds);
    const double seconds = now_seconds() - start;
    is_running_ = false;
    end_orphans();  // of a run that was killed before it could
    ScratchFolder::remove_left(ScratchFolder::kRunPrefix);
    check_in_place(study(run), 1);
    result_.stopped_by = watch.stopped_by;
    if (watch.stopped_by != 0) return;
    waiting_.erase(std::find(waiting_.begin(), waiting_.end(), run.point));
    if (setup_.took) setup_.took(run, seconds);
    const bool ended_well = !watch.timed_out && watch.end.signal == 0 && watch.end.exit_code == 0;
    std::string why = "it left no record";
    const std::optional<Record> record = completed_record(run, name, why);
    if (record &&
        (ended_well || watch.timed_out)) {  // it may have completed before its time was up
      eta_.add(run.point, seconds);
      announce(run, *record);
    } else if (ended_well) {
      fail(run, "failed", "exit code 0, but " + why, log);
    } else {
      const bool preempted = watch.end.exit_code == exit_code(ErrorKind::preempted);
      fail(run,
           watch.timed_out ? "timeout"
           : preempted     ? "preempted"
                           : "failed",
           find_reason(watch, log, setup_.spec->timeout_seconds), log);
    }
  }

  // Only a record shows that a run completed, never its exit code. `why`: why it cannot be used.
  std::optional<Record> completed_record(const ScheduledRun& run, const std::string& name,
                                         std::string& why) const {
    const fs::path file = study_folder(run) / point_at(run).point.folder() / (name + ".json");
    try {
      if (!file_exists(file)) return std::nullopt;
      Record record = read_record(file);
      if (record->completed()) return record;
    } catch (const Error& error) {
      why = fmt::format("its record cannot be used: {}", error.what());
    }
    return std::nullopt;
  }

  void announce(const ScheduledRun& run, const Record& record) {
    ++result_.completed;
    // A user's program may report only one of them.
    std::vector<std::string> facts;
    if (const auto fit = record->fit_seconds()) facts.push_back(format_seconds(*fit));
    const Throughput& rate = *record->throughput;
    if (rate.samples_per_second && !rate.better.empty()) {
      facts.push_back(fmt::format("{:.4g} {}", *rate.samples_per_second, rate.unit));
    } else if (rate.samples_per_second) {
      facts.push_back(fmt::format("{} {}/s", format_rate(*rate.samples_per_second),
                                  rate.unit.empty() ? "samples" : rate.unit));
    }
    if (record->session != session_) facts.emplace_back("read again from what it printed");
    setup_.line(fmt::format("{}: {}{}", place(run), join(facts, ", "), left()));
  }

  void fail(const ScheduledRun& run, const std::string& status, const std::string& reason,
            const RunLog& log) {
    ++result_.failed;
    if (status != "preempted") failed_points_.insert(run.point);
    setup_.line(fmt::format("{} {}: {}; log: {}{}", place(run),
                            status == "timeout" ? "timed out" : status, reason, log.file().string(),
                            left()));
    const PlannedPoint& point = point_at(run);
    const RunPlace place{setup_.spec->name, point.point.text(), point.point.folder(),
                         session_,          run.repeat,         run.repeat};
    Store(study(run)).write({place, setup_.spec->workload, point.parameters, status, reason});
  }

  const RunnerSetup& setup_;
  const std::vector<RunnerSide>& sides_;
  std::vector<RunStatus> runs_;  // the current ones; see RunnerSetup::more
  std::string session_;
  Eta eta_;
  std::set<std::size_t> first_round_, failed_points_;
  bool has_results_ = false;
  std::vector<std::size_t> waiting_;  // the point of each run not finished
  std::size_t total_ = 0;
  bool is_running_ = false;
  RunnerResult result_;
};

}  // namespace

std::vector<std::string> run_words(const Spec& spec, const PlannedPoint& point,
                                   const ScheduledRun& run, const fs::path& study,
                                   const std::string& session) {
  std::vector<std::string> words = {"train", spec.workload};
  for (const auto& [name, value] : point.parameters.values()) {
    words.push_back(option_name(name) + "=" + to_text(value));
  }
  // Without interleaving, runs share no round: the machine's drift affects points differently.
  RunContext context{{spec.name, point.point.text(), point.point.folder(), session, run.repeat,
                      spec.interleaved ? run.repeat : 0, spec.sequential}};
  if (!spec.programs.empty()) {
    context.program = program_at(spec, point.parameters, spec.where).definition;
  }
  words.insert(words.end(),
               {"--quiet", "--store=" + study.string(), "--context=" + context.json()});
  return words;
}

RunnerResult run_study(const RunnerSetup& setup, const StudyLock& lock,
                       const std::vector<RunStatus>& runs) {
  return run_sides(setup, {{"", setup.program, setup.points, &lock.folder()}}, runs);
}

RunnerResult run_sides(const RunnerSetup& setup, const std::vector<RunnerSide>& sides,
                       const std::vector<RunStatus>& runs) {
  return StudyRunner(setup, sides, runs).run();
}

RunLog::RunLog(const Folder& study, const fs::path& name)
    : file_(study.path() / name), descriptor_(study.open_new(name)) {}

void RunLog::append(std::string_view text) {
  for (std::string_view left = text; !left.empty();) {  // errors are ignored
    const ssize_t n = write(descriptor_.number(), left.data(), left.size());
    if (n <= 0) break;
    left.remove_prefix(static_cast<std::size_t>(n));
  }
  constexpr std::size_t kTail = 4096;
  tail_ += text;
  if (tail_.size() > 2 * kTail) tail_.erase(0, tail_.size() - kTail);
}

std::string RunLog::last_line() const {
  constexpr std::size_t kMaxLine = 500;
  return paceline::last_line(tail_).substr(0, kMaxLine);
}

}  // namespace paceline
