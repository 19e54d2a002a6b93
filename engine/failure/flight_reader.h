// What the flight rings of a run's replicas say, from their files: these are read as untrusted.
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
  double silent_from = 0, silent_to = 0;  // its last span without a beat; 0: none
  std::uint64_t entered = 0;              // collectives, ever
  std::uint64_t step = 0;                 // that it was at
  std::string waits_at;                   // what the host waited for, or empty
  double waits_since = 0;                 // seconds since 1970
  std::vector<Collective> recent;         // by sequence number; torn ones are left out

  // The last collective that it came to. Null: none that is known.
  const Collective* last_entered() const;
  // Its last beat before `when`.
  double last_beat(double when) const;
};

// Throws input for what is no flight ring, or one of another version.
Flight read_flight(const std::filesystem::path& file);
// Every rank-N.flight of the folder that can be read, in rank order.
std::vector<Flight> read_flights(const std::filesystem::path& folder);

const char* name_of(FlightKind kind);
const char* name_of(FlightState state);

}  // namespace paceline
