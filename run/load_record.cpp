#include "run/load_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <thread>
#include <type_traits>

#include "engine/core/log.h"
#include "engine/launch/process_rank.h"
#include "engine/meter/busy_tasks.h"

namespace paceline {

namespace {

constexpr auto kLook = std::chrono::milliseconds(200);

std::vector<int> all_cpus(const std::vector<CpuSet>& sets) {
  std::set<int> all;
  for (const CpuSet& cpus : sets) all.insert(cpus.begin(), cpus.end());
  return {all.begin(), all.end()};
}

template <typename T>
std::optional<T> most(const std::vector<MachineLoad>& loads, std::optional<T> MachineLoad::*fact) {
  std::optional<T> result;
  for (const MachineLoad& load : loads) {
    if (load.*fact) result = std::max(result.value_or(*(load.*fact)), *(load.*fact));
  }
  return result;
}

template <typename T>
std::optional<T> total(const std::vector<MachineLoad>& loads, std::optional<T> MachineLoad::*fact) {
  std::optional<T> result;
  for (const MachineLoad& load : loads) {
    if (load.*fact) result = result.value_or(T{}) + *(load.*fact);
  }
  return result;
}

std::optional<double> least_mhz(const std::vector<MachineLoad>& loads) {
  std::optional<double> least;
  for (const MachineLoad& load : loads) {
    if (load.mhz) least = std::min(least.value_or(*load.mhz), *load.mhz);
  }
  return least;
}

// Of all CPUs, weighted by what there was of them.
std::optional<double> overall_share(const std::vector<MachineLoad>& loads) {
  double others = 0, all = 0;
  for (const MachineLoad& load : loads) {
    if (!load.other_share) continue;
    others += *load.other_share * load.cpu_seconds;
    all += load.cpu_seconds;
  }
  return all > 0 ? std::optional(others / all) : std::nullopt;
}

}  // namespace

void warn_of_busy_cpus(const std::vector<RankCard>& cards, int ranks_here) {
  const auto load = load_average({});
  if (!load || load->runnable <= ranks_here) return;
  const std::string host = host_name();
  std::set<int> cpus;
  for (const RankCard& card : cards) {
    if (card.host != host) continue;
    for (const int cpu : list_cpus(card)) cpus.insert(cpu);
  }
  const auto tasks =
      busy_tasks({cpus.begin(), cpus.end()}, [] { std::this_thread::sleep_for(kLook); });
  if (tasks.empty()) return;
  log::warning("other processes use the CPUs of this run: {}; expect slower and noisier times",
               to_text(tasks));
}

LoadReport::LoadReport(const std::vector<CpuSet>& cpus) : meter_(all_cpus(cpus)) {}

LoadFacts LoadReport::collect(World& world, bool ranks_share_cpus) const {
  MachineLoad mine = meter_.read();
  if (ranks_share_cpus) mine.other_share.reset();
  auto& communicators = world.communicators();
  const auto size = static_cast<std::size_t>(communicators.front()->size());
  if (communicators.size() == size) return summarize({mine});
  std::vector<MachineLoad> all;
  static_assert(std::is_trivially_copyable_v<MachineLoad>);
  on_every_replica(communicators, [&](Communicator& communicator, std::size_t i) {
    MachineLoad card = i == 0 ? mine : MachineLoad{};  // a process is told of once
    std::vector<MachineLoad> gathered(size);
    communicator.all_gather(&card, sizeof card, gathered.data());
    if (i == 0) all = std::move(gathered);
  });
  return summarize(std::move(all));
}

LoadFacts summarize(std::vector<MachineLoad> processes) {
  LoadFacts facts;
  std::erase_if(processes, [](const MachineLoad& load) { return !(load.cpu_seconds > 0); });
  if (processes.empty()) return facts;
  std::stable_sort(processes.begin(), processes.end(),
                   [](const MachineLoad& a, const MachineLoad& b) {
                     return a.other_share.value_or(0) > b.other_share.value_or(0);
                   });
  bool is_known = true;
  double seconds = 0;
  for (const MachineLoad& load : processes) {
    if (facts.why.empty()) facts.why = busy_because(load);
    seconds = std::max(seconds, load.seconds);
    is_known = is_known && shows_busy(load);
  }
  if (!facts.why.empty() || is_known) facts.busy = !facts.why.empty();
  facts.seconds = seconds;
  facts.other_cpu_share = overall_share(processes);
  facts.worst_other_cpu_share = most(processes, &MachineLoad::other_share);
  facts.steal_share = most(processes, &MachineLoad::steal_share);
  facts.cpu_limited_share = most(processes, &MachineLoad::limited_share);
  facts.cpu_pressure_share = most(processes, &MachineLoad::pressure_share);
  facts.load_average = most(processes, &MachineLoad::load_average);
  facts.runnable_tasks_before = most(processes, &MachineLoad::runnable_before);
  facts.runnable_tasks_after = most(processes, &MachineLoad::runnable_after);
  facts.involuntary_switches = total(processes, &MachineLoad::involuntary_switches);
  facts.heat_slowdowns = total(processes, &MachineLoad::heat_slowdowns);
  facts.least_mhz = least_mhz(processes);
  facts.peak_memory_bytes = total(processes, &MachineLoad::peak_memory);
  return facts;
}

}  // namespace paceline
