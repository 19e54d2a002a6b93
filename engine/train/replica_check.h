// Checks that replicas have the same parameters, bit for bit: all of them apply the same sums.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "engine/comm/communicator.h"
#include "engine/device/device.h"

namespace paceline {

class ReplicaCheck {
 public:
  // All arguments outlive this object. `every` is in steps; 0: never due.
  ReplicaCheck(Communicator& communicator, const Program& program, const Plan& plan,
               std::size_t every);

  bool due(std::size_t step) const { return every_ > 0 && step % every_ == 0; }

  // Call after `step` steps with the compute lane drained. Collective: one all_gather of 8 bytes.
  // Throws mismatch naming the step, the step of the last good check, the ranks that differ (the
  // minority if there is one), and the first parameter that differs. Hashes the arena at memory
  // speed, or canonical values if the host cannot read the arena.
  void check(std::size_t step);

  double seconds() const { return seconds_; }  // total time of checks

 private:
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

// "rank 2 differs from ranks 0-1, 3" or, without a majority, "ranks 0 and 1 differ". `hashes` of
// all ranks must not be all equal.
std::string who_differs(const std::vector<std::uint64_t>& hashes);

// Tests that these ranks can sum before anything long starts. A firewall between nodes, or a
// network that a node lacks, affects the first sum but not the small messages before it.

// `sum` queues a sum of `bytes` over the communicator and waits for it; collective. Throws stall if
// it takes longer than `seconds`; 0: no limit.
void check_first_sum(Communicator& communicator, double seconds, std::size_t bytes,
                     const std::function<void()>& sum);

// The part of the preflight check that needs the compiled network.

// Throws mismatch unless all ranks have the same plan (operations, shapes, parameter arena) and the
// same versions of the device's libraries. Collective; call it before collective allocations.
void check_common_plan(Communicator& communicator, const Plan& plan, const Device& device);

}  // namespace paceline
