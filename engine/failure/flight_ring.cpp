#include "engine/failure/flight_ring.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <new>

#include "engine/core/text.h"

namespace paceline {

namespace {

constexpr std::int64_t kSilenceNs = 1'500'000'000;  // a longer gap between beats is recorded
constexpr auto kRelaxed = std::memory_order_relaxed;
constexpr auto kRelease = std::memory_order_release;
constexpr auto kAcquire = std::memory_order_acquire;

template <typename Clock>
std::int64_t nanoseconds() {
  using std::chrono::duration_cast;
  return duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch()).count();
}

}  // namespace

void FlightLabel::set(std::string_view text) noexcept {
  std::array<std::uint64_t, 4> words{};
  std::memcpy(words.data(), text.data(), std::min(text.size(), sizeof words - 1));
  for (std::size_t i = 0; i < words.size(); ++i) words_[i].store(words[i], kRelaxed);
}

std::string FlightLabel::get() const {
  std::array<std::uint64_t, 4> words{};
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = words_[i].load(kRelaxed);
  std::array<char, sizeof words + 1> text{};
  std::memcpy(text.data(), words.data(), sizeof words - 1);
  std::string label(text.data());
  std::replace_if(
      label.begin(), label.end(), [](unsigned char c) { return c < 0x20 || c > 0x7e; }, '?');
  return label;
}

FlightRing::FlightRing(const Identity& identity, const std::optional<std::filesystem::path>& folder)
    : offset_ns_(nanoseconds<std::chrono::system_clock>() -
                 nanoseconds<std::chrono::steady_clock>()) {
  map(folder, identity.rank);
  FlightHeader& header = file_->header;
  header.version = kFlightVersion;
  header.header_bytes = sizeof(FlightHeader);
  header.entry_bytes = sizeof(FlightEntry);
  header.entries = kFlightEntries;
  header.rank = identity.rank;
  header.size = identity.size;
  header.task = identity.task;
  header.pid = getpid();
  copy_text(identity.host, header.host);
  copy_text(identity.attempt, header.attempt);
  header.opened_ns = now();
  beat();
  header.magic = kFlightMagic;
}

FlightRing::~FlightRing() {
  munmap(file_, sizeof(FlightFile));
}

void FlightRing::map(const std::optional<std::filesystem::path>& folder, int rank) {
  void* memory = folder ? map_file(*folder, rank) : MAP_FAILED;
  if (memory == MAP_FAILED) {
    memory = mmap(nullptr, sizeof(FlightFile), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                  -1, 0);
  }
  if (memory == MAP_FAILED) throw std::bad_alloc();
  file_ = static_cast<FlightFile*>(memory);
}

