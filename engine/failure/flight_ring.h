// The flight recorder of a replica: its status and last 256 collectives, in a file that survives
// the process. `doctor --post-mortem` and the starter read it (flight_reader.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "engine/failure/flight_reader.h"

namespace paceline {

// Calls take tens of nanoseconds, without locks or allocations. Call queue() and note_step() from
// one thread, enter() and leave() of a collective from the thread that runs it, and everything else
// from any thread.
class FlightRing {
 public:
  struct Identity {
    int rank = 0, size = 1;  // of replicas
    int task = 0;            // of processes
    std::string host, attempt;
  };
  // Uses FOLDER/rank-R.flight, and replaces an earlier run's file. Uses memory only without a
  // folder, or if the file cannot be created: why() then says why, and the run continues.
  FlightRing(const Identity& identity, const std::optional<std::filesystem::path>& folder);
  ~FlightRing();  // the file stays
  FlightRing(const FlightRing&) = delete;
  FlightRing& operator=(const FlightRing&) = delete;

  const std::string& why() const { return why_; }  // why it is in memory only; empty: it has a file

  // Records the request for a collective. Returns its sequence number, from 0.
  std::uint64_t queue(FlightKind kind, std::string_view label, std::size_t bytes) noexcept;
  // The collective is queued on a GPU stream.
  void hand_over(std::uint64_t sequence) noexcept;
  // The collective runs on the calling thread, until leave().
  void enter(std::uint64_t sequence) noexcept;
  void leave(std::uint64_t sequence) noexcept;
  // The collective was seen to have ended on its stream.
  void note_end(std::uint64_t sequence) noexcept;

  void note_step(std::uint64_t step) noexcept;
  void note_last_step(std::uint64_t step) noexcept;
  void begin_wait(std::string_view label) noexcept;
  void end_wait() noexcept;
  void beat() noexcept;  // call at least once a second: the process is alive

  int rank() const noexcept { return file_->header.rank; }
  std::uint64_t entered() const noexcept { return file_->header.entered.load(); }
  std::uint64_t step() const noexcept { return file_->header.step.load(); }

  // What this replica is waiting for, if anything.
  struct Wait {
    double seconds = 0;      // duration so far
    std::uint64_t step = 0;  // from 1; 0: before the first
    std::string label;
  };
  std::optional<Wait> wait() const;

 private:
  void map(const std::optional<std::filesystem::path>& folder, int rank);
  void* map_file(const std::filesystem::path& folder, int rank);
  FlightEntry& entry(std::uint64_t sequence) const noexcept {
    return file_->entries[sequence % kFlightEntries];
  }
  std::int64_t now() const noexcept;

  FlightFile* file_ = nullptr;
  std::string why_;
  std::int64_t offset_ns_ = 0;            // from the steady clock to time since 1970
  std::atomic<std::uint64_t> inside_{0};  // 1 + the running collective; 0: none
};

}  // namespace paceline
