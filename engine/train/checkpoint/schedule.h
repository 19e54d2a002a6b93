// When checkpoints are due: every N steps, epochs or minutes.
#pragma once

#include <cstddef>
#include <string>

namespace paceline {

enum class CheckpointUnit { never, steps, epochs, minutes };

struct CheckpointSchedule {
  CheckpointUnit unit = CheckpointUnit::never;
  double every = 0;  // a whole number, except for minutes

  bool after_step(std::size_t step) const;   // completed steps in total
  bool after_epoch(int epoch) const;         // completed epochs in total
  bool after_seconds(double seconds) const;  // since the last checkpoint
};

// Parses "17 steps", "17steps", "1 epoch", "0.5 minutes". Throws usage naming `where`.
CheckpointSchedule parse_checkpoint_schedule(const std::string& text, const std::string& where);

}  // namespace paceline
