// Whether replicas still hold the same parameters. They must, bit for bit: all apply the same sums.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/comm/communicator.h"
#include "engine/device/device.h"

namespace paceline {

class ReplicaCheck {
 public:
  // All outlive it. `every` steps; 0: never due.
  ReplicaCheck(Communicator& communicator, const Program& program, const Plan& plan,
               std::size_t every);

  bool due(std::size_t step) const { return every_ > 0 && step % every_ == 0; }

  // After `step` steps, the compute lane drained. Collective: one all_gather of 8 bytes. Throws
  // mismatch that names the step, that of the last check that was fine, the ranks (the minority,
  // where there is one), and the first parameter that differs. The hash is over the arena as it
  // lies, at memory speed; where the host cannot read that, over canonical values.
  void check(std::size_t step);

  double seconds() const { return seconds_; }  // spent in it

 private:
  std::vector<std::uint64_t> gather(std::uint64_t mine);
  std::uint64_t hash() const;
  [[noreturn]] void refuse(std::size_t step, const std::vector<std::uint64_t>& hashes);
  std::string first_difference();

  Communicator& communicator_;
  const Program& program_;
  const Plan& plan_;
  std::size_t every_;
  std::optional<std::size_t> equal_at_;
  double seconds_ = 0;
};

// "rank 2 differs from ranks 0-1, 3" or, where no value has a majority, "ranks 0 and 1 differ".
// `hashes` of all ranks, not all equal.
std::string who_differs(const std::vector<std::uint64_t>& hashes);

}  // namespace paceline
