// Measures an all-reduce, its bound and its competitor on these ranks.
//
// A *sample* is a number of back-to-back calls after a barrier, divided by that number; the slowest
// rank counts. Samples of the all-reduce, of memory copies and of the library's all-reduce
// alternate, so that disturbances affect all of them.
//
// Memory copies are the bound inside a node. All ranks simultaneously copy half of their data over
// the other half and back. That reads and writes as many bytes as a rank's share of an in-place
// all-reduce, which reads one n-th of n parts and writes it to n parts.
//
// The sums are checked after the timing (sum_check.h).
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "engine/comm/backend.h"

namespace paceline {

struct BenchOptions {
  DType type = DType::f32;
  std::size_t rounds = 5;
  std::size_t iterations = 0;      // calls per round of each; 0: as many as the time allows
  std::size_t warmup = 3;          // calls of each before the first round
  double seconds_per_size = 0.25;  // time limit of each
  bool copies = true;              // measure memory copies
};

struct BenchTimes {
  double median = 0, least = 0, p95 = 0;  // seconds per call, over samples
};

struct BenchRow {
  std::size_t count = 0;  // elements
  std::size_t samples = 0, calls = 0;
  BenchTimes all_reduce;
  std::optional<BenchTimes> copy, library;
  std::size_t wrong = 0;    // elements, over all ranks
  std::string first_wrong;  // text with rank and offset
};

// Collective: every replica has one.
class AllReduceBench {
 public:
  // `library` may be null. `most`: elements of the largest size.
  AllReduceBench(Communicator& communicator, Communicator* library, std::size_t most,
                 const BenchOptions& options);

  BenchRow measure(std::size_t count);  // returns the same on every rank

 private:
  struct Samples;

  void all_reduce(Communicator& with, std::size_t count);
  void copy(std::size_t count);
  template <typename Call>
  double time(std::size_t calls, const Call& call);
  // Calls of one kind in a round.
  struct Turn {
    std::size_t calls = 0, samples = 0;  // calls per sample
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
