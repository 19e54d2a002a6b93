// "gloo+flat": gloo::allreduce over Gloo's own connections. The control plane is Paceline's.
#pragma once

#include <gloo/context.h>

#include <memory>

#include "engine/comm/algorithms/socket_communicator.h"

namespace paceline::gloo_backend {

class FlatCommunicator final : public SocketCommunicator {
 public:
  // `connections` between the ranks of `context`; see SocketCommunicator.
  FlatCommunicator(std::shared_ptr<gloo::Context> context, std::map<int, Descriptor> connections,
                   const Deadlines& deadlines, int ranks_a_task)
      : SocketCommunicator(std::move(connections), context->rank, context->size, deadlines,
                           ranks_a_task),
        context_(std::move(context)),
        deadlines_(deadlines),
        ranks_a_task_(ranks_a_task) {}

  void all_reduce(void* data, std::size_t count, DType type, Lane& lane,
                  std::string_view label) override;

 private:
  void reduce(std::byte* data, std::size_t count, DType type, std::string_view label);

  std::shared_ptr<gloo::Context> context_;
  Deadlines deadlines_;
  int ranks_a_task_;
};

}  // namespace paceline::gloo_backend
