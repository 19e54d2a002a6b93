// What a rank leaves behind for the process that started it: launchers' exit codes are not to be
// trusted (mpirun kills survivors after a second, srun reports 137), so each rank writes down how
// it ended, in a file of a folder that the starter made.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "engine/core/error.h"
#include "engine/launch/place.h"

namespace paceline {

// Names the run folder to the ranks.
inline constexpr char kRunFolderVariable[] = "PACELINE_RUN_DIR";

enum class RankState { running, done, failed };

// "3.json" in the run folder.
struct RankStatus {
  int rank = 0;
  std::string host;
  int pid = 0;
  RankState state = RankState::running;
  int exit_code = 0;
  std::string message;  // of the error, one line
  double time = 0;      // seconds since 1970, to tell causes from consequences
};

void write_status(const std::filesystem::path& folder, const RankStatus& status);
// In rank order; a file that cannot be read counts as not there.
std::vector<RankStatus> read_statuses(const std::filesystem::path& folder);

// A private folder in TMPDIR, removed with all it holds at the end.
class RunFolder {
 public:
  RunFolder();  // throws input if none can be made
  ~RunFolder();
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// Runs `work` as a rank. Started by us (the variable is set), its end is written down and its
// error is not thrown but becomes the exit code: the starter prints the one last line. Else just
// work().
int run_rank(const Environment& environment, const Place& place, const std::function<int()>& work);

// Writes down the end of this rank as run_rank() would, before it can return: another of its
// threads may be stuck. False where nobody asked for it (no run folder).
bool write_down_end(const Environment& environment, const Place& place, const Error& error);

// For a rank that will never return: the same, or else it is printed.
void leave_last_words(const Environment& environment, const Place& place, const Error& error);

}  // namespace paceline
