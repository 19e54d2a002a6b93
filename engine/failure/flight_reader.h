// Reads the flight rings of a run's replicas. The files are untrusted.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "engine/failure/flight_file.h"

namespace paceline {

struct Collective {
  std::uint64_t sequence = 0, step = 0, bytes = 0;  // step: from 1; 0: before the first
  FlightKind kind = FlightKind::barrier;
  FlightState state = FlightState::queued;
  std::string label;
  double queued = 0, started = 0, ended = 0;  // seconds since 1970; 0: not yet
};

struct Flight {
  int rank = 0, size = 1, task = 0, pid = 0;
  std::string host, attempt;
  double opened = 0, beat = 0;            // seconds since 1970
  double silent_from = 0, silent_to = 0;  // the last period without a beat; 0: none
  std::uint64_t entered = 0;              // collectives in total
  std::uint64_t step = 0;                 // current step
  std::string waits_at;                   // what the host waited for; may be empty
  double waits_since = 0;                 // seconds since 1970
  std::vector<Collective> recent;         // by sequence number, without torn entries

  // The last collective that it entered. Null: unknown.
  const Collective* last_entered() const;
  // The last beat before `when`.
  double last_beat(double when) const;
};

// Throws input for other files and other versions.
Flight read_flight(const std::filesystem::path& file);
// All readable rank-N.flight files of the folder, in rank order.
std::vector<Flight> read_flights(const std::filesystem::path& folder);

const char* to_string(FlightKind kind);
const char* to_string(FlightState state);

}  // namespace paceline
