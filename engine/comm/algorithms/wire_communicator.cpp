#include "engine/comm/algorithms/wire_communicator.h"

#include <cstring>
#include <vector>

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

// Members are numbered from the root on. Member k gets the data from k without its highest bit and
// then sends it to k + 2^j for each greater 2^j.
void broadcast_over(Wire& wire, std::span<std::byte> data, int root) {
  const int size = wire.size(), number = (wire.rank() - root + size) % size;
  const auto member = [&](int other) { return (other + root) % size; };
  wire.begin(data, "broadcast");
  int bit = 1;
  while (bit <= number) bit <<= 1;
  if (number > 0) {
    wire.receive(member(number - (bit >> 1)), data);
    wire.wait_received();
  }
  std::size_t sends = 0;
  for (; number + bit < size; bit <<= 1) {
    wire.send(member(number + bit), data);
    ++sends;
  }
  wire.wait_sent(sends);
}

void all_gather_over(Wire& wire, std::span<std::byte> all, std::string_view label) {
  const auto size = static_cast<std::size_t>(wire.size());
  const auto rank = static_cast<std::size_t>(wire.rank());
  const std::size_t bytes = all.size() / size;
  const auto block = [&](std::size_t member) { return all.subspan(member % size * bytes, bytes); };
  wire.begin(all, label);
  for (std::size_t step = 0; step + 1 < size; ++step) {
    wire.receive(static_cast<int>((rank + size - 1) % size), block(rank + size - step - 1));
    wire.send(static_cast<int>((rank + 1) % size), block(rank + size - step));
    wire.wait_received();
  }
  wire.wait_sent(size - 1);
}

}  // namespace paceline
