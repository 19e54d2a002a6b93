#include <algorithm>

#include "engine/device/cuda/kernels/elementwise.h"
#include "engine/device/cuda/program.h"

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
  const std::size_t numbers = numbers_ = aligned(samples * sizeof(std::int32_t));
  const std::size_t behind = 2 * numbers + aligned(sizeof(StepValues));
  const std::size_t slot_bytes = images + behind;
  memory_ = runtime_.device_memory(kSlots * slot_bytes);
  pinned_ = runtime_.pinned_memory(kSlots * behind);
  std::byte* at = memory_.data();
  for (std::size_t i = 0; i < kSlots; ++i, at += slot_bytes) {
    Slot& slot = slots_[i];
    slot.images = reinterpret_cast<std::uint8_t*>(at);
    slot.labels = reinterpret_cast<std::int32_t*>(at + images);
    slot.positions = reinterpret_cast<std::uint32_t*>(at + images + numbers);
    slot.step = reinterpret_cast<StepValues*>(at + images + 2 * numbers);
    slot.host = pinned_.data() + i * behind;
  }
}

void Staging::load(const Batch& batch) {
  slots_[slot_].used = compute_.mark();
  slot_ = (batch.slot < 0 ? slot_ + 1 : static_cast<std::size_t>(batch.slot)) % kSlots;
  Slot& slot = slots_[slot_];
  if (slot.copied.lane) copy_.wait_for(slot.copied);  // mostly of two steps ago: frees slot.host
  copy_.after(slot.used);
  const auto samples = static_cast<std::size_t>(batch.samples);
  if (samples > 0) {
    runtime_.copy(slot.images, batch.images, samples * elements_ * size_of(batch.image_type),
                  copy_.stream());
  }
  // In one copy, and not from pageable memory, for which the driver may wait for the stream.
  std::copy_n(batch.labels, samples, reinterpret_cast<std::int32_t*>(slot.host));
  if (batch.positions) {
    std::copy_n(batch.positions, samples, reinterpret_cast<std::uint32_t*>(slot.host + numbers_));
  }
  *reinterpret_cast<StepValues*>(slot.host + 2 * numbers_) = {batch.epoch, batch.dropout_key.low,
                                                              batch.dropout_key.high};
  runtime_.copy(slot.labels, slot.host, 2 * numbers_ + sizeof(StepValues), copy_.stream());
  slot.copied = copy_.mark();
  compute_.after(slot.copied);
}

// Also where load() threw before it marked the copies.
void Staging::wait_until_copied() const {
  copy_.drain();
}

}  // namespace paceline::cuda
