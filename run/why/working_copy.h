// The copy of the user's folder in which runs of `why` happen, so that nothing of his changes.
#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <vector>

namespace paceline {

// Names the file of a LaunchFile for the process that becomes the program.
inline constexpr char kLaunchVariable[] = "PACELINE_WHY_LAUNCH";
// JSON of what one run changes, for the Python hook (sweeps/why/paceline_why.py).
inline constexpr char kHookVariable[] = "PACELINE_WHY";

struct WorkingCopy {
  std::filesystem::path from;                // the user's folder
  std::filesystem::path root;                // of the copy's paths
  std::set<std::filesystem::path> linked;    // not copied, but linked: absolute
  std::set<std::filesystem::path> left_out;  // neither: absolute

  // Throws input if more than kMostCopied bytes would be copied, naming the largest entry.
  void check_size() const;
  std::filesystem::path to() const { return root / from.relative_path(); }
  bool is_on_other_storage() const;  // than the user's folder
  // Replaces an older copy. Links that lead out of the folder lead to the same place, and so do
  // paths like ../data: what lies in a folder above is linked. Python's virtual environments are
  // linked, as `linked` is.
  void make() const;
};
inline constexpr double kMostCopied = 4e9;

// What the processes of all runs have in common.
struct WhyLaunch {
  WorkingCopy copy;
  std::filesystem::path hook, scratch;
  bool writes_ok = false;
  std::vector<int> cpus;  // of the caller
  std::string settings;   // for the hook, which each run's own replace: a JSON object
};
void save_launch(const std::filesystem::path& file, const WhyLaunch& launch);

// Whether this kernel refuses writes outside of given folders (Landlock).
bool can_hold_writes();

// Makes the copy and becomes the command in it, which may write there, below the run's folder and
// into caches only. Throws if it cannot be started.
[[noreturn]] void become_in_copy(const std::filesystem::path& launch_file,
                                 const std::vector<std::string>& command);

// Becomes the command if the hook's settings ask for that: a process that a daemon started, as
// Slurm's tasks, inherits nothing that the kernel refuses the launcher.
void become_held(const std::string& settings, const std::vector<std::string>& command);

}  // namespace paceline
