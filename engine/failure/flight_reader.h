// Reads the flight rings of a run's replicas. The files are untrusted.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace paceline {

// The file format of a flight ring: a fixed layout, memory-mapped by the rank that writes it.
// Stored data is in the page cache, so it survives a SIGKILL of the process, but not a crash of the
// node.
//
// Every field that changes is a lock-free atomic, so that other threads and readers of the file
// never see a partial value. An entry is valid if its stamp says so: the stamp is cleared before an
// entry is overwritten, and set afterwards.

inline constexpr int kMostRanks = 10'000'000;  // a file with more is damaged

inline constexpr std::array<char, 8> kFlightMagic = {'P', 'A', 'C', 'E', 'F', 'L', 'T', '\n'};
inline constexpr std::uint32_t kFlightVersion = 1;
inline constexpr std::size_t kFlightEntries = 256;

enum class FlightKind : std::uint32_t { all_reduce = 1, broadcast, all_gather, barrier };
// started: on a GPU, queued on the stream. ended: on a GPU, the host has seen its end.
enum class FlightState : std::uint32_t { queued = 1, started, ended };

// A text of at most 31 bytes.
class FlightLabel {
 public:
  void set(std::string_view text) noexcept;
  std::string get() const;  // printable, whatever the bytes are

 private:
  std::array<std::atomic<std::uint64_t>, 4> words_;
};

struct FlightEntry {
  std::atomic<std::uint64_t> stamp;  // 1 + sequence number; 0: being written
  std::atomic<std::uint64_t> step;   // from 1; 0: before the first
  std::atomic<std::uint64_t> bytes;
  std::atomic<std::int64_t> queued_ns, started_ns, ended_ns;  // since 1970; 0: not yet
  std::atomic<std::uint32_t> kind, state;
  FlightLabel label;
  std::array<std::uint64_t, 5> reserved;
};
static_assert(sizeof(FlightEntry) == 128);

struct FlightHeader {
  std::array<char, 8> magic;
  std::uint32_t version, header_bytes, entry_bytes, entries;
  std::int32_t rank, size, task, pid;  // numbers of replicas; of the process
  std::array<char, 64> host;
  std::array<char, 32> attempt;
  std::int64_t opened_ns;                      // since 1970, like all times here
  std::atomic<std::uint64_t> queued, entered;  // collectives in total
  std::atomic<std::uint64_t> step;
  std::atomic<std::int64_t> beat_ns;  // last time the process was known alive
  // Start of the host's wait for waits_at; 0: not waiting.
  std::atomic<std::int64_t> waits_since_ns;
  FlightLabel waits_at;
  // The last period without a beat, if the process came back to life afterwards.
  std::atomic<std::int64_t> silent_from_ns, silent_to_ns;
  std::atomic<std::uint64_t> last_step;  // of the whole run; 0: unknown
  std::array<std::uint64_t, 2> reserved;
};
static_assert(sizeof(FlightHeader) == 256);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

struct FlightFile {
  FlightHeader header;
  std::array<FlightEntry, kFlightEntries> entries;
};

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
  std::uint64_t last_step = 0;            // of the whole run; 0: unknown
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
