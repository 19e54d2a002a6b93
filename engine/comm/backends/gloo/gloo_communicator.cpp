#include "engine/comm/backends/gloo/gloo_communicator.h"

#include <gloo/allreduce.h>
#include <gloo/common/error.h>

#include <chrono>
#include <cstring>

#include "engine/comm/algorithms/sum.h"
#include "engine/comm/checks/call_timeout.h"
#include "engine/core/error.h"

namespace paceline::gloo_backend {

namespace {}  // namespace

void GlooCommunicator::all_reduce(void* data, std::size_t count, DType type, Lane& lane,
                                  std::string_view label) {
  if (size() == 1 || count == 0) return;
  lane.submit([this, data, count, type, label] {
    reduce(static_cast<std::byte*>(data), count, type, label);
  });
}

void GlooCommunicator::reduce(std::byte* data, std::size_t count, DType type,
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
    const std::string_view message = error.what();
    if (message.find("imed out") != std::string_view::npos) {
      throw timeout_error("gloo::allreduce", deadlines_, control_, label).on_rank(group_.name());
    }
    throw Error(ErrorKind::peer_lost, "a connection to another rank broke", std::string(label),
                "see the other ranks' errors")
        .on_rank(group_.name());
  }
}

}  // namespace paceline::gloo_backend
