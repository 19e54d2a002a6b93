#pragma once

#include <exception>

#include "engine/comm/communicator.h"
#include "engine/device/device.h"
#include "engine/input/loading/feeder.h"

namespace paceline {

// The feeder's next batch. The wait is watched: a hanging file system ends the run, even if no
// other rank waits for this one.
inline const StagedBatch& next_batch(Feeder& feeder, Communicator& communicator) {
  const OwnWait wait(communicator, "its next batch");
  return feeder.next();
}

// Declare it behind a feeder: where an error does away with both, a queued copy may yet have to
// read the last batch.
class BatchInUse {
 public:
  BatchInUse(Program& program, Communicator& communicator)
      : program_(program), communicator_(communicator) {}
  ~BatchInUse() {
    try {
      const StreamWait wait(communicator_, "the steps before");
      program_.wait_for_input();
    } catch (const std::exception&) {  // of a device that does nothing any more
    }
  }
  BatchInUse(const BatchInUse&) = delete;
  BatchInUse& operator=(const BatchInUse&) = delete;

 private:
  Program& program_;
  Communicator& communicator_;
};

}  // namespace paceline
