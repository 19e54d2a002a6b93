// Which samples each step uses, on every rank.
//
// Without steps_per_epoch, an epoch is one pass over the set, whose incomplete last batch is used
// (keep) or skipped (drop). With it, batches come from an endless sequence of passes, each in its
// own order, and an epoch is that many steps; a batch may span two passes.
//
// A resumed run starts where it stopped: at a sample of the endless sequence, possibly within an
// epoch. With a different world size, that need not be a multiple of the global batch.
#pragma once

#include <cstdint>
#include <vector>

namespace paceline {

// The order of samples: a pure function of (seed, epoch), independent of the number of ranks and
// threads.

// A permutation of 0..samples-1. `buffer` 0 shuffles the whole set. N simulates a shuffle buffer of
// N samples: it is filled in file order, and each sample drawn from it is replaced by the next one
// of the file.
std::vector<std::uint32_t> epoch_order(std::uint64_t seed, std::uint32_t epoch, std::size_t samples,
                                       std::size_t buffer);

// Rank r's part of a global batch of `count` samples: [count r / N, count (r + 1) / N).
struct Slice {
  std::size_t begin = 0, count = 0;
};
Slice take_slice(std::size_t count, int rank, int ranks);

struct StreamSpec {
  std::uint64_t seed = 0;
  std::size_t samples = 0;  // of a pass
  std::size_t global_batch = 0;
  std::size_t shuffle_buffer = 0;
  bool drop_last = false;
  std::size_t steps_per_epoch = 0;  // 0: one pass
  bool in_order = false;            // not shuffled: first, first + 1, ... in each pass
  std::size_t first = 0;            // with in_order only
  std::size_t start = 0;            // samples of the sequence before step 0
  std::size_t start_in_epoch = 0;   // how many of these belong to the resumed epoch
};

// A sample of a batch: its index in the set, its position in its pass, and the pass.
struct Drawn {
  std::uint32_t sample, position, pass;
};

class SampleStream {
 public:
  // Throws usage if an epoch would have no steps.
  explicit SampleStream(const StreamSpec& spec);

  std::size_t steps_per_epoch() const { return steps_; }
  std::size_t steps_of_first_epoch() const { return first_steps_; }  // fewer after a resume
  std::size_t position_of_step(std::size_t step) const;              // in the endless sequence
  std::size_t samples_of_step(std::size_t step) const;               // of all ranks
  std::uint32_t pass_of_step(std::size_t step) const;                // pass of its first sample

  // Writes the samples of `rank` in `step` (counted over all epochs) to `drawn`, or the `part`-th
  // of `parts` contiguous parts of them. Steps may be requested in any order, but going back is
  // slow.
  void draw(std::size_t step, int rank, int ranks, std::vector<Drawn>& drawn, int part = 0,
            int parts = 1);

 private:
  const std::vector<std::uint32_t>& order_of_pass(std::uint32_t pass);
  std::uint32_t sample_at(std::size_t at);  // of the endless sequence

  StreamSpec spec_;
  std::size_t steps_, first_steps_;
  std::uint32_t pass_[2] = {~0U, ~0U};
  std::vector<std::uint32_t> order_[2];
};

}  // namespace paceline
