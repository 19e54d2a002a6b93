#include "engine/start/spawn.h"

#include <fmt/format.h>
#include <poll.h>
#include <pthread.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <utility>

#include "engine/core/child.h"
#include "engine/core/clock.h"
#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/log.h"
#include "engine/core/text.h"
#include "engine/failure/rank_status.h"
#include "engine/failure/verdict.h"
#include "engine/launch/program.h"
#include "engine/start/output_filter.h"

namespace paceline {

namespace {

// Writes to a descriptor, and remembers the first failure.
class FdWriter {
 public:
  explicit FdWriter(int descriptor) : descriptor_(descriptor) {}

  void write(std::string_view text) {
    while (!text.empty() && failure_ == 0) {
      const ssize_t written = ::write(descriptor_, text.data(), text.size());
      if (written > 0) {
        text.remove_prefix(static_cast<std::size_t>(written));
      } else if (errno == EAGAIN) {
        pollfd entry{descriptor_, POLLOUT, 0};
        poll(&entry, 1, -1);
      } else if (errno != EINTR) {
        failure_ = errno;
      }
    }
  }

  int failure() const { return failure_; }  // errno, 0: none

 private:
  int descriptor_;
  int failure_ = 0;
};

// Keeps the end of standard output, where MPICH reports a killed rank below what ranks printed.
void keep_end(std::string& kept, std::string_view text) {
  constexpr std::size_t kMost = 8 << 10;
  kept += text;
  if (kept.size() > 2 * kMost) kept.erase(0, kept.size() - kMost);
}

// Removes the ranks' places in a job of another launcher in which this process may run.
void forget_launchers(Environment& environment) {
  for (const char* name :
       {"OMPI_COMM_WORLD_RANK", "PALS_RANKID", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID"}) {
    environment.erase(name);
  }
}

// The folder where the ranks of this start report their status, and receive stop requests.
class RankStatusFolder {
 public:
  explicit RankStatusFolder(const Environment& environment)
      : folder_(environment), attempt_(new_session_id()) {}

  void export_to(Environment& environment) const {
    environment[kStatusFolderVariable] = folder_.path().string();
    environment[kStarterVariable] = attempt_;
  }

  ChildLimits limits(const SpawnRequest& request) const {
    ChildLimits limits;
    if (!request.stops_between_steps) return limits;
    limits.ask_to_stop = [file = request_file(folder_.path(), attempt_)](int signal) {
      try {
        write_stop_request(file, signal);
      } catch (const Error& error) {
        log::warning("the ranks cannot be asked to stop: {}", error.what());
      }
    };
    return limits;
  }

  std::filesystem::path pipe(int descriptor) const {
    return pipe_of_rank_0(folder_.path(), attempt_, descriptor);
  }
  const std::filesystem::path& folder() const { return folder_.path(); }
  RunArtifacts artifacts() const { return load_run_artifacts(folder_.path(), attempt_); }

  // Stores the verdict for a post-mortem if the folder stays. Returns it.
  RunVerdict store(RunVerdict verdict) const {
    if (!folder_.stays()) return verdict;
    try {
      write_verdict(folder_.path(), attempt_, verdict);
    } catch (const Error& error) {
      log::warning("the verdict cannot be stored: {}", error.what());
    }
    return verdict;
  }

 private:
  RunFolder folder_;
  std::string attempt_;
};

// Looks for signs of life of the ranks. Uses this process's steady clock, which does not advance
// while the machine is suspended.
class SilenceDetector {
 public:
  SilenceDetector(const RankStatusFolder& status_folder, const SpawnRequest& request)
      : status_folder_(status_folder),
        silence_(request.silence_seconds),
        looked_(now_seconds()),
        last_beat_(looked_),
        has_begun_(ranks_may_be_elsewhere(request.environment)) {}

  // Some rank has printed something.
  void begin() { has_begun_ = true; }

  bool is_over() {
    const double now = now_seconds();
    if (silence_ <= 0 || now - looked_ < silence_ / kLooks) return false;
    looked_ = now;
    const RunArtifacts found = status_folder_.artifacts();
    has_begun_ = has_begun_ || has_some_rank_begun(found);
    double newest = 0;
    for (const Flight& flight : found.flights) newest = std::max(newest, flight.beat);
    // Ranks whose steps are not recorded are never silent.
    if ((has_begun_ && newest == 0) || newest != beat_) last_beat_ = now;
    beat_ = newest;
    return now - last_beat_ > silence_;
  }

  Error error() const {
    if (has_begun_) {
      return {ErrorKind::stall, fmt::format("no rank gave a sign of life for {:g} s", silence_), "",
              "see who stopped them all"};
    }
    return {ErrorKind::stall, fmt::format("no rank began within {:g} s", silence_), "",
            "see whether the launcher works on this machine (mpirun -n 2 hostname), or raise "
            "--start-seconds"};
  }

 private:
  static constexpr double kLooks = 20;

  // From a shell on a login node (salloc), ranks run on other nodes and write to folders there.
  static bool ranks_may_be_elsewhere(const Environment& environment) {
    return !environment_value(environment, "SLURM_JOB_ID").empty() &&
           environment_value(environment, "SLURMD_NODENAME").empty();
  }

  // True if ranks cannot report that they have begun because the folder is full.
  bool has_some_rank_begun(const RunArtifacts& found) const {
    if (!found.statuses.empty() || !found.flights.empty()) return true;
    try {
      check_writable(status_folder_.folder() / "probe");
      return false;
    } catch (const Error&) {
      return true;
    }
  }

  const RankStatusFolder& status_folder_;
  double silence_, looked_, last_beat_, beat_ = 0;
  bool has_begun_;
};

ChildLimits watch_for_silence(ChildLimits limits, SilenceDetector& silence) {
  limits.should_give_up = [&silence] {
    try {
      return silence.is_over();
    } catch (const std::exception&) {
      return false;  // what cannot be read now may be readable at the next look
    }
  };
  return limits;
}

// Silence is the verdict unless a rank reported why it failed.
RunVerdict with_silence(RunVerdict judged, const RunArtifacts& artifacts, const Error& error) {
  const bool rank_failed =
      std::ranges::count(artifacts.statuses, RankState::failed, &RankStatus::state) > 0;
  if (rank_failed) return judged;
  return {exit_code(error.kind()), error.what(), ""};
}

ChildSetup make_rank_setup(const SpawnRequest& request, int rank,
                           const RankStatusFolder& status_folder) {
  ChildSetup setup{.command = request.command, .environment = request.environment};
  forget_launchers(setup.environment);
  for (const char* name : {"RANK", "LOCAL_RANK"}) setup.environment[name] = std::to_string(rank);
  for (const char* name : {"WORLD_SIZE", "LOCAL_WORLD_SIZE"}) {
    setup.environment[name] = std::to_string(request.ranks);
  }
  status_folder.export_to(setup.environment);
  return setup;
}

// mpirun does not notice that this process could not write.
RunVerdict output_failed(int cause) {
  const Error error(ErrorKind::input,
                    fmt::format("standard output could not be written: {}", std::strerror(cause)),
                    "", "free disk space, or redirect the output");
  return {exit_code(error.kind()), error.what(), ""};
}

// mpirun starts ranks in process groups of their own, and may end before they do.
WatchOfMany watch_ranks(const std::vector<ChildSetup>& setups, const OnChildOutput& on_text,
                        const ChildLimits& limits, const OnSeparateOutput& on_output = {},
                        const std::vector<MoreOutput>& more = {}) {
  adopt_orphans();
  WatchOfMany watch = watch_children(setups, on_text, limits, on_output, more);
  end_orphans();
  return watch;
}

}  // namespace

RunVerdict spawn_direct(const SpawnRequest& request) {
  const RankStatusFolder status_folder(request.environment);
  std::vector<ChildSetup> setups;
  for (int rank = 0; rank < request.ranks; ++rank) {
    setups.push_back(make_rank_setup(request, rank, status_folder));
  }
  log::debug("starting {} times {}", request.ranks, shell_quote(request.command));
  FdWriter errors(STDERR_FILENO);
  RankLines lines(static_cast<std::size_t>(request.ranks),
                  [&](std::string_view text) { errors.write(text); });
  SilenceDetector silence(status_folder, request);
  const WatchOfMany watch = watch_ranks(
      setups, [&](std::size_t rank, std::string_view text) { lines.feed(rank, text); },
      watch_for_silence(status_folder.limits(request), silence));
  lines.finish();
  const RunArtifacts artifacts = status_folder.artifacts();
  RunVerdict verdict =
      judge(artifacts.statuses, watch, request.command.front(), latest_snapshot(artifacts));
  if (watch.gave_up) verdict = with_silence(verdict, artifacts, silence.error());
  return status_folder.store(verdict);
}

RunVerdict spawn_ranks(const SpawnRequest& request) {
  const auto launcher = find_launcher(request.environment);
  if (!launcher) {
    throw usage_error("mpirun was not found", "PATH",
                      "install Open MPI (Debian: openmpi-bin; module load openmpi; spack install "
                      "openmpi; conda install -c conda-forge openmpi)");
  }
  const RankStatusFolder status_folder(request.environment);
  ChildSetup setup{.command = launch_command(*launcher, request.ranks, request.command),
                   .environment = request.environment};
  status_folder.export_to(setup.environment);
  setup.separate_output = true;
  prepare_environment(*launcher, setup.environment);
  log::debug("starting {}", shell_quote(setup.command));

  FdWriter errors(STDERR_FILENO), output(STDOUT_FILENO);
  SilenceDetector silence(status_folder, request);
  RankLines lines(2, [&](std::string_view text) {
    silence.begin();
    errors.write(text);
  });
  bool direct = false;  // rank 0 writes to its pipe, so all that mpirun forwards is of others
  NoiseFilter rank_0_filter([&](std::string_view text) { lines.feed(0, text); });
  NoiseFilter launcher_filter([&](std::string_view text) { lines.feed(direct ? 1 : 0, text); });
  std::string end_of_output;
  const NamedPipe output_pipe(status_folder.pipe(STDOUT_FILENO)),
      error_pipe(status_folder.pipe(STDERR_FILENO));
  const WatchOfMany watch = watch_ranks(
      {setup}, [&](std::size_t, std::string_view text) { launcher_filter.feed(text); },
      watch_for_silence(status_folder.limits(request), silence),
      [&](std::size_t, std::string_view text, pid_t) {
        output.write(text);
        keep_end(end_of_output, text);
      },
      {{output_pipe.descriptor(), [&](std::string_view text) { output.write(text); }},
       {error_pipe.descriptor(), [&](std::string_view text) {
          direct = true;
          rank_0_filter.feed(text);
        }}});
  launcher_filter.finish();
  rank_0_filter.finish();
  lines.finish();
  const RunArtifacts artifacts = status_folder.artifacts();
  RunVerdict verdict = judge(
      request.ranks, artifacts.statuses, {watch.ends.front(), watch.stopped_by, watch.timed_out},
      {launcher_filter.noise() + rank_0_filter.noise(), end_of_output}, latest_snapshot(artifacts));
  if (watch.gave_up) verdict = with_silence(verdict, artifacts, silence.error());
  if (verdict.exit_code == 0 && output.failure() != 0) verdict = output_failed(output.failure());
  return status_folder.store(verdict);
}

LauncherMake identify_launcher(const std::string& version_text) {
  const auto names = [&](const char* make) { return version_text.find(make) != std::string::npos; };
  if (names("Open MPI") || names("OpenRTE") || names("PRRTE")) return LauncherMake::open_mpi;
  if (names("HYDRA") || names("Hydra") || names("Intel(R) MPI")) return LauncherMake::hydra;
  return LauncherMake::unknown;
}

std::optional<Launcher> find_launcher(const Environment& environment) {
  for (const char* name : {"mpirun", "mpiexec"}) {
    const auto program = find_program(name, environment);
    if (!program) continue;
    const std::string text = capture_output({program->string(), "--version"});
    const auto lines = split(text, '\n');
    return Launcher{*program, identify_launcher(text),
                    lines.empty() ? "" : std::string(trim(lines.front()))};
  }
  return std::nullopt;
}

std::vector<std::string> launch_command(const Launcher& launcher, int ranks,
                                        const std::vector<std::string>& command) {
  std::vector<std::string> words{launcher.program.string()};
  switch (launcher.make) {
    case LauncherMake::open_mpi:
      for (const char* word : {"--bind-to", "none", "--map-by", "slot:OVERSUBSCRIBE", "-x",
                               kStatusFolderVariable, "-x", kStarterVariable}) {
        words.emplace_back(word);
      }
      break;
    case LauncherMake::hydra:
      for (const char* word : {"-bind-to", "none"}) words.emplace_back(word);
      break;
    case LauncherMake::unknown:
      throw usage_error(fmt::format("\"{}\" is neither Open MPI nor MPICH", launcher.version),
                        launcher.program.string(),
                        "start the ranks yourself with it, or put another mpirun first in PATH");
  }
  words.emplace_back("-n");
  words.push_back(std::to_string(ranks));
  words.insert(words.end(), command.begin(), command.end());
  return words;
}

void prepare_environment(const Launcher& launcher, Environment& environment) {
  // Launchers fail if TMPDIR is not a folder; without it they use /tmp, as this program does.
  std::error_code ignored;
  const auto temporary = environment.find("TMPDIR");
  if (temporary != environment.end() &&
      !std::filesystem::is_directory(temporary->second, ignored)) {
    environment.erase(temporary);
  }
  if (launcher.make != LauncherMake::open_mpi || geteuid() != 0) return;
  environment["OMPI_ALLOW_RUN_AS_ROOT"] = "1";
  environment["OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"] = "1";
}

StopRequests::StopRequests(std::filesystem::path file) : file_(std::move(file)) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &set, &before_);
  descriptor_ = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
  if (descriptor_ < 0) {
    const int code = errno;
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    throw usage_error(fmt::format("signals cannot be watched: {}", strerror(code)), "",
                      "check the limit on open files (ulimit -n)");
  }
}

StopRequests::~StopRequests() {
  pending();  // consumes signals that would now end the process
  close(descriptor_);
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

int StopRequests::pending() {
  std::lock_guard lock(mutex_);
  signalfd_siginfo info;
  while (read(descriptor_, &info, sizeof info) == sizeof info) {
    if (signal_ == 0) signal_ = static_cast<int>(info.ssi_signo);
  }
  if (signal_ == 0 && !file_.empty()) std::ifstream(file_) >> signal_;
  return signal_;
}

std::filesystem::path request_file(const std::filesystem::path& folder,
                                   const std::string& attempt) {
  return folder / ("stop-" + attempt);
}

std::filesystem::path request_file(const Environment& environment) {
  const auto folder = status_folder(environment);
  const auto attempt = environment.find(kStarterVariable);
  if (!folder || attempt == environment.end()) return {};
  return request_file(*folder, attempt->second);
}

void write_stop_request(const std::filesystem::path& file, int signal) {
  replace_file(file, std::to_string(signal));
}

}  // namespace paceline
