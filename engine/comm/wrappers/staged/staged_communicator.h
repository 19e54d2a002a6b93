// Reduces GPU gradients on the host: copies them to the host, reduces with a backend that only
// handles host memory, and copies them back.
//
//   to_host  lane: piece 0 | piece 1 | piece 2 |
//   lane         :         | sum 0   | sum 1   | sum 2   |
//   to_device lane:                  | piece 0 | piece 1 | piece 2
//
// Pieces have kPieceBytes, so that copies and sums of one bucket overlap.
#pragma once

#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <vector>

#include "engine/comm/communicator.h"

namespace paceline {

// The device functions for one replica's GPU. The copies block, and are callable from any thread.
struct DeviceCopies {
  std::function<void(void* host, const void* device, std::size_t bytes)> to_host;
  std::function<void(void* device, const void* host, std::size_t bytes)> to_device;
  // Allocates pinned host memory.
  std::function<Memory(std::size_t bytes)> pinned;
  // Pins host memory that a backend owns, until the returned object is destroyed. May be empty.
  std::function<Memory(void* data, std::size_t bytes)> pin = {};
};

class StagedCommunicator final : public Communicator {
 public:
  static constexpr std::size_t kPieceBytes = std::size_t{2} << 20;
  static constexpr std::size_t kMostBytes = std::size_t{64} << 20;  // staged at the same time

  // `base` outlives this object.
  StagedCommunicator(Communicator& base, DeviceCopies copies);

  int rank() const override { return base_.rank(); }
  int size() const override { return base_.size(); }
  // Always empty: gradients stay in device memory. The backend's best memory, if any, becomes the
  // staging buffer.
  Memory allocate(std::size_t bytes) override;
  bool reduces(MemoryKind kind) const override { return kind == MemoryKind::device; }
  bool sums_from_host() const override { return true; }
  // `lane` is a host thread's, or inline; host functions of a stream must not copy. If a sum fails,
  // copies from and to `data` may continue until this object is destroyed.
  void all_reduce(void* data, std::size_t count, DType type, Lane& lane,
                  std::string_view label) override;
  void broadcast(void* data, std::size_t bytes, int root) override {
    base_.broadcast(data, bytes, root);
  }
  void all_gather(const void* mine, std::size_t bytes, void* all) override {
    base_.all_gather(mine, bytes, all);
  }
  void barrier() override { base_.barrier(); }
  Supervision& supervision() override { return base_.supervision(); }
  void abort(std::string_view why) noexcept override { base_.abort(why); }

 private:
  void reduce_staged(std::byte* data, std::size_t count, DType type, Lane& lane,
                     std::string_view label);
  void copy_out(std::byte* host, const std::byte* device, std::size_t bytes) noexcept;
  void copy_back(std::byte* device, const std::byte* host, std::size_t bytes) noexcept;
  template <typename Copy>
  void guarded(const Copy& copy) noexcept;
  void rethrow();

  Communicator& base_;
  DeviceCopies copies_;
  Memory buffer_, pinned_;  // unpinned before the memory is freed
  std::vector<Marker> copied_;
  std::mutex mutex_;
  std::exception_ptr error_;  // the first error of a copy
  ThreadLane to_host_, to_device_;
};

}  // namespace paceline
