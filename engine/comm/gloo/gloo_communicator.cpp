#include "engine/comm/gloo/gloo_communicator.h"

#include <gloo/allreduce.h>
#include <gloo/common/error.h>

#include <chrono>
#include <cstring>
#include <vector>

#include "engine/comm/sum.h"
#include "engine/comm/wire_collectives.h"

namespace paceline::gloo_backend {

void GlooCommunicator::all_reduce(void* data, std::size_t count, DType type, Lane& lane,
                                  std::string_view label) {
  if (size() == 1) return;
  lane.submit([this, data, count, type, label] {
    ring_.all_reduce(static_cast<std::byte*>(data), count, type, label);
  });
}

void GlooCommunicator::broadcast(void* data, std::size_t bytes, int root) {
  broadcast_over(wire_, {static_cast<std::byte*>(data), bytes}, root);
}

void GlooCommunicator::all_gather(const void* mine, std::size_t bytes, void* all) {
  auto* to = static_cast<std::byte*>(all);
  const std::span<std::byte> blocks(to, bytes * static_cast<std::size_t>(size()));
  std::memcpy(to + bytes * static_cast<std::size_t>(rank()), mine, bytes);
  all_gather_over(wire_, blocks, "all-gather");
}

void GlooCommunicator::barrier() {
  std::vector<std::byte> here(static_cast<std::size_t>(size()));
  all_gather_over(wire_, here, "barrier");
}

void FlatCommunicator::all_reduce(void* data, std::size_t count, DType type, Lane& lane,
                                  std::string_view label) {
  if (size() == 1 || count == 0) return;
  lane.submit([this, data, count, type, label] {
    reduce(static_cast<std::byte*>(data), count, type, label);
  });
}

void FlatCommunicator::reduce(std::byte* data, std::size_t count, DType type,
                              std::string_view label) {
  check_summable(type);
  gloo::AllreduceOptions options(context_);
  switch (size_of(type)) {
    case 2:
      options.setOutput(reinterpret_cast<std::uint16_t*>(data), count);
      break;
    case 4:
      options.setOutput(reinterpret_cast<float*>(data), count);
      break;
    default:
      options.setOutput(reinterpret_cast<double*>(data), count);
  }
  options.setAlgorithm(gloo::AllreduceOptions::Algorithm::RING);
  options.setReduceFunction([type](void* sum, const void* a, const void* b, std::size_t n) {
    if (sum != a) std::memcpy(sum, a, n * size_of(type));
    add_to(static_cast<std::byte*>(sum), static_cast<const std::byte*>(b), n, type);
  });
  options.setTimeout(
      std::chrono::milliseconds(static_cast<std::int64_t>(deadlines_.abort_seconds * 1000)));
  try {
    gloo::allreduce(options);
  } catch (const gloo::Exception& error) {
    const int left = (rank() + size() - 1) % size();
    throw_translated(error, rank() * ranks_a_task_, left * ranks_a_task_, true, deadlines_, label);
  }
}

}  // namespace paceline::gloo_backend
