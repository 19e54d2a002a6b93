// Determines which runs of a study exist, and why the others must be made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/facts/provenance.h"
#include "results/parameters.h"
#include "results/store.h"
#include "sweeps/expansion.h"

namespace paceline {

// The order of the runs of a study.

struct ScheduledRun {
  std::size_t point = 0;  // index into the expansion
  int repeat = 1;         // from 1; also its round if runs are interleaved
  std::size_t side = 0;   // index of the program, if several are compared
};

// Interleaved: each round runs every point once, in an order shuffled by seed and round, so that
// drift of the machine affects all points equally. Sequential: all repeats of a point, then the
// next point.
std::vector<ScheduledRun> schedule(std::size_t points, int repeats, bool interleaved,
                                   std::uint64_t seed);

// Interleaved. In each round, all sides run a point directly after each other, in shuffled order,
// so that disturbances affect all sides equally.
std::vector<ScheduledRun> schedule_sides(std::size_t points, std::size_t sides, int rounds,
                                         std::uint64_t seed);

// Estimates the remaining time of a study: medians of finished runs of the same point, else of all.

class Eta {
 public:
  void add(std::size_t point, double seconds);
  // The total for one run of each of these points. Empty until a run has finished.
  std::optional<double> remaining(const std::vector<std::size_t>& points) const;

 private:
  std::map<std::size_t, std::vector<double>> seconds_;
};

// "about 18 s", "about 1 min 10 s", without fractions.
std::string about(double seconds);

// A run with all defaults filled in. The caller knows the workloads.
struct Resolved {
  Point parameters;       // all of them
  std::string identity;   // of workload and parameters; empty: unknown, compare the given ones
  std::string data_hash;  // empty: unknown, any matches
  std::string build;
  std::optional<ProgramFacts> program = {};  // as it is now
};

constexpr char kNoRecord[] = "no record";

// elsewhere: its completed record is from another machine, which does not count here.
enum class RunState { done, missing, failed, changed, elsewhere };

struct RunStatus {
  ScheduledRun run;
  RunState state = RunState::missing;
  std::string why = {};  // "no record", "failed: rank 1 was killed", ...; for a done run its record
  double seconds = 0;    // of a done run: set-up, fit and evaluation; for the ETA
  bool other_build = false;
  // Machine of a record that would complete it on a matching machine.
  std::string other_machine = {};
};

// The machine of a completed record if that does not count where the study will run, as text.
// Empty: it counts.
using OtherMachine = std::function<std::string(const Record&)>;

// One status per scheduled run, in schedule order. A completed record with the same identity and
// data hash makes a run done; with `new_build` it must also be of this build. Failed or truncated
// records, and those with other parameters, data or machines, do not. `resolved` corresponds to
// `points`.
std::vector<RunStatus> take_inventory(const std::vector<PlannedPoint>& points,
                                      const std::vector<ScheduledRun>& runs,
                                      const StoreContent& store,
                                      const std::vector<Resolved>& resolved, bool new_build,
                                      const OtherMachine& other_machine = {});

// Lets only one sweep, submit or merge at a time work on a study.

class StudyLock {
 public:
  // Creates the study's folder if necessary. Throws input if it cannot be written, or naming the
  // process that holds the lock. The lock is released when the process ends, however it ends.
  explicit StudyLock(const std::filesystem::path& study);
  // Folders that it created go again if nothing was written into them.
  ~StudyLock();
  StudyLock(const StudyLock&) = delete;
  StudyLock& operator=(const StudyLock&) = delete;

  const Folder& folder() const { return *folder_; }

 private:
  std::optional<Folder> folder_;
  std::vector<std::filesystem::path> created_;  // the study's folder first, then its parents
  int descriptor_;
};

}  // namespace paceline
