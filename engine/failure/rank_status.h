// What a rank leaves behind for the process that started it, or for a post-mortem: launchers' exit
// codes are not to be trusted (mpirun kills survivors after a second, srun reports 137), so each
// rank writes down how it ended, in a file of the run's status folder.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/core/error.h"
#include "engine/launch/process_rank.h"

namespace paceline {

// Names the status folder: to the ranks, and to a starter that is not to use one of its own.
inline constexpr char kStatusFolderVariable[] = "PACELINE_STATUS_DIR";
// Set by a starter of ours, which prints the run's last line: the attempt's name.
inline constexpr char kStarterVariable[] = "PACELINE_STARTER";

// The folder that ranks write to: $PACELINE_STATUS_DIR, else "status" in the directory of the job
// (run_directory.h). Nothing where there is neither.
std::optional<std::filesystem::path> status_folder(const Environment& environment);

// What the ranks of one start have in common and another start has not, by the starter or the
// launcher: files of an earlier attempt in the same folder are told by it.
std::string attempt_of(const Environment& environment);

// In the message of a rank that could not sum with the others even once: nobody stopped.
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
  double time = 0;      // seconds since 1970, to tell causes from consequences
  std::string attempt = {};
  int size = 0;  // of the world; 0: not said
};

void write_status(const std::filesystem::path& folder, const RankStatus& status);
// In rank order; a file that cannot be read counts as not there.
std::vector<RankStatus> read_statuses(const std::filesystem::path& folder);

// A starter's status folder: the one of $PACELINE_STATUS_DIR, which stays, or a private one in
// TMPDIR, removed with all it holds at the end.
class RunFolder {
 public:
  explicit RunFolder(const Environment& environment = {});  // throws input if none can be made
  ~RunFolder();
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }
  bool stays() const { return stays_; }

 private:
  std::filesystem::path path_;
  bool stays_ = false;
};

// Runs `work` as a rank: where there is a status folder, its end is written down there. Started by
// us, its error is not thrown but becomes the exit code: the starter prints the one last line. A
// folder that cannot be written is a note in the log.
int run_rank(const Environment& environment, const ProcessRank& process,
             const std::function<int()>& work);

// Writes down the end of this rank as run_rank() would, before it can return: another of its
// threads may be stuck. False where no starter of ours reads it.
bool write_down_end(const Environment& environment, const ProcessRank& process, const Error& error);

// For a rank that will never return: the same, or else it is printed.
void leave_last_words(const Environment& environment, const ProcessRank& process,
                      const Error& error);

}  // namespace paceline
