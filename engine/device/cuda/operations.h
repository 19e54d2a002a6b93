// Helpers for launching kernels.
#pragma once

#include <algorithm>

#include "engine/core/error.h"
#include "engine/device/cuda/program.h"

namespace paceline::cuda {

template <typename Body>
void CudaProgram::with_type(DType type, Body body) const {
  switch (type) {
    case DType::f32:
      return body(float{});
    case DType::bf16:
      return body(Bf16{});
    case DType::f16:
      return body(Half{});
    default:
      throw Error(ErrorKind::internal, "no planes of this type", std::string(to_string(type)));
  }
}

// One thread per item, as far as the device can hold them.
template <typename Kernel>
void CudaProgram::run_on(Stream stream, const Kernel& kernel, std::size_t items) {
  if (items == 0) return;
  constexpr std::size_t kBlocksEach = 16;  // blocks per multiprocessor, in sequence
  const std::size_t most = kBlocksEach * runtime_.multiprocessors();
  const std::size_t blocks = std::min((items + kThreads - 1) / kThreads, most);
  runtime_.launch(kernel, {static_cast<unsigned>(blocks), kThreads, 0}, stream);
}

template <typename Row>
void CudaProgram::run_sums_on(Stream stream, const Row& row, std::size_t rows, int channels) {
  const ChannelTiling t = tiling(rows, channels);
  runtime_.launch(
      ChannelSums<Row>{t, floats(partials_), reinterpret_cast<unsigned*>(counters_.data()), row},
      {t.splits * t.tiles(), ChannelTiling::kThreads, ChannelSums<Row>::shared_bytes()}, stream);
}

// Buffers for sums over a plane's channels, for a whole batch.
template <typename Row>
void CudaProgram::need_sums(const Shape& shape) {
  const auto channels = static_cast<std::size_t>(shape.channels);
  const ChannelTiling t = tiling(whole_batch() * shape.elements() / channels, shape.channels);
  partial_floats_ = std::max(partial_floats_, Row::kSums * t.splits * channels);
  tiles_ = std::max<std::size_t>(tiles_, t.tiles());
}

}  // namespace paceline::cuda
