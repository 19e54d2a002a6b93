// gloo::allreduce over Gloo's own connections. The control plane is Paceline's.
#pragma once

#include <gloo/context.h>

#include <memory>
#include <utility>

#include "engine/comm/algorithms/socket_communicator.h"

namespace paceline {
class LivenessConnection;
}

namespace paceline::gloo_backend {

class GlooCommunicator final : public SocketCommunicator {
 public:
  // `connections` between the members of `group`, which are the ranks of `context`. `control` knows
  // which ranks are late; may be null.
  GlooCommunicator(std::shared_ptr<gloo::Context> context, std::map<int, Descriptor> connections,
                   const RankGroup& group, const Deadlines& deadlines, LivenessConnection* control)
      : SocketCommunicator(std::move(connections), group, deadlines),
        context_(std::move(context)),
        group_(group),
        deadlines_(deadlines),
        control_(control) {}

  void all_reduce(void* data, std::size_t count, DType type, Lane& lane,
                  std::string_view label) override;

 private:
  void reduce(std::byte* data, std::size_t count, DType type, std::string_view label);

  std::shared_ptr<gloo::Context> context_;
  RankGroup group_;
  Deadlines deadlines_;
  LivenessConnection* control_;
};

}  // namespace paceline::gloo_backend
