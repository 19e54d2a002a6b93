// Measures an all-reduce and its bound on these ranks.
//
// A *sample* is a number of back-to-back calls after a barrier, divided by that number; the slowest
// rank counts. Before a sample, outside of the timed part, each rank writes anew the buffers that
// the calls sum, one buffer a call: as in training, where backward has just written them. With
// *reused* buffers, calls sum one buffer that nobody writes between them. A rank that sums in
// shared memory then finds in its cache what it wrote in the call before, which flatters it.
// Samples of all kinds alternate, so that disturbances affect all of them.
//
// Memory copies are the bound inside a node. All ranks simultaneously copy half of their data over
// the other half and back. That reads and writes as many bytes as a rank's share of an in-place
// all-reduce, which reads one n-th of n parts and writes it to n parts.
//
// The sums are checked after the timing (sum.h).
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "engine/comm/backend.h"

namespace paceline {

struct BenchOptions {
  DType type = DType::f32;
  std::size_t rounds = 5;
  std::size_t iterations = 0;      // calls per round of each; 0: as many as the time allows
  std::size_t warmup = 3;          // calls of each before the first round
  double seconds_per_size = 0.25;  // time limit of each
  bool baselines = true;           // measure memory copies and reused buffers
};

struct BenchTimes {
  double median = 0, least = 0, p95 = 0;  // seconds per call, over samples
};

struct BenchRow {
  std::size_t count = 0;  // elements
  std::size_t samples = 0, calls = 0;
  BenchTimes all_reduce;
  std::optional<BenchTimes> reused, copy;
  std::size_t wrong = 0;    // elements, over all ranks
  std::string first_wrong;  // text with rank and offset
};

// Collective: every replica has one.
class AllReduceBench {
 public:
  // `most`: elements of the largest size.
  AllReduceBench(Communicator& communicator, std::size_t most, const BenchOptions& options);

  BenchRow measure(std::size_t count);  // returns the same on every rank

 private:
  // How one kind of call is measured in a round. Broadcast as bytes.
  struct Turn {
    std::size_t calls = 0;  // per sample
    std::size_t samples = 0;
  };

  std::byte* buffer(std::size_t call) const;
  void write_buffers(std::size_t calls);
  void all_reduce(std::byte* data);
  void copy(std::byte* data);
  // Seconds per call of `calls` calls, each with its buffer.
  template <typename Call>
  double time(std::size_t calls, const Call& call);
  template <typename Call>
  Turn choose_turn(const Call& call);
  BenchTimes gather(std::vector<double> samples);
  void check(BenchRow& row);

  Communicator& communicator_;
  BenchOptions options_;
  InlineLane lane_;
  Memory data_;
  std::size_t count_ = 0, stride_ = 0;  // elements and distance of the buffers, in bytes
};

}  // namespace paceline
