// One task a replica, all of them in one ring of TCP connections.
#pragma once

#include <memory>

#include "engine/comm/algorithms/wire_communicator.h"
#include "engine/comm/backends/gloo/gloo_wire.h"

namespace paceline::gloo_backend {

class GlooCommunicator : public WireCommunicator {
 public:
  GlooCommunicator(std::shared_ptr<gloo::Context> context, const Deadlines& deadlines,
                   int ranks_a_task)
      : WireCommunicator(wire_), wire_(std::move(context), deadlines, ranks_a_task) {}

  void abort(std::string_view why) noexcept override { wire_.abort(why); }

 private:
  GlooWire wire_;
};

// "gloo+flat": gloo::allreduce.
class FlatCommunicator final : public GlooCommunicator {
 public:
  FlatCommunicator(std::shared_ptr<gloo::Context> context, const Deadlines& deadlines,
                   int ranks_a_task)
      : GlooCommunicator(context, deadlines, ranks_a_task),
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
