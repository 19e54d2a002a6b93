// How fast an all-reduce is on these ranks, beside what bounds it and what it competes with.
//
// A *sample* is a number of calls back to back after a barrier, divided by that number, and the
// slowest rank's counts. Samples of the all-reduce, of memory copies and of the library's own
// all-reduce are taken in turns, so that what disturbs the machine disturbs all of them.
//
// The memory copies are the bound inside a node: every rank copies, all at once, half of its data
// over the other half and back. That reads and writes as many bytes in as many bytes as a rank's
// share of an all-reduce in place does: it reads one n-th of n parts, and writes it to n parts.
//
// Sums are checked after the timing (sum_check.h).
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "engine/comm/backend.h"

namespace paceline {

struct BenchOptions {
  DType type = DType::f32;
  std::size_t rounds = 5;
  std::size_t iterations = 0;      // calls of each a round; 0: as many as the time allows
  std::size_t warmup = 3;          // calls of each before the first round
  double seconds_per_size = 0.25;  // of each
  bool copies = true;              // measure memory copies
};

struct BenchTimes {
  double median = 0, least = 0, p95 = 0;  // seconds a call, over samples
};

struct BenchRow {
  std::size_t count = 0;  // elements
  std::size_t samples = 0, calls = 0;
  BenchTimes all_reduce;
  std::optional<BenchTimes> copy, library;
  std::size_t wrong = 0;    // elements, over all ranks
  std::string first_wrong;  // says rank and offset
};

// Collective; every replica has one.
class AllReduceBench {
 public:
  // `library` may be null. `most`: elements of the largest size.
  AllReduceBench(Communicator& communicator, Communicator* library, std::size_t most,
                 const BenchOptions& options);

  BenchRow measure(std::size_t count);  // the same on every rank

 private:
  struct Samples;

  void all_reduce(Communicator& with, std::size_t count);
  void copy(std::size_t count);
  template <typename Call>
  double time(std::size_t calls, const Call& call);
  // Of one kind in a round.
  struct Turn {
    std::size_t calls = 0, samples = 0;  // calls a sample
  };
  template <typename Call>
  Turn turn_of(const Call& call);
  BenchTimes gathered(std::vector<double> samples);
  void check(BenchRow& row);

  Communicator& communicator_;
  Communicator* library_;
  BenchOptions options_;
  InlineLane lane_;
  Memory data_;
};

}  // namespace paceline
