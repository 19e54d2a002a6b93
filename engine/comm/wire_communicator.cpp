#include "engine/comm/wire_communicator.h"

#include <cstring>
#include <vector>

#include "engine/comm/wire_collectives.h"

namespace paceline {

void WireCommunicator::all_reduce(void* data, std::size_t count, DType type, Lane& lane,
                                  std::string_view label) {
  if (size() == 1) return;
  lane.submit([this, data, count, type, label] {
    ring_.all_reduce(static_cast<std::byte*>(data), count, type, label);
  });
}

void WireCommunicator::broadcast(void* data, std::size_t bytes, int root) {
  broadcast_over(wire_, {static_cast<std::byte*>(data), bytes}, root);
}

void WireCommunicator::all_gather(const void* mine, std::size_t bytes, void* all) {
  auto* to = static_cast<std::byte*>(all);
  const std::span<std::byte> blocks(to, bytes * static_cast<std::size_t>(size()));
  std::memcpy(to + bytes * static_cast<std::size_t>(rank()), mine, bytes);
  all_gather_over(wire_, blocks, "all-gather");
}

void WireCommunicator::barrier() {
  std::vector<std::byte> here(static_cast<std::size_t>(size()));
  all_gather_over(wire_, here, "barrier");
}

}  // namespace paceline
