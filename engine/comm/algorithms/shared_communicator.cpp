#include "engine/comm/algorithms/shared_communicator.h"

#include <sched.h>

#include <algorithm>
#include <utility>

#include "engine/comm/algorithms/sum_over_parts.h"
#include "engine/core/error.h"

namespace paceline {

namespace {

constexpr std::size_t kScratchAt = (sizeof(NodeAllReduceState) + 4095) / 4096 * 4096;

// What a rank says of itself before memory is shared.
struct Card {
  bool is_local = false;  // all of its connections are
  cpu_set_t cpus{};
};

std::vector<Card> gather_cards(SocketCommunicator& ranks) {
  Card mine;
  mine.is_local = ranks.is_local();
  sched_getaffinity(0, sizeof mine.cpus, &mine.cpus);
  std::vector<Card> all(static_cast<std::size_t>(ranks.size()));
  ranks.all_gather(&mine, sizeof mine, all.data());
  return all;
}

// Polling takes the core of whoever is waited for, unless each rank has one.
double spin_microseconds(const std::vector<Card>& cards) {
  cpu_set_t cpus{};
  for (const Card& card : cards) CPU_OR(&cpus, &cpus, &card.cpus);
  return static_cast<std::size_t>(CPU_COUNT(&cpus)) >= cards.size() ? kSpinMicroseconds : 0;
}

std::vector<int> names_of(int size, int ranks_a_task) {
  std::vector<int> names;
  for (int rank = 0; rank < size; ++rank) names.push_back(rank * ranks_a_task);
  return names;
}

}  // namespace

std::unique_ptr<SharedCommunicator> SharedCommunicator::make(
    std::unique_ptr<SocketCommunicator>& control, const Deadlines& deadlines, int ranks_a_task) {
  if (control->size() > kMaxTeam) return nullptr;
  const std::vector<Card> cards = gather_cards(*control);
  if (!std::all_of(cards.begin(), cards.end(), [](const Card& card) { return card.is_local; })) {
    return nullptr;
  }
  auto shared = SharedParts::make(*control, kScratchAt + kScratchBytes);
  if (!shared) return nullptr;
  control->barrier();  // zeroed by all
  return std::unique_ptr<SharedCommunicator>(new SharedCommunicator(
      std::move(control), std::move(shared), deadlines, spin_microseconds(cards), ranks_a_task));
}

SharedCommunicator::SharedCommunicator(std::unique_ptr<SocketCommunicator> control,
                                       std::unique_ptr<SharedParts> shared,
                                       const Deadlines& deadlines, double spin_microseconds,
                                       int ranks_a_task)
    : control_(std::move(control)),
      shared_(std::move(shared)),
      reduction_(*reinterpret_cast<NodeAllReduceState*>(shared_->parts()[0]), control_->rank(),
                 control_->size(), deadlines, spin_microseconds,
                 names_of(control_->size(), ranks_a_task)) {
  for (std::byte* part : shared_->parts()) scratch_.push_back(part + kScratchAt);
  reduction_.watch([this](std::string_view label) { control_->check_connections(label); });
}

Memory SharedCommunicator::allocate(std::size_t bytes) {
  if (arena_) throw Error(ErrorKind::internal, "a second arena was asked for");
  arena_ = SharedParts::make(*control_, bytes);
  if (!arena_) return {};
  control_->barrier();  // zeroed by all
  return Memory(arena_->mine(), bytes, MemoryKind::host, {});
}

void SharedCommunicator::all_reduce(void* data, std::size_t count, DType type, Lane& lane,
                                    std::string_view label) {
  lane.submit([this, data, count, type, label] {
    sum_over_parts(arena_.get(), scratch_, static_cast<std::size_t>(rank()),
                   static_cast<std::byte*>(data), count, type,
                   [&](std::span<std::byte* const> parts, std::size_t n) {
                     reduction_.all_reduce(parts, n, type, label);
                   });
  });
}

void SharedCommunicator::abort(std::string_view why) noexcept {
  control_->abort(why);
  reduction_.abort();
}

}  // namespace paceline
