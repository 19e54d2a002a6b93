#include "engine/comm/backends/nccl/nccl_communicator.h"

#include "engine/core/error.h"

namespace paceline::nccl {

void NcclCommunicator::all_reduce(void* data, std::size_t count, DType type, Lane& lane,
                                  std::string_view label) {
  void* const stream = lane.native();
  if (stream == nullptr) {
    throw Error(ErrorKind::usage, "backend nccl sums on a GPU's stream only", std::string(label),
                "choose --device cuda, or another backend");
  }
  if (lane.replays()) return group_->note_replay(replica_);
  group_->all_reduce(replica_, data, count, type, stream, label);
}

}  // namespace paceline::nccl
