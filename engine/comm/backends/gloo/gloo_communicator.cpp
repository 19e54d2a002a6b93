#include "engine/comm/backends/gloo/gloo_communicator.h"

#include <fmt/format.h>
#include <gloo/allreduce.h>
#include <gloo/common/error.h>

#include <chrono>
#include <cstring>

#include "engine/comm/algorithms/sum.h"
#include "engine/core/error.h"

namespace paceline::gloo_backend {

namespace {

// What Gloo's exception in a sum with `peer` means.
[[noreturn]] void throw_translated(const gloo::Exception& error, int rank, int peer,
                                   const Deadlines& deadlines, std::string_view label) {
  const std::string_view words = error.what();
  if (words.find("imed out") == std::string_view::npos) {
    throw Error(ErrorKind::peer_lost, fmt::format("the connection to rank {} broke", peer),
                std::string(label), "see that rank's error")
        .on_rank(rank);
  }
  throw Error(ErrorKind::stall,
              fmt::format("rank {} came but did not continue within {:g} s", peer,
                          deadlines.limit_seconds()),
              std::string(label), "see which rank it waited for")
      .on_rank(rank);
}

}  // namespace

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
      std::chrono::milliseconds(static_cast<std::int64_t>(deadlines_.limit_seconds() * 1000)));
  try {
    gloo::allreduce(options);
  } catch (const gloo::Exception& error) {
    const int left = (rank() + size() - 1) % size();
    throw_translated(error, rank() * ranks_a_task_, left * ranks_a_task_, deadlines_, label);
  }
}

}  // namespace paceline::gloo_backend
