#include "engine/comm/algorithms/wire_communicator.h"

#include <algorithm>
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

// Bruck's algorithm. Member m numbers the blocks from its own: block k belongs to member m + k.
// When it has the first d blocks, it receives up to d more from member m + d. Each member first
// sends its own block to all members that will wait for it, so that a member that sent nothing has
// not come.
void all_gather_over(Wire& wire, std::span<std::byte> all, std::string_view label) {
  const int size = wire.size(), rank = wire.rank();
  const std::size_t bytes = all.size() / static_cast<std::size_t>(size);
  const auto blocks = [&](int begin, int end) {
    return all.subspan(static_cast<std::size_t>(begin) * bytes,
                       static_cast<std::size_t>(end - begin) * bytes);
  };
  wire.begin(all, label);
  std::memmove(all.data(), blocks(rank, rank + 1).data(), bytes);
  std::size_t sends = 0;
  const auto send_before = [&](int distance, int begin, int end) {
    wire.send((rank - distance + size) % size, blocks(begin, end));
    ++sends;
  };
  for (int d = 1; d < size; d *= 2) send_before(d, 0, 1);
  for (int d = 1; d < size; d *= 2) {
    const int more = std::min(d, size - d);
    send_before(d, 1, more);
    wire.receive((rank + d) % size, blocks(d, d + 1));
    wire.receive((rank + d) % size, blocks(d + 1, d + more));
    wire.wait_received();
    wire.wait_received();
  }
  wire.wait_sent(sends);
  std::rotate(all.begin(), blocks(size - rank, size).begin(), all.end());
}

}  // namespace paceline
