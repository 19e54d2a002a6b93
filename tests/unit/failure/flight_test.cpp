#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <random>

#include "engine/core/json.h"
#include "engine/failure/flight_reader.h"
#include "engine/failure/flight_ring.h"
#include "tests/support/expect_error.h"
#include "tests/support/scratch.h"

namespace paceline {
namespace {

std::filesystem::path resolve_file(const Scratch& scratch, int rank) {
  return scratch / ("rank-" + std::to_string(rank) + ".flight");
}

TEST(FlightRing, KeepsWhatWentOn) {
  const Scratch scratch;
  {
    FlightRing ring({1, 4, 0, "n2", "attempt"}, scratch.path());
    EXPECT_EQ(ring.why(), "");
    ring.note_last_step(6000);
    ring.note_step(416);
    const auto first = ring.queue(FlightKind::all_reduce, "bucket 3", 4096);
    ring.enter(first);
    EXPECT_EQ(ring.wait()->label, "bucket 3");
    EXPECT_EQ(ring.wait()->step, 416U);
    ring.leave(first);
    EXPECT_FALSE(ring.wait());
    const auto second = ring.queue(FlightKind::barrier, "barrier", 0);
    ring.enter(second);
    ring.queue(FlightKind::all_reduce, "bucket 0", 8);
  }
  const Flight flight = read_flight(resolve_file(scratch, 1));
  EXPECT_EQ(flight.rank, 1);
  EXPECT_EQ(flight.size, 4);
  EXPECT_EQ(flight.host, "n2");
  EXPECT_EQ(flight.attempt, "attempt");
  EXPECT_EQ(flight.step, 416U);
  EXPECT_EQ(flight.last_step, 6000U);
  EXPECT_EQ(flight.entered, 2U);
  ASSERT_EQ(flight.recent.size(), 3U);
  EXPECT_EQ(flight.recent[0].label, "bucket 3");
  EXPECT_EQ(flight.recent[0].bytes, 4096U);
  EXPECT_EQ(flight.recent[0].state, FlightState::ended);
  EXPECT_LE(flight.recent[0].queued, flight.recent[0].started);
  EXPECT_LE(flight.recent[0].started, flight.recent[0].ended);
  EXPECT_EQ(flight.recent[2].state, FlightState::queued);
  ASSERT_NE(flight.last_entered(), nullptr);
  EXPECT_EQ(flight.last_entered()->label, "barrier");
  EXPECT_EQ(flight.last_entered()->state, FlightState::started);
}

TEST(FlightRing, KeepsTheLast256) {
  const Scratch scratch;
  FlightRing ring({0, 1, 0, "n", "a"}, scratch.path());
  for (std::uint64_t i = 0; i < 1000; ++i) {
    ring.note_step(i + 1);
    const auto sequence = ring.queue(FlightKind::all_reduce, "bucket " + std::to_string(i), i);
    ring.enter(sequence);
    ring.leave(sequence);
  }
  const Flight flight = read_flight(resolve_file(scratch, 0));
  ASSERT_EQ(flight.recent.size(), kFlightEntries);
  EXPECT_EQ(flight.recent.front().sequence, 1000 - kFlightEntries);
  EXPECT_EQ(flight.recent.back().label, "bucket 999");
  EXPECT_EQ(flight.entered, 1000U);
}

TEST(FlightRing, AStreamsEndIsNotedUnlessItWasWrittenOver) {
  const Scratch scratch;
  FlightRing ring({0, 2, 0, "n", "a"}, scratch.path());
  const auto old = ring.queue(FlightKind::all_reduce, "old", 1);
  ring.hand_over(old);
  EXPECT_FALSE(ring.wait());
  for (std::size_t i = 0; i < kFlightEntries; ++i) ring.queue(FlightKind::all_reduce, "new", 1);
  ring.note_end(old);
  for (const Collective& one : read_flight(resolve_file(scratch, 0)).recent) {
    EXPECT_EQ(one.state, FlightState::queued);
  }
  ring.begin_wait("the steps before");
  EXPECT_EQ(ring.wait()->label, "the steps before");
  EXPECT_EQ(read_flight(resolve_file(scratch, 0)).waits_at, "the steps before");
  ring.end_wait();
  EXPECT_FALSE(ring.wait());
}

TEST(FlightRing, OutlivesAKilledProcess) {
  const Scratch scratch;
  const pid_t child = fork();
  if (child == 0) {
    FlightRing ring({0, 2, 0, "n", "a"}, scratch.path());
    ring.enter(ring.queue(FlightKind::all_reduce, "bucket 7", 1));
    kill(getpid(), SIGKILL);
  }
  waitpid(child, nullptr, 0);
  const Flight flight = read_flight(resolve_file(scratch, 0));
  EXPECT_EQ(flight.pid, child);
  EXPECT_EQ(flight.last_entered()->label, "bucket 7");
  EXPECT_EQ(flight.last_entered()->state, FlightState::started);
}

TEST(FlightRing, AFolderThatCannotBeWrittenIsNoFailure) {
  FlightRing ring({0, 1, 0, "n", "a"}, "/proc/no-such-folder");
  expect_parts(ring.why(), {"rank-0.flight"});
  ring.enter(ring.queue(FlightKind::barrier, "barrier", 0));
  EXPECT_EQ(ring.entered(), 1U);
}

TEST(FlightRing, ReplacesAnEarlierRuns) {
  const Scratch scratch;
  FlightRing before({0, 1, 0, "n", "first"}, scratch.path());
  FlightRing ring({0, 1, 0, "n", "second"}, scratch.path());
  before.enter(before.queue(FlightKind::barrier, "barrier", 0));
  const Flight flight = read_flight(resolve_file(scratch, 0));
  EXPECT_EQ(flight.attempt, "second");
  EXPECT_EQ(flight.entered, 0U);
  EXPECT_EQ(scratch.files(), 1U);
}

class DamagedFlight : public testing::Test {
 protected:
  DamagedFlight() {
    FlightRing ring({1, 2, 1, "n", "a"}, scratch_.path());
    for (int i = 0; i < 300; ++i) ring.enter(ring.queue(FlightKind::barrier, "barrier", 0));
    bytes_ = read_text(resolve_file(scratch_, 1));
  }