// Makes the file under another name and renames it, so that a process that has an earlier run's
// file mapped keeps that one. Allocates all of it, because a store into a hole of a full disk
// raises SIGBUS.
void* FlightRing::map_file(const std::filesystem::path& folder, int rank) {
  const std::filesystem::path file = folder / fmt::format("rank-{}.flight", rank);
  const std::string temporary = fmt::format("{}.{}.tmp", file.string(), getpid());
  const int descriptor = open(temporary.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (descriptor < 0) {
    why_ = fmt::format("{}: {}", file.string(), std::strerror(errno));
    return MAP_FAILED;
  }
  void* memory = MAP_FAILED;
  int failure = posix_fallocate(descriptor, 0, sizeof(FlightFile));
  if (failure == 0) {
    memory = mmap(nullptr, sizeof(FlightFile), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (memory == MAP_FAILED) failure = errno;
  }
  if (failure == 0 && rename(temporary.c_str(), file.c_str()) != 0) failure = errno;
  close(descriptor);
  if (failure == 0) return memory;
  unlink(temporary.c_str());
  if (memory != MAP_FAILED) munmap(memory, sizeof(FlightFile));
  why_ = fmt::format("{}: {}", file.string(), std::strerror(failure));
  return MAP_FAILED;
}

std::int64_t FlightRing::now() const noexcept {
  return nanoseconds<std::chrono::steady_clock>() + offset_ns_;
}

std::uint64_t FlightRing::queue(FlightKind kind, std::string_view label,
                                std::size_t bytes) noexcept {
  FlightHeader& header = file_->header;
  const std::uint64_t sequence = header.queued.load(kRelaxed);
  FlightEntry& slot = entry(sequence);
  slot.stamp.store(0, kRelaxed);  // being written; see flight_reader.h
  std::atomic_thread_fence(kRelease);
  slot.step.store(header.step.load(kRelaxed), kRelaxed);
  slot.bytes.store(bytes, kRelaxed);
  slot.queued_ns.store(now(), kRelaxed);
  slot.started_ns.store(0, kRelaxed);
  slot.ended_ns.store(0, kRelaxed);
  slot.kind.store(static_cast<std::uint32_t>(kind), kRelaxed);
  slot.state.store(static_cast<std::uint32_t>(FlightState::queued), kRelaxed);
  slot.label.set(label);
  slot.stamp.store(sequence + 1, kRelease);
  header.queued.store(sequence + 1, kRelease);
  return sequence;
}

void FlightRing::hand_over(std::uint64_t sequence) noexcept {
  FlightEntry& slot = entry(sequence);
  slot.started_ns.store(now(), kRelaxed);
  slot.state.store(static_cast<std::uint32_t>(FlightState::started), kRelease);
  file_->header.entered.store(sequence + 1, kRelease);
}

void FlightRing::enter(std::uint64_t sequence) noexcept {
  hand_over(sequence);
  inside_.store(sequence + 1, kRelease);
}

void FlightRing::leave(std::uint64_t sequence) noexcept {
  inside_.store(0, kRelease);
  note_end(sequence);
}

void FlightRing::note_end(std::uint64_t sequence) noexcept {
  FlightEntry& slot = entry(sequence);
  if (slot.stamp.load(kRelaxed) != sequence + 1) return;  // overwritten by a later one
  slot.ended_ns.store(now(), kRelaxed);
  slot.state.store(static_cast<std::uint32_t>(FlightState::ended), kRelease);
}

void FlightRing::note_step(std::uint64_t step) noexcept {
  file_->header.step.store(step, kRelease);
}

void FlightRing::note_last_step(std::uint64_t step) noexcept {
  file_->header.last_step.store(step, kRelease);
}

void FlightRing::begin_wait(std::string_view label) noexcept {
  file_->header.waits_at.set(label);
  file_->header.waits_since_ns.store(now(), kRelease);
}

void FlightRing::end_wait() noexcept {
  file_->header.waits_since_ns.store(0, kRelease);
}

void FlightRing::beat() noexcept {
  FlightHeader& header = file_->header;
  const std::int64_t before = header.beat_ns.load(kRelaxed), here = now();
  if (before != 0 && here - before > kSilenceNs) {
    header.silent_from_ns.store(before, kRelaxed);
    header.silent_to_ns.store(here, kRelease);
  }
  header.beat_ns.store(here, kRelease);
}

std::optional<FlightRing::Wait> FlightRing::wait() const {
  const FlightHeader& header = file_->header;
  const auto since = [this](std::int64_t begin) {
    return static_cast<double>(now() - begin) * 1e-9;
  };
  if (const std::uint64_t inside = inside_.load(kAcquire); inside != 0) {
    const FlightEntry& slot = entry(inside - 1);
    Wait wait{since(slot.started_ns.load(kRelaxed)), slot.step.load(kRelaxed), slot.label.get()};
    std::atomic_thread_fence(kAcquire);  // the slot is read before `inside_` is read again
    // Another collective runs by now, and has just begun.
    if (inside_.load(kAcquire) != inside) return std::nullopt;
    return wait;
  }
  if (const std::int64_t begin = header.waits_since_ns.load(kAcquire); begin != 0) {
    return Wait{since(begin), header.step.load(kRelaxed), header.waits_at.get()};
  }
  return std::nullopt;
}

}  // namespace paceline
