#pragma once

#include "engine/comm/communicator.h"
#include "engine/input/loading/feeder.h"

namespace paceline {

// The feeder's next batch. The wait is watched: a hanging file system ends the run, even if no
// other rank waits for this one.
inline const StagedBatch& next_batch(Feeder& feeder, Communicator& communicator) {
  const OwnWait wait(communicator, "its next batch");
  return feeder.next();
}

}  // namespace paceline
