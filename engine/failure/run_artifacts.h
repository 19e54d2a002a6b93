// The files that a run leaves in its status folder, and the post-mortem that is derived from them.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "engine/failure/failure_snapshot.h"
#include "engine/failure/rank_status.h"
#include "engine/failure/verdict.h"

namespace paceline {

// Of a single attempt: a requeued job writes to the same folder.
struct RunArtifacts {
  std::string attempt;
  int ranks = 0;  // processes of the world
  std::vector<RankStatus> statuses;
  std::vector<Flight> flights;
};

// The state of the replicas when the first of them gave up, else at the end.
FailureSnapshot latest_snapshot(const RunArtifacts& artifacts);

RunArtifacts load_run_artifacts(const std::filesystem::path& folder, const std::string& attempt);
// Of the most recent attempt. Throws input naming the folder if no rank wrote anything.
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
