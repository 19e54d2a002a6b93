// Records collectives in the replica's flight ring: a sequence number, the times of request, start
// and end, and the step.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/comm/communicator.h"
#include "engine/failure/flight_ring.h"

namespace paceline {

class LivenessConnection;
class StallMonitor;

// Shared by the recorded communicators of a process. Everything outlives them.
struct Recording {
  std::vector<std::shared_ptr<FlightRing>> rings;  // one per replica
  LivenessConnection* control = nullptr;           // receives this process's progress; may be null
  StallMonitor* stall_monitor = nullptr;           // receives aborts; may be null
  std::atomic<bool> settled{false};                // the first step has ended: see Deadlines
};

class RecordedCommunicator final : public Communicator, private Supervision {
 public:
  // `replica` is an index within this process.
  RecordedCommunicator(std::unique_ptr<Communicator> inner, std::shared_ptr<Recording> recording,
                       std::size_t replica);

  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  Memory allocate(std::size_t bytes) override { return inner_->allocate(bytes); }
  bool reduces(MemoryKind kind) const override { return inner_->reduces(kind); }
  bool sums_from_host() const override { return inner_->sums_from_host(); }
  bool can_sum_in_graphs() const override { return inner_->can_sum_in_graphs(); }
  void all_reduce(void* data, std::size_t count, DType type, Lane& lane,
                  std::string_view label) override;
  void broadcast(void* data, std::size_t bytes, int root) override;
  void all_gather(const void* mine, std::size_t bytes, void* all) override;
  void barrier() override;
  Supervision& supervision() override { return *this; }
  void abort(std::string_view why) noexcept override;

 private:
  void throw_if_ended() override { inner_->supervision().throw_if_ended(); }
  void begin_wait(std::string_view label) noexcept override;
  void end_wait() noexcept override;
  void note_own_wait(std::string_view label) noexcept override;
  void note_step(std::uint64_t step) noexcept override;
  void note_last_step(std::uint64_t step) noexcept override;

  void enter(std::uint64_t sequence) noexcept;
  void note_progress() noexcept;
  void all_reduce_on_stream(void* data, std::size_t count, DType type, Lane& lane,
                            std::string_view label, std::uint64_t sequence);
  void note_ends(const Lane& lane);  // throws the error of the lane

  std::unique_ptr<Communicator> inner_;
  std::shared_ptr<Recording> recording_;
  FlightRing& ring_;

  // For a stream: collectives that were not yet seen to end, oldest first.
  struct Pending {
    std::uint64_t sequence;
    Marker end;
  };
  static constexpr std::size_t kMostPending = 64;
  std::array<Pending, kMostPending> pending_{};
  std::size_t first_pending_ = 0, pendings_ = 0;
};

}  // namespace paceline
