// Times of steps by phase, as the trainer measures them or another tool's trace has them.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <vector>

namespace paceline {

struct PhaseSeconds;
struct StragglerFacts;

// input: waiting for the batch, or making it. communication: only the exposed part, for which the
// step waited. other: between steps.
enum class Phase { input, forward, backward, communication, update, other };
constexpr std::size_t kPhases = 6;
constexpr std::array<const char*, kPhases> kPhaseNames = {"input",         "forward", "backward",
                                                          "communication", "update",  "other"};

struct StepTimes {
  std::array<float, kPhases> seconds{};
  float total = 0;
};

struct RankTimes {
  std::vector<StepTimes> steps;
  double communication_busy = 0;  // all-reduce time, hidden or not
};

// Sums over all steps.
PhaseSeconds sum_phases(const RankTimes& rank);

// Finds the rank that delayed the others, and its slow phase, from the step times of all ranks.
//
// A rank's *work* is a step without its waits for communication: input, forward, backward and
// update. Its *excess* is its work minus the median of the other ranks' work. Equal ranks take
// turns at being slowest. So a rank is a straggler only if it was slower than that median in nine
// of ten equal stretches of the run (by chance, once in a hundred runs) and its excess is at least
// 3 % of a step.

inline constexpr std::size_t kStragglerStretches = 10;
inline constexpr std::size_t kStragglerLeastSteps = 20;  // fewer steps are not judged
inline constexpr double kStragglerLeastShare = 0.03;

// All ranks have the same number of steps. Ignores the first `warmup` steps. Leaves the host empty.
std::optional<StragglerFacts> find_straggler(const std::vector<RankTimes>& ranks,
                                             std::size_t warmup);

}  // namespace paceline
