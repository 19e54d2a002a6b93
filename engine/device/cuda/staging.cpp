#include "engine/device/cuda/staging.h"

#include <algorithm>

namespace paceline::cuda {

namespace {

constexpr std::size_t kAlignment = 256;

std::size_t aligned(std::size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

Staging::Staging(Runtime& runtime, StreamLane& compute, StreamLane& copy, int batch,
                 std::size_t elements)
    : runtime_(runtime), compute_(compute), copy_(copy), elements_(elements) {
  const auto samples = static_cast<std::size_t>(batch);
  const std::size_t images = aligned(samples * elements * sizeof(float));
  const std::size_t numbers = aligned(samples * sizeof(std::int32_t));
  const std::size_t slot_bytes = images + 2 * numbers + aligned(sizeof(StepValues));
  memory_ = runtime_.device_memory(kSlots * slot_bytes);
  pinned_ = runtime_.pinned_memory(kSlots * sizeof(StepValues));
  std::byte* at = memory_.data();
  for (std::size_t i = 0; i < kSlots; ++i, at += slot_bytes) {
    Slot& slot = slots_[i];
    slot.images = reinterpret_cast<std::uint8_t*>(at);
    slot.labels = reinterpret_cast<std::int32_t*>(at + images);
    slot.positions = reinterpret_cast<std::uint32_t*>(at + images + numbers);
    slot.step = reinterpret_cast<StepValues*>(at + images + 2 * numbers);
    slot.host_step = reinterpret_cast<StepValues*>(pinned_.data()) + i;
  }
}

void Staging::load(const Batch& batch) {
  slots_[slot_].used = compute_.mark();
  slot_ = (batch.slot < 0 ? slot_ + 1 : static_cast<std::size_t>(batch.slot)) % kSlots;
  Slot& slot = slots_[slot_];
  if (slot.copied.lane) copy_.wait_for(slot.copied);  // mostly of two steps ago: frees host_step
  copy_.after(slot.used);
  const auto samples = static_cast<std::size_t>(batch.samples);
  const auto send = [&](void* to, const void* from, std::size_t bytes) {
    if (bytes > 0) runtime_.copy(to, from, bytes, copy_.stream());
  };
  send(slot.images, batch.images, samples * elements_ * size_of(batch.image_type));
  send(slot.labels, batch.labels, samples * sizeof(std::int32_t));
  if (batch.positions) send(slot.positions, batch.positions, samples * sizeof(std::uint32_t));
  *slot.host_step = {batch.epoch, batch.dropout_key.low, batch.dropout_key.high};
  send(slot.step, slot.host_step, sizeof(StepValues));
  slot.copied = copy_.mark();
  compute_.after(slot.copied);
}

// Also where load() threw before it marked the copies.
void Staging::wait_until_copied() const {
  copy_.drain();
}

}  // namespace paceline::cuda
