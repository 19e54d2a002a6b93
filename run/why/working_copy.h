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
  // What is only read. Throws usage if there is no such thing in the folder.
  void link(const std::string& given);
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
  std::filesystem::path hook, scratch;  // what the program may write is in the latter
  bool writes_ok = false;
  std::vector<int> cpus;  // of the caller
  std::string settings;   // for the hook, which each run's own replace: a JSON object
};
void save_launch(const std::filesystem::path& file, const WhyLaunch& launch);

// Copies the shipped hook to where a container sees it. The user may write it, but a process that
// is held may not: by that the hook knows whether it is. Throws internal if it is not installed.
std::filesystem::path place_hook(const std::filesystem::path& to);

// Whether this kernel refuses writes outside of given folders (Landlock).
bool can_hold_writes();
// A container's runtime mounts, which Landlock refuses. So it is not held, and Python in it is.
const std::set<std::string>& container_runtimes();
bool starts_containers(const std::vector<std::string>& command);

// Makes the copy and becomes the command in it, which may write there, below the run's folder and
// into caches only. Throws if it cannot be started.
[[noreturn]] void become_in_copy(const std::filesystem::path& launch_file,
                                 const std::vector<std::string>& command);

}  // namespace paceline
