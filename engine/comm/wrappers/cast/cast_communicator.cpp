#include "engine/comm/wrappers/cast/cast_communicator.h"

#include <algorithm>
#include <utility>

#include "engine/core/half.h"

namespace paceline {

namespace {

constexpr std::size_t kLeastBytes = std::size_t{1} << 20;  // for data outside any arena

void narrow(const float* from, std::uint16_t* to, std::size_t count, DType type) {
  type == DType::bf16 ? to_bf16(from, to, count) : to_f16(from, to, count);
}

void widen(const std::uint16_t* from, float* to, std::size_t count, DType type) {
  type == DType::bf16 ? from_bf16(from, to, count) : from_f16(from, to, count);
}

}  // namespace

CastCommunicator::CastCommunicator(std::unique_ptr<Communicator> inner, DType travels_as)
    : inner_(std::move(inner)), travels_as_(travels_as) {}

Memory CastCommunicator::allocate(std::size_t bytes) {
  if (size() == 1) return {};
  const std::size_t half = std::max(bytes / 2, kLeastBytes);
  travelling_ = inner_->allocate(half);
  if (travelling_.bytes() == 0) travelling_ = host_memory(half);
  return {};
}

void CastCommunicator::all_reduce(void* data, std::size_t count, DType type, Lane& lane,
                                  std::string_view label) {
  if (size() == 1) return;
  if (type != DType::f32) return inner_->all_reduce(data, count, type, lane, label);
  if (travelling_.bytes() == 0) travelling_ = host_memory(kLeastBytes);
  auto* small = reinterpret_cast<std::uint16_t*>(travelling_.data());
  const std::size_t most = travelling_.bytes() / sizeof *small;
  for (std::size_t at = 0; at < count; at += most) {
    auto* part = static_cast<float*>(data) + at;
    const std::size_t n = std::min(most, count - at);
    const DType as = travels_as_;
    lane.submit([=] { narrow(part, small, n, as); });
    inner_->all_reduce(small, n, as, lane, label);
    lane.submit([=] { widen(small, part, n, as); });
  }
}

}  // namespace paceline
