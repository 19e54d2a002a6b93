#include "engine/train/gather_steps.h"

#include <algorithm>

namespace paceline {

void gather_steps(Communicator& communicator, const std::vector<StepTimes>& mine,
                  std::vector<RankTimes>& ranks, std::size_t piece_bytes) {
  const std::size_t most = std::max<std::size_t>(1, piece_bytes / sizeof(StepTimes) / ranks.size());
  std::vector<StepTimes> piece(std::min(most, mine.size()) * ranks.size());
  for (std::size_t first = 0; first < mine.size(); first += most) {
    const std::size_t count = std::min(most, mine.size() - first);
    communicator.all_gather(&mine[first], count * sizeof(StepTimes), piece.data());
    if (communicator.rank() != 0) continue;
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      const StepTimes* steps = &piece[r * count];
      ranks[r].steps.insert(ranks[r].steps.end(), steps, steps + count);
    }
  }
}

}  // namespace paceline