  std::filesystem::path with(const std::string& bytes) {
    const auto file = scratch_ / "damaged.flight";
    std::ofstream(file, std::ios::binary) << bytes;
    return file;
  }

  Scratch scratch_;
  std::string bytes_;
};

TEST_F(DamagedFlight, IsRefused) {
  const auto refuse = [&](const std::string& bytes, const std::string& why) {
    expect_error(ErrorKind::input, {why, "damaged.flight"}, [&] { read_flight(with(bytes)); });
  };
  refuse("", "does not have the size of a flight ring");
  refuse(bytes_.substr(0, 1000), "does not have the size of a flight ring");
  refuse("X" + bytes_.substr(1), "is not a flight ring");
  std::string other = bytes_;
  other[offsetof(FlightHeader, version)] = 9;
  refuse(other, "is a flight ring of version 9");
  other = bytes_;
  const std::int32_t rank = -5;
  std::memcpy(&other[offsetof(FlightHeader, rank)], &rank, sizeof rank);
  refuse(other, "is a damaged flight ring");
}

// Whatever the bytes are, what comes out is printable and within bounds.
TEST_F(DamagedFlight, RubbishInEntriesDoesNoHarm) {
  std::mt19937 random(1);
  for (int round = 0; round < 20; ++round) {
    std::string bytes = bytes_;
    for (std::size_t at = sizeof(FlightHeader); at < bytes.size(); ++at) {
      if (random() % 4 == 0) bytes[at] = static_cast<char>(random());
    }
    const Flight flight = read_flight(with(bytes));
    EXPECT_LE(flight.recent.size(), kFlightEntries);
    for (const Collective& one : flight.recent) {
      EXPECT_LE(one.label.size(), 31U);
      for (const char c : one.label) EXPECT_TRUE(c >= 0x20 && c <= 0x7e);
    }
  }
}

TEST_F(DamagedFlight, ATornEntryIsLeftOut) {
  std::string bytes = bytes_;
  std::memset(&bytes[sizeof(FlightHeader)], 0, sizeof(std::uint64_t));
  EXPECT_EQ(read_flight(with(bytes)).recent.size(), kFlightEntries - 1);
  EXPECT_EQ(read_flights(scratch_.path()).size(), 2U);
}

}  // namespace
}  // namespace paceline
