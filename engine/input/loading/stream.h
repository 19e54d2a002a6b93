// Which samples step t takes, on every rank.
//
// Without steps_per_epoch an epoch is one pass over the set, and its last batch may be incomplete
// (keep) or is left out (drop). With it, batches come from an endless stream of passes, each in an
// order of its own, and an epoch is that many steps; a batch may straddle two passes.
//
// A run that goes on begins where it stopped: at a sample of the endless sequence of passes, which
// may lie within an epoch, and need not be a multiple of the global batch where the world has
// another size now.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/input/loading/order.h"

namespace paceline {

struct StreamSpec {
  std::uint64_t seed = 0;
  std::size_t samples = 0;  // that a pass takes
  std::size_t global_batch = 0;
  std::size_t shuffle_buffer = 0;
  bool drop_last = false;
  std::size_t steps_per_epoch = 0;  // 0: one pass
  bool in_order = false;            // not shuffled: first, first + 1, ... in every pass
  std::size_t first = 0;            // in order only
  std::size_t start = 0;            // samples of the sequence that were taken before step 0
  std::size_t start_in_epoch = 0;   // how many of these belong to the epoch that goes on
};

// One sample of a batch: its index in the set, its place in the order of its pass, and that pass.
struct Drawn {
  std::uint32_t sample, position, pass;
};

class SampleStream {
 public:
  // Throws usage if an epoch would have no step.
  explicit SampleStream(const StreamSpec& spec);

  std::size_t steps_per_epoch() const { return steps_; }
  std::size_t steps_of_first_epoch() const { return first_steps_; }  // fewer where it goes on
  std::size_t position_of_step(std::size_t step) const;  // in the endless sequence of samples
  std::size_t samples_of_step(std::size_t step) const;   // of all ranks
  std::uint32_t pass_of_step(std::size_t step) const;    // in which its first sample lies

  // The samples that rank takes in step `step` (counted from the start over all epochs), into
  // `drawn`; of these, the `part`-th of `parts` contiguous parts.
  // Steps are asked for in any order, but going back is slow.
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
