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

// "mpi+bf16", "gloo+fp16".

namespace {

class CastBackend final : public Backend {
 public:
  CastBackend(std::unique_ptr<Backend> inner, DType travels_as, std::string_view wrapper)
      : inner_(std::move(inner)),
        travels_as_(travels_as),
        name_(fmt::format("{}+{}", inner_->name(), wrapper)) {
    if (dynamic_cast<CastBackend*>(inner_.get()) == nullptr) return;
    throw Error(ErrorKind::usage, fmt::format("{} casts twice", name_), "",
                "choose one of +bf16 and +fp16");
  }

  std::string_view name() const override { return name_; }
  Support serves(const Membership& membership) const override { return inner_->serves(membership); }
  std::vector<std::unique_ptr<Communicator>> connect(const Membership& membership) override {
    auto communicators = inner_->connect(membership);
    for (auto& communicator : communicators) {
      if (!communicator->reduces(MemoryKind::host)) {
        throw Error(ErrorKind::usage, fmt::format("{} cannot cast in GPU memory", name_), "",
                    "leave the wrapper out: gradients of --precision bf16 are bf16 already");
      }
      communicator = std::make_unique<CastCommunicator>(std::move(communicator), travels_as_);
    }
    return communicators;
  }
  // In fp32: what a program has that does not cast.
  std::string library() const override { return inner_->library(); }
  std::string description() const override {
    return fmt::format("{}; fp32 travels as {}", inner_->description(),
                       paceline::to_string(travels_as_));
  }

 private:
  std::unique_ptr<Backend> inner_;
  DType travels_as_;
  std::string name_;
};

}  // namespace

std::unique_ptr<Backend> make_bf16_wrapper(std::unique_ptr<Backend> inner) {
  return std::make_unique<CastBackend>(std::move(inner), DType::bf16, "bf16");
}

std::unique_ptr<Backend> make_fp16_wrapper(std::unique_ptr<Backend> inner) {
  return std::make_unique<CastBackend>(std::move(inner), DType::f16, "fp16");
}

}  // namespace paceline
