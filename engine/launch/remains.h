// What a run leaves in its status folder, and what it says once nobody is there to tell: the
// post-mortem.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "engine/launch/standing.h"
#include "engine/launch/status.h"
#include "engine/launch/verdict.h"

namespace paceline {

// Of one attempt: a requeued job writes to the folder of the one before.
struct Remains {
  std::string attempt;
  int ranks = 0;  // processes of the world
  std::vector<RankStatus> statuses;
  std::vector<Flight> flights;
};

// Where the replicas stood when the first of them gave up, else at the end.
Standing standing_of(const Remains& remains);

Remains remains_of(const std::filesystem::path& folder, const std::string& attempt);
// Of the attempt that wrote last. Throws input, naming the folder, where no rank wrote anything.
Remains remains_of_latest(const std::filesystem::path& folder);

// Processes that have not written down their end and that live, as far as can be known: on this
// host for certain, elsewhere by their ring's last beat.
std::vector<int> still_running(const Remains& remains);

// What the starter of the run said, for the post-mortem, which was not there: "verdict.json".
void write_verdict(const std::filesystem::path& folder, const std::string& attempt,
                   const RunVerdict& verdict);

// The starter's verdict where it left one, else judge_remains().
RunVerdict post_mortem(const std::filesystem::path& folder, const Remains& remains);

}  // namespace paceline
