#include "engine/failure/flight_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "engine/core/error.h"
#include "engine/core/json.h"
#include "engine/core/log.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

double to_seconds(std::int64_t nanoseconds) {
  return static_cast<double>(nanoseconds) * 1e-9;
}

// Up to the first zero; what cannot be printed becomes a question mark.
template <std::size_t size>
std::string trim_padding(const std::array<char, size>& bytes) {
  std::string text(bytes.data(), strnlen(bytes.data(), size));
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c > 0x7e; }, '?');
  return text;
}

[[noreturn]] void refuse(const std::filesystem::path& file, const std::string& why) {
  throw input_error(why, file.string(), "move it away");
}

void check(const FlightHeader& header, const std::filesystem::path& file) {
  if (header.magic != kFlightMagic) refuse(file, "is not a flight ring");
  const bool layout = header.version == kFlightVersion &&
                      header.header_bytes == sizeof(FlightHeader) &&
                      header.entry_bytes == sizeof(FlightEntry) && header.entries == kFlightEntries;
  if (!layout) refuse(file, fmt::format("is a flight ring of version {}", header.version));
  const bool sane = header.size >= 1 && header.size <= kMostRanks && header.rank >= 0 &&
                    header.rank < header.size && header.task >= 0 && header.task < header.size;
  if (!sane) refuse(file, "is a damaged flight ring");
}

std::optional<Collective> find_collective(const FlightEntry& entry) {
  Collective collective;
  const std::uint64_t stamp = entry.stamp.load();
  const std::uint32_t kind = entry.kind.load(), state = entry.state.load();
  if (stamp == 0 || kind < 1 || kind > 4 || state < 1 || state > 3) return std::nullopt;
  collective.sequence = stamp - 1;
  collective.step = entry.step.load();
  collective.bytes = entry.bytes.load();
  collective.kind = static_cast<FlightKind>(kind);
  collective.state = static_cast<FlightState>(state);
  collective.label = entry.label.get();
  collective.queued = to_seconds(entry.queued_ns.load());
  collective.started = to_seconds(entry.started_ns.load());
  collective.ended = to_seconds(entry.ended_ns.load());
  return collective;
}

}  // namespace

const Collective* Flight::last_entered() const {
  if (entered == 0) return nullptr;
  const auto found = std::ranges::find_if(
      recent, [&](const Collective& collective) { return collective.sequence == entered - 1; });
  return found == recent.end() ? nullptr : &*found;
}

double Flight::last_beat(double when) const {
  if (beat <= when) return beat;
  return silent_from <= when && when < silent_to ? silent_from : when;
}

Flight read_flight(const std::filesystem::path& file) {
  const std::string bytes = read_text(file, 2 * sizeof(FlightFile));
  if (bytes.size() != sizeof(FlightFile)) refuse(file, "does not have the size of a flight ring");
  const auto content = std::make_unique<FlightFile>();
  std::memcpy(static_cast<void*>(content.get()), bytes.data(), sizeof(FlightFile));
  const FlightHeader& header = content->header;
  check(header, file);
  Flight flight;
  flight.rank = header.rank;
  flight.size = header.size;
  flight.task = header.task;
  flight.pid = header.pid;
  flight.host = trim_padding(header.host);
  flight.attempt = trim_padding(header.attempt);
  flight.opened = to_seconds(header.opened_ns);
  flight.beat = to_seconds(header.beat_ns.load());
  flight.silent_from = to_seconds(header.silent_from_ns.load());
  flight.silent_to = to_seconds(header.silent_to_ns.load());
  flight.entered = header.entered.load();
  flight.step = header.step.load();
  flight.last_step = header.last_step.load();
  if (const std::int64_t since = header.waits_since_ns.load(); since != 0) {
    flight.waits_at = header.waits_at.get();
    flight.waits_since = to_seconds(since);
  }
  for (std::size_t i = 0; i < kFlightEntries; ++i) {
    const auto collective = find_collective(content->entries[i]);
    if (collective && collective->sequence % kFlightEntries == i) {
      flight.recent.push_back(*collective);
    }
  }
  std::ranges::sort(flight.recent, {}, &Collective::sequence);
  return flight;
}

std::vector<Flight> read_flights(const std::filesystem::path& folder) {
  std::vector<Flight> flights;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.path().extension() != ".flight") continue;
    try {
      flights.push_back(read_flight(entry.path()));
    } catch (const std::exception& broken) {
      log::debug("left out: {}", broken.what());
    }
  }
  std::ranges::sort(flights, {}, &Flight::rank);
  return flights;
}

constexpr EnumName<FlightKind> kFlightKindNames[] = {{FlightKind::all_reduce, "all-reduce"},
                                                     {FlightKind::broadcast, "broadcast"},
                                                     {FlightKind::all_gather, "all-gather"},
                                                     {FlightKind::barrier, "barrier"}};

const char* to_string(FlightKind kind) {
  return name_in(kFlightKindNames, kind);
}

constexpr EnumName<FlightState> kFlightStateNames[] = {{FlightState::queued, "queued"},
                                                       {FlightState::started, "started"},
                                                       {FlightState::ended, "ended"}};

const char* to_string(FlightState state) {
  return name_in(kFlightStateNames, state);
}

}  // namespace paceline
