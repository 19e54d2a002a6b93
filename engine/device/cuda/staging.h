// Copies a step's input to the device, in two slots: the copy lane fills one while the program
// computes on the other.
#pragma once

#include <array>
#include <cstdint>

#include "engine/device/cuda/kernels/elementwise.h"
#include "engine/device/cuda/lane.h"
#include "engine/device/device.h"

namespace paceline::cuda {

class Staging {
 public:
  // Slots for `batch` samples of `elements`. Runtime and lanes outlive it.
  Staging(Runtime& runtime, StreamLane& compute, StreamLane& copy, int batch, std::size_t elements);

  // Queues the copy of a batch to its slot, after the slot's last use, and makes the compute lane
  // wait for it.
  void load(const Batch& batch);
  // The slot and the content of the last batch.
  int slot() const { return static_cast<int>(slot_); }
  const std::uint8_t* images() const { return current().images; }
  const std::int32_t* labels() const { return current().labels; }
  const std::uint32_t* positions() const { return current().positions; }
  const StepValues* step() const { return current().step; }

  // Blocks until the last batch is copied, so the caller may overwrite it.
  void wait_until_copied() const;

  std::size_t bytes() const { return memory_.bytes(); }

 private:
  static constexpr std::size_t kSlots = 2;
  struct Slot {
    std::uint8_t* images;
    std::int32_t* labels;
    std::uint32_t* positions;
    StepValues* step;
    std::byte* host;  // pinned: labels, positions and step, as they lie on the device
    Marker copied, used;
  };
  const Slot& current() const { return slots_[slot_]; }

  Runtime& runtime_;
  StreamLane &compute_, &copy_;
  std::size_t elements_, numbers_;  // of a sample; bytes of all labels, or positions
  Memory memory_, pinned_;
  std::array<Slot, kSlots> slots_{};
  std::size_t slot_ = 0;
};

}  // namespace paceline::cuda
