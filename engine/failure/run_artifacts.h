// What a run leaves in its status folder, and what it says once nobody is there to tell: the
// post-mortem.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "engine/failure/failure_snapshot.h"
#include "engine/failure/rank_status.h"
#include "engine/failure/verdict.h"

namespace paceline {

// Of one attempt: a requeued job writes to the folder of the one before.
struct RunArtifacts {
  std::string attempt;
  int ranks = 0;  // processes of the world
  std::vector<RankStatus> statuses;
  std::vector<Flight> flights;
};

// Where the replicas stood when the first of them gave up, else at the end.
FailureSnapshot standing_of(const RunArtifacts& remains);

RunArtifacts remains_of(const std::filesystem::path& folder, const std::string& attempt);
// Of the attempt that wrote last. Throws input, naming the folder, where no rank wrote anything.
RunArtifacts remains_of_latest(const std::filesystem::path& folder);

// Processes that have not written down their end and that live, as far as can be known: on this
// host for certain, elsewhere by their ring's last beat.
std::vector<int> still_running(const RunArtifacts& remains);

// What the starter of the run said, for the post-mortem, which was not there: "verdict.json".
void write_verdict(const std::filesystem::path& folder, const std::string& attempt,
                   const RunVerdict& verdict);

// The starter's verdict where it left one, else judge_remains().
RunVerdict post_mortem(const std::filesystem::path& folder, const RunArtifacts& remains);

}  // namespace paceline
