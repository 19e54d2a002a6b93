#include "engine/comm/wrappers/staged/staged_communicator.h"

#include <algorithm>
#include <utility>

namespace paceline {

namespace {

constexpr std::size_t kLeastBytes = std::size_t{4} << 20;  // where nobody asked for an arena

}  // namespace

StagedCommunicator::StagedCommunicator(Communicator& base, DeviceCopies copies)
    : base_(base), copies_(std::move(copies)) {
  copied_.reserve(kMostBytes / kPieceBytes);
}

Memory StagedCommunicator::allocate(std::size_t bytes) {
  if (size() == 1) return {};
  const std::size_t staged = std::clamp(bytes, std::size_t{4096}, kMostBytes);
  buffer_ = base_.allocate(staged);
  if (buffer_.bytes() == 0) {
    buffer_ = copies_.pinned(staged);
  } else if (copies_.pin) {
    pinned_ = copies_.pin(buffer_.data(), buffer_.bytes());
  }
  return {};
}

void StagedCommunicator::all_reduce(void* data, std::size_t count, DType type, Lane& lane,
                                    std::string_view label) {
  if (size() == 1) return;
  if (buffer_.bytes() == 0) buffer_ = copies_.pinned(kLeastBytes);
  const std::size_t element = size_of(type), most = buffer_.bytes() / element;
  auto* bytes = static_cast<std::byte*>(data);
  for (std::size_t at = 0; at < count; at += most) {
    reduce_staged(bytes + at * element, std::min(most, count - at), type, lane, label);
  }
}

// Reduces at most what the buffer holds.
void StagedCommunicator::reduce_staged(std::byte* data, std::size_t count, DType type, Lane& lane,
                                       std::string_view label) {
  const std::size_t element = size_of(type), most = kPieceBytes / element;
  std::byte* const host = buffer_.data();
  to_host_.after(lane.mark());
  copied_.clear();
  for (std::size_t at = 0; at < count; at += most) {
    const std::size_t offset = at * element, bytes = std::min(most, count - at) * element;
    to_host_.submit([=, this] { copy_out(host + offset, data + offset, bytes); });
    copied_.push_back(to_host_.mark());
  }
  for (std::size_t piece = 0; piece < copied_.size(); ++piece) {
    const std::size_t at = piece * most, n = std::min(most, count - at), offset = at * element;
    lane.after(copied_[piece]);
    lane.submit([this] { rethrow(); });
    base_.all_reduce(host + offset, n, type, lane, label);
    to_device_.after(lane.mark());
    to_device_.submit([=, this] { copy_back(data + offset, host + offset, n * element); });
  }
  lane.after(to_device_.mark());
  lane.submit([this] { rethrow(); });
}

void StagedCommunicator::copy_out(std::byte* host, const std::byte* device,
                                  std::size_t bytes) noexcept {
  guarded([&] { copies_.to_host(host, device, bytes); });
}

void StagedCommunicator::copy_back(std::byte* device, const std::byte* host,
                                   std::size_t bytes) noexcept {
  guarded([&] { copies_.to_device(device, host, bytes); });
}

// An error is thrown on the caller's lane, where whoever drains it looks for errors; copies behind
// it are left out.
template <typename Copy>
void StagedCommunicator::guarded(const Copy& copy) noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (error_) return;
  }
  try {
    copy();
  } catch (...) {
    const std::lock_guard lock(mutex_);
    error_ = std::current_exception();
  }
}

void StagedCommunicator::rethrow() {
  const std::lock_guard lock(mutex_);
  if (error_) std::rethrow_exception(error_);
}

}  // namespace paceline
