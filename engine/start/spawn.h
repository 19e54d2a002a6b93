// Starts the ranks of a run, through mpirun or directly, and returns one verdict for all.
#pragma once

#include <csignal>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "engine/core/environment.h"
#include "engine/failure/verdict.h"
#include "engine/launch/process_rank.h"

namespace paceline {

struct SpawnRequest {
  std::vector<std::string> command;  // the program (a path) and its arguments
  int ranks = 1;
  Environment environment;  // of the ranks; usually environment_of_process()
  // The ranks handle stop requests: SIGTERM and SIGUSR1 are forwarded as requests.
  bool stops_between_steps = false;
  // Ends the run if no rank gives a sign of life (in its flight ring) for this long, or none has
  // begun after it: a launcher may hang, and if all ranks are stopped, none can report the others.
  // 0: never.
  double silence_seconds = 0;
};

// Runs to the end. The ranks' standard output is inherited, and so is their standard error without
// the launcher's messages. Forwards SIGINT and SIGTERM (see child.h). Each rank must run its work
// in run_rank(). Throws usage with a cure if there is no mpirun.
RunVerdict spawn_ranks(const SpawnRequest& request);

// The same without a launcher, on this machine: ranks are child processes and find their place in
// torchrun's variables (RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE). They are not bound. After
// one rank fails, the others have a few seconds to end.
RunVerdict spawn_direct(const SpawnRequest& request);

// The machine's mpirun, and how to make it leave mapping and binding to Paceline.

enum class LauncherMake { open_mpi, hydra, unknown };  // hydra: MPICH and Intel MPI

struct Launcher {
  std::filesystem::path program;
  LauncherMake make = LauncherMake::unknown;
  std::string version;  // first line of --version
};

// mpirun, else mpiexec, in PATH.
std::optional<Launcher> find_launcher(const Environment& environment);

LauncherMake identify_launcher(const std::string& version_text);

// The complete command. The launcher does not bind ranks: each rank binds itself to its part of the
// launcher's mask. Throws usage for an unknown launcher.
std::vector<std::string> launch_command(const Launcher& launcher, int ranks,
                                        const std::vector<std::string>& command);

// Sets the environment variables that the launcher needs, also when run as root.
void prepare_environment(const Launcher& launcher, Environment& environment);

// SIGTERM and SIGUSR1 as stop requests, which a run polls between steps.

class StopRequests {
 public:
  // From now on these signals do not end the process. Construct it on the main thread, before other
  // threads. `file`: where the starter may leave the request, because launchers do not forward all
  // signals; empty: none.
  explicit StopRequests(std::filesystem::path file);
  ~StopRequests();
  StopRequests(const StopRequests&) = delete;
  StopRequests& operator=(const StopRequests&) = delete;

  // The first signal received, or 0. Thread-safe.
  int pending();

 private:
  std::filesystem::path file_;
  sigset_t before_;
  int descriptor_ = -1;
  std::mutex mutex_;
  int signal_ = 0;
};

// For the ranks of one attempt (rank_status.h), in their status folder.
std::filesystem::path request_file(const std::filesystem::path& folder, const std::string& attempt);
// For this rank. Empty without a Paceline starter.
std::filesystem::path request_file(const Environment& environment);
void write_stop_request(const std::filesystem::path& file, int signal);

}  // namespace paceline
