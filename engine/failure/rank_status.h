// A rank's own report of how it ended, for its starter or for a post-mortem: a file in the run's
// status folder. Launchers' exit codes are unreliable (mpirun kills survivors after a second, srun
// reports 137).
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/launch/process_rank.h"

namespace paceline {

// The status folder: for ranks, and for a starter that must not create its own.
inline constexpr char kStatusFolderVariable[] = "PACELINE_STATUS_DIR";
// The attempt's name. Set by Paceline's starter, which prints the run's last line.
inline constexpr char kStarterVariable[] = "PACELINE_STARTER";

// The folder in which ranks report: $PACELINE_STATUS_DIR, else "status" in the job's directory
// (process_rank.h). Empty if neither exists.
std::optional<std::filesystem::path> status_folder(const Environment& environment);

// Identifies the ranks of one start, by the starter or the launcher, so that files of earlier
// attempts in the same folder can be distinguished.
std::string find_attempt(const Environment& environment);

// Where the starter reads what rank 0 writes to standard output or standard error
// (`descriptor`): Open MPI 5 breaks what passes through mpirun into lines of 4096 bytes.
std::filesystem::path pipe_of_rank_0(const std::filesystem::path& folder,
                                     const std::string& attempt, int descriptor);

// Part of the message if the first sum fails: no rank has stopped then.
inline constexpr char kFirstSum[] = "a first sum of ";

enum class RankState { running, done, failed };

// "3.json" in the status folder. Ranks are processes here.
struct RankStatus {
  int rank = 0;
  std::string host;
  int pid = 0;
  RankState state = RankState::running;
  int exit_code = 0;
  std::string message;  // of the error, one line
  double time = 0;      // seconds since 1970, to separate causes from consequences
  std::string attempt = {};
  int size = 0;  // of the world; 0: unknown
};

void write_status(const std::filesystem::path& folder, const RankStatus& status);
// In rank order. Unreadable files count as missing.
std::vector<RankStatus> read_statuses(const std::filesystem::path& folder);

// A starter's status folder: $PACELINE_STATUS_DIR, which is kept, or a private folder in TMPDIR,
// which is removed at the end.
class RunFolder {
 public:
  explicit RunFolder(const Environment& environment = {});  // throws input if it cannot be created
  const std::filesystem::path& path() const { return path_; }
  bool stays() const { return !scratch_; }

 private:
  std::filesystem::path path_;
  std::optional<ScratchFolder> scratch_;
};

// Runs `work` as a rank, and writes its end to the status folder, if any. With a Paceline starter,
// an error becomes the exit code instead of an exception, because the starter prints the last line.
// A status folder that cannot be written is only logged.
int run_rank(const Environment& environment, const ProcessRank& process,
             const std::function<int()>& work);

// Writes this rank's end like run_rank(), for cases where it cannot return because another thread
// is stuck. False if no Paceline starter reads it.
bool write_exit_status(const Environment& environment, const ProcessRank& process,
                       const Error& error);

// For a rank that will never return: the same, or else prints the error.
void write_fatal_status(const Environment& environment, const ProcessRank& process,
                        const Error& error);

}  // namespace paceline
