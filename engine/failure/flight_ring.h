// A replica's status and its last 256 collectives, kept where they outlive the process: the rank's
// flight recorder. `doctor --post-mortem` and the starter read it (flight_reader.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "engine/failure/flight_file.h"

namespace paceline {

// Calls cost some tens of nanoseconds, take no lock and allocate nothing. queue() and note_step()
// come from one thread, enter() and leave() of a collective from the one that runs it, anything
// else from any.
class FlightRing {
 public:
  struct Identity {
    int rank = 0, size = 1;  // of replicas
    int task = 0;            // of processes
    std::string host, attempt;
  };
  // In FOLDER/rank-R.flight, replacing an earlier run's; in memory alone without a folder, and
  // where the file cannot be made (why() then says so: no reason to end a run).
  FlightRing(const Identity& identity, const std::optional<std::filesystem::path>& folder);
  ~FlightRing();  // the file stays
  FlightRing(const FlightRing&) = delete;
  FlightRing& operator=(const FlightRing&) = delete;

  const std::string& why() const { return why_; }  // it is in memory alone, or empty

  // A collective is asked for. Returns its sequence number, from 0.
  std::uint64_t queue(FlightKind kind, std::string_view label, std::size_t bytes) noexcept;
  // It is queued to a GPU's stream, which runs it in its own time.
  void hand_over(std::uint64_t sequence) noexcept;
  // It runs on the calling thread, until leave().
  void enter(std::uint64_t sequence) noexcept;
  void leave(std::uint64_t sequence) noexcept;
  // A stream was seen to have ended it.
  void note_end(std::uint64_t sequence) noexcept;

  void note_step(std::uint64_t step) noexcept;
  void begin_wait(std::string_view label) noexcept;
  void end_wait() noexcept;
  void beat() noexcept;  // once a second or more often: the process is alive

  int rank() const noexcept { return file_->header.rank; }
  std::uint64_t entered() const noexcept { return file_->header.entered.load(); }
  std::uint64_t step() const noexcept { return file_->header.step.load(); }

  // What this replica is in the middle of, if anything.
  struct Wait {
    double seconds = 0;      // it has lasted
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
  std::atomic<std::uint64_t> inside_{0};  // 1 + the collective that runs; 0: none
};

}  // namespace paceline
