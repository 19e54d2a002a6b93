#include "engine/train/replica_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "engine/comm/checks/call_timeout.h"
#include "engine/comm/checks/config_check.h"
#include "engine/core/clock.h"
#include "engine/core/error.h"
#include "engine/core/hash.h"
#include "engine/core/text.h"
#include "engine/failure/rank_status.h"
#include "engine/train/gather.h"
#include "engine/train/weights.h"

namespace paceline {

ReplicaCheck::ReplicaCheck(Communicator& communicator, const Program& program, const Plan& plan,
                           std::size_t every)
    : communicator_(communicator), program_(program), plan_(plan), every_(every) {}

void ReplicaCheck::check(std::size_t step) {
  if (communicator_.size() == 1) return;
  const double start = now_seconds();
  const std::vector<std::uint64_t> hashes = gather(communicator_, hash());
  const bool equal =
      std::ranges::all_of(hashes, [&](std::uint64_t other) { return other == hashes[0]; });
  if (!equal) refuse(step, hashes);
  equal_at_ = step;
  seconds_ += now_seconds() - start;
}

std::uint64_t ReplicaCheck::hash() const {
  const std::span<const std::byte> arena = program_.host_parameters();
  if (arena.empty()) return parameter_checksum(program_, plan_);
  return Hash().add(arena.data(), arena.size()).value();
}

void ReplicaCheck::refuse(std::size_t step, const std::vector<std::uint64_t>& hashes) {
  const std::string when =
      equal_at_ ? fmt::format("after step {} (they were equal after step {})", step, *equal_at_)
                : fmt::format("after step {}", step);
  const std::string first = first_difference();
  wait_until_all_know(communicator_);
  throw Error(ErrorKind::mismatch,
              fmt::format("replicas have different parameters {}: {}, first in {}", when,
                          who_differs(hashes), first),
              "",
              equal_at_ && step > *equal_at_ + 1
                  ? "find the step with a smaller --check-every; the sums or a machine are wrong"
                  : "the sums of the backend or a machine are wrong: run paceline bench allreduce, "
                    "and try other nodes");
}

// In the arena's order. Collective.
std::string ReplicaCheck::first_difference() {
  const std::size_t count = plan_.parameters.size();
  std::vector<std::uint64_t> mine;
  for (std::size_t i = 0; i < count; ++i) {
    const std::vector<double> values = program_.read_parameter(static_cast<int>(i));
    mine.push_back(Hash().add(values.data(), values.size() * sizeof(double)).value());
  }
  const auto all = gather(communicator_, mine);
  for (std::size_t i = 0; i < count; ++i) {
    for (const std::vector<std::uint64_t>& other : all) {
      if (other[i] != all[0][i]) return plan_.parameters[i].name;
    }
  }
  return "what lies between parameters";
}

std::string who_differs(const std::vector<std::uint64_t>& hashes) {
  const auto read_count = [&](std::uint64_t hash) {
    return std::count(hashes.begin(), hashes.end(), hash);
  };
  const std::uint64_t most = *std::ranges::max_element(
      hashes, [&](std::uint64_t a, std::uint64_t b) { return read_count(a) < read_count(b); });
  std::vector<int> with, against;
  for (std::size_t r = 0; r < hashes.size(); ++r) {
    (hashes[r] == most ? with : against).push_back(static_cast<int>(r));
  }
  if (2 * with.size() > hashes.size()) {
    return fmt::format("{} differ{} from {}", rank_ranges(against), against.size() == 1 ? "s" : "",
                       rank_ranges(with));
  }
  if (hashes.size() == 2) return "ranks 0 and 1 differ";
  std::vector<int> all(hashes.size());
  std::iota(all.begin(), all.end(), 0);
  return rank_ranges(all) + " differ, none of them with a majority";
}

void check_first_sum(Communicator& communicator, double seconds, std::size_t bytes,
                     const std::function<void()>& sum) {
  if (communicator.size() == 1) return;
  const std::string what =
      fmt::format("{}{} over {} ranks did not end within {:g} s", kFirstSum,
                  format_bytes(static_cast<double>(bytes)), communicator.size(), seconds);
  const double begin = now_seconds();
  const auto has_passed = [&] { return seconds > 0 && now_seconds() - begin >= seconds; };
  try {
    if (seconds > 0) {
      CallTimeout timeout({.abort_seconds = seconds},
                          [&](const std::string&) { communicator.abort(what); });
      const CallTimeout::Call watched(timeout, "the first sum");
      sum();
    } else {
      sum();
    }
  } catch (const Error&) {
    if (!has_passed()) throw;
  }
  if (!has_passed()) return;
  throw Error(ErrorKind::stall, what, "before the first step",
              "see which network the backend chose and whether it joins all nodes, or try another "
              "backend")
      .on_rank(communicator.rank());
}

namespace {

std::string hash_of_operations(const Plan& plan) {
  Hash hash;
  for (const Operation& op : plan.operations) {
    hash.add(op.name).add(" ").add(op.text()).add(" ").add(op.in.text()).add(op.out.text());
    const int numbers[] = {op.from, op.from2, op.weight, op.bias, op.kernel, op.stride, op.padding};
    hash.add(numbers, sizeof numbers);
  }
  return hash.hex();
}

std::string hash_of_parameters(const Plan& plan) {
  Hash hash;
  for (const ParameterInfo& info : plan.parameters) {
    hash.add(info.name).add(info.shape.data(), info.shape.size() * sizeof(int));
    hash.add(&info.offset, sizeof info.offset);
  }
  return hash.hex();
}

}  // namespace

void check_common_plan(Communicator& communicator, const Plan& plan, const Device& device) {
  if (communicator.size() == 1) return;
  check_same_config(communicator,
                    {{"plan of", plan.network},
                     {"samples of a step", std::to_string(plan.batch)},
                     {"sample", plan.sample.text()},
                     {"operations", hash_of_operations(plan)},
                     {"parameters", hash_of_parameters(plan)},
                     {"parameter arena", std::to_string(plan.arena_elements) + " elements"},
                     {"device", std::string(device.name())},
                     {"device libraries", device.libraries()}});
}

}  // namespace paceline
