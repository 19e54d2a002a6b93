// Reduces a run of several ranks to one last line and exit code.
#pragma once

#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "engine/core/child.h"
#include "engine/failure/flight_reader.h"
#include "engine/failure/rank_status.h"

namespace paceline {

// The state of a run's replicas when it ended, from their flight rings: which rank was late, and
// what the others waited for.

class FailureSnapshot {
 public:
  FailureSnapshot() = default;
  // The state at `when`, in seconds since 1970: a stopped rank may be resumed in order to be ended,
  // and run for a moment.
  explicit FailureSnapshot(const std::vector<Flight>& flights,
                           double when = std::numeric_limits<double>::infinity());

  // Replicas that entered fewer collectives than others; if all entered equally many, those without
  // a sign of life for a while. Never all of them.
  std::vector<int> late() const;
  // All replicas of the processes that have one of these.
  std::vector<int> late_processes() const;
  std::vector<int> replicas_of_task(int task) const;

  // "rank 5 on n2", "ranks 2, 3 on n1". Omits unknown hosts.
  std::string format_ranks(const std::vector<int>& ranks) const;
  // " at step 416, bucket 3; the others wait at step 417, bucket 0", for these ranks. Empty if
  // nothing is known.
  std::string words_on(const std::vector<int>& ranks) const;

 private:
  const Flight* of(int rank) const;

  std::vector<int> silent() const;

  std::vector<Flight> flights_;  // with their last collective only
  double when_ = std::numeric_limits<double>::infinity();
};

struct RunVerdict {
  int exit_code = 0;
  std::string line;  // the error; empty: success
  // The launcher's own output, if no rank gave a reason; print it before the line.
  std::string noise;
};

// A cause takes precedence over its consequences, in this order: a rank's own error (the earliest);
// an exit code of ranks that ended normally; a signal that stopped us; a rank that was seen killed;
// a stall; a rank that vanished; ranks that lost a peer; a failure after all work was done. With
// flight rings, the line says how far the rank was and what the others wait for.
//
// Under a launcher, only the launcher's end is known, with its standard error and the end of
// standard output, where MPICH reports a killed rank.
struct LauncherWords {
  std::string errors, output;
};
RunVerdict judge(int ranks, const std::vector<RankStatus>& statuses, const Watch& launcher,
                 const LauncherWords& words, const FailureSnapshot& snapshot = {});

// For ranks that are our own children, with one end per rank.
RunVerdict judge(const std::vector<RankStatus>& statuses, const WatchOfMany& watch,
                 const std::string& program, const FailureSnapshot& snapshot = {});

// Based only on the files of the ranks, once none of them runs any more.
RunVerdict judge_remains(int ranks, const std::vector<RankStatus>& statuses,
                         const FailureSnapshot& snapshot);

// The files that a run leaves in its status folder, and the post-mortem that is derived from them.

// What one attempt left in a status folder, where a requeued job writes, too.
struct RunArtifacts {
  std::string attempt;
  int ranks = 0;  // processes of the world
  std::vector<RankStatus> statuses;
  std::vector<Flight> flights;
};

// The state of the replicas when the first of them gave up, else at the end.
FailureSnapshot latest_snapshot(const RunArtifacts& artifacts);

RunArtifacts load_run_artifacts(const std::filesystem::path& folder, const std::string& attempt);
// The artifacts of the most recent attempt. Throws input naming the folder if no rank wrote
// anything.
RunArtifacts remains_of_latest(const std::filesystem::path& folder);

// Processes that have not reported their end and may still run: certain on this host; elsewhere
// judged by their ring's last beat.
std::vector<int> still_running(const RunArtifacts& artifacts);

// Stores the starter's verdict for a later post-mortem: "verdict.json".
void write_verdict(const std::filesystem::path& folder, const std::string& attempt,
                   const RunVerdict& verdict);

// The starter's verdict if there is one, else judge_remains().
RunVerdict post_mortem(const std::filesystem::path& folder, const RunArtifacts& artifacts);

}  // namespace paceline
