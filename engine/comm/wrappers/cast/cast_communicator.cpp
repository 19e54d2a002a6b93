#include "engine/comm/wrappers/cast/cast_communicator.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "engine/comm/backend.h"
#include "engine/core/dtype.h"
#include "engine/core/error.h"

namespace paceline {

namespace {

constexpr std::size_t kLeastBytes = std::size_t{1} << 20;  // for data outside any arena

class CastBackend final : public Backend {
 public:
  explicit CastBackend(std::unique_ptr<Backend> inner)
      : inner_(std::move(inner)), name_(fmt::format("{}+bf16", inner_->name())) {}

  std::string_view name() const override { return name_; }
  Support serves(const Membership& membership) const override { return inner_->serves(membership); }
  std::vector<std::unique_ptr<Communicator>> connect(const Membership& membership) override {
    auto communicators = inner_->connect(membership);
    for (auto& communicator : communicators) {
      if (!communicator->reduces(MemoryKind::host)) {
        throw usage_error(fmt::format("{} cannot cast in GPU memory", name_), "",
                          "leave the wrapper out: gradients of --precision bf16 are bf16 already");
      }
      communicator = std::make_unique<CastCommunicator>(std::move(communicator));
    }
    return communicators;
  }
  // In fp32: what a program has that does not cast.
  std::string library() const override { return inner_->library(); }
  std::string description() const override {
    return fmt::format("{}; fp32 travels as bf16", inner_->description());
  }

 private:
  std::unique_ptr<Backend> inner_;
  std::string name_;
};

}  // namespace

CastCommunicator::CastCommunicator(std::unique_ptr<Communicator> inner)
    : inner_(std::move(inner)) {}

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
    lane.submit([=] { to_bf16(part, small, n); });
    inner_->all_reduce(small, n, DType::bf16, lane, label);
    lane.submit([=] { from_bf16(small, part, n); });
  }
}

// "mpi+bf16".
std::unique_ptr<Backend> make_bf16_wrapper(std::unique_ptr<Backend> inner) {
  return std::make_unique<CastBackend>(std::move(inner));
}

}  // namespace paceline
