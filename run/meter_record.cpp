#include "run/meter_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <set>
#include <string>
#include <thread>

#include "engine/core/error.h"
#include "engine/core/log.h"
#include "engine/core/text.h"
#include "engine/launch/process_rank.h"
#include "engine/train/gather.h"

namespace paceline {

namespace {

constexpr std::size_t kIdle = 4, kParts = 5;                   // after those of RunPart
constexpr double kGpuUpdate = 0.1;                             // seconds
constexpr double kShortestGlance = 0.2, kFewestOfAGlance = 9;  // seconds, updates

// Of all replicas, from one for each replica of this process.
template <typename T>
std::vector<T> gather(World& world, const std::vector<T>& mine) {
  std::vector<T> all;
  on_every_replica(world.communicators(), [&](Communicator& communicator, std::size_t i) {
    std::vector<T> gathered = gather(communicator, mine[i]);
    if (i == 0) all = std::move(gathered);
  });
  return all;
}

// A counter and, beside it, the integrated power, which tell on each other.
void add_gpu(const ChosenGpus& gpus, const Gpu& gpu, std::vector<EnergyCounter>& counters) {
  const auto read = gpus.driver().power_reader(gpu.pci);
  if (!read) return;
  const GpuPower now = read();
  if (now.joules) {
    counters.push_back({"GPU counter", gpu.pci, Covered::gpus, false, 0, kGpuUpdate,
                        [read] { return read().joules; }});
  }
  if (now.watts) {
    counters.push_back({"GPU power", gpu.pci, Covered::gpus, true, 0, kGpuUpdate,
                        [read] { return read().watts; }});
  }
}

std::vector<EnergyCounter> find_counters(const ChosenGpus& gpus, bool is_first_of_node) {
  std::vector<EnergyCounter> counters;
  std::set<std::string> seen;  // replicas may share one
  for (const Gpu& gpu : gpus.cards()) {
    try {
      if (seen.insert(gpu.pci).second) add_gpu(gpus, gpu, counters);
    } catch (const Error& error) {
      log::debug("energy of GPU {} is unknown: {}", gpu.pci, error.what());
    }
  }
  if (!is_first_of_node) return counters;
  EnergySources of_node = energy_sources();
  std::move(of_node.counters.begin(), of_node.counters.end(), std::back_inserter(counters));
  return counters;
}

template <typename T>
void add_to(std::optional<T>& sum, const std::optional<T>& more) {
  sum = sum && more ? std::optional(*sum + *more) : std::nullopt;
}

void add(MeterFacts& sum, const MeterFacts& more) {
  add_to(sum.counters, more.counters);
  add_to(sum.joules, more.joules);
  add_to(sum.evaluation_joules, more.evaluation_joules);
  add_to(sum.checkpoint_joules, more.checkpoint_joules);
  add_to(sum.idle_watts, more.idle_watts);
  sum.seconds = std::max(sum.seconds.value_or(0), more.seconds.value_or(0));
  if (sum.trouble.empty()) sum.trouble = more.trouble;
}

// The first element says how many of them were added.
std::vector<std::pair<int, MeterFacts>> added_up(const std::vector<MeterFacts>& meters) {
  std::vector<std::pair<int, MeterFacts>> sums;
  for (const MeterFacts& meter : meters) {
    const auto same = std::find_if(sums.begin(), sums.end(), [&](const auto& sum) {
      return sum.second.meter == meter.meter && sum.second.covers == meter.covers;
    });
    if (same == sums.end()) {
      sums.emplace_back(1, meter);
    } else {
      ++same->first;
      add(same->second, meter);
    }
  }
  return sums;
}

void give_up(MeterFacts& meter, const std::string& why) {
  meter.joules = meter.evaluation_joules = meter.checkpoint_joules = meter.idle_watts = {};
  meter.trouble = why;
}

MeterFacts collect_facts(const EnergyMeter& meter, std::size_t i) {
  const EnergyCounter& counter = meter.counters()[i];
  MeterFacts facts;
  facts.meter = counter.meter;
  facts.covers = to_string(counter.covered);
  facts.sampled = counter.is_power;
  facts.counters = 1;
  const auto joules = [&](RunPart part) -> std::optional<double> {
    const EnergyReading reading = meter.reading(i, static_cast<std::size_t>(part));
    if (reading.seconds == 0) return 0;
    return reading.trouble.empty() ? std::optional(reading.joules) : std::nullopt;
  };
  const EnergyReading training = meter.reading(i, static_cast<std::size_t>(RunPart::training));
  facts.seconds = training.seconds;
  facts.trouble = training.trouble;
  if (training.trouble.empty()) facts.joules = training.joules;
  facts.evaluation_joules = joules(RunPart::evaluation);
  facts.checkpoint_joules = joules(RunPart::checkpoint);
  const EnergyReading idle = meter.reading(i, kIdle);
  const bool is_known =
      counter.is_power || idle.seconds > kFewestOfAGlance * counter.update_seconds;
  if (is_known && idle.joules > 0) facts.idle_watts = idle.watts();
  return facts;
}

constexpr std::size_t kFullyDescribed = 8;

// A record stays small: of many GPUs but the first only what differs from card to card.
GpuFacts brief(const GpuFacts& gpu, const GpuFacts& first) {
  GpuFacts facts;
  if (gpu.pcie != first.pcie) facts.pcie = gpu.pcie;
  if (gpu.links != first.links) facts.links = gpu.links;
  facts.pci = gpu.pci;
  facts.numa_node = gpu.numa_node;
  facts.cpus_numa_nodes = gpu.cpus_numa_nodes;
  facts.utilization = gpu.utilization;
  facts.sm_mhz = gpu.sm_mhz;
  facts.watts = gpu.watts;
  facts.joules = gpu.joules;
  facts.celsius = gpu.celsius;
  facts.memory_bytes = gpu.memory_bytes;
  facts.throttled = gpu.throttled;
  return facts;
}

// As published tables give it.
std::optional<double> mean_utilization(const std::vector<GpuFacts>& gpus) {
  const auto known = known_values(gpus, &GpuFacts::utilization);
  if (known.empty()) return std::nullopt;
  return summed(known, std::identity()) / static_cast<double>(known.size());
}

void summarize(GpuUse& use) {
  use.utilization = mean_utilization(use.each);
  use.throttled = std::ranges::any_of(use.each, [](const auto& g) { return g.throttled == true; });
  if (use.each.size() > kFullyDescribed) {
    std::transform(use.each.begin() + 1, use.each.end(), use.each.begin() + 1,
                   [&](const GpuFacts& gpu) { return brief(gpu, use.each.front()); });
  }
}

constexpr auto kLook = std::chrono::milliseconds(200);

template <typename T>
std::optional<T> total(const std::vector<LoadFacts>& loads, std::optional<T> LoadFacts::*fact) {
  const auto known = known_values(loads, fact);
  return known.empty() ? std::nullopt : std::optional<T>(summed(known, std::identity()));
}

// The share over all CPUs, weighted by their CPU time.
fact::Real overall_share(const std::vector<LoadFacts>& loads) {
  double others = 0, all = 0;
  for (const LoadFacts& load : loads) {
    if (!load.other_cpu_share) continue;
    others += *load.other_cpu_share * *load.cpu_seconds;
    all += *load.cpu_seconds;
  }
  return all > 0 ? fact::Real(others / all) : std::nullopt;
}

// The largest of each number.
LoadFacts most(const std::vector<LoadFacts>& loads) {
  auto all = to_numbers(LoadFacts{});
  for (const LoadFacts& load : loads) {
    const auto numbers = to_numbers(load);
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = std::fmax(all[i], numbers[i]);
  }
  return from_numbers<LoadFacts>(all);
}

}  // namespace

EnergyReport::EnergyReport(const ChosenGpus& gpus, bool is_first_of_node)
    : gpus_(gpus.cards().size()),
      watch_(std::make_unique<EnergyWatch>(find_counters(gpus, is_first_of_node), kParts)) {}

void EnergyReport::measure_idle(World* world) {
  double seconds = watch_->glance_seconds();
  if (world != nullptr) {
    std::vector<double> mine(world->communicators().size());
    mine.front() = seconds;
    seconds = std::ranges::max(gather(*world, mine));
  }
  if (seconds == 0) return;
  watch_->enter(kIdle);
  std::this_thread::sleep_for(std::chrono::duration<double>(std::max(seconds, kShortestGlance)));
  enter(RunPart::other);
}

void EnergyReport::enter(RunPart part) {
  watch_->enter(static_cast<std::size_t>(part));
}

std::vector<MeterFacts> EnergyReport::meters() {
  const EnergyMeter& meter = watch_->stop();
  std::vector<MeterFacts> all;
  for (std::size_t i = 0; i < meter.counters().size(); ++i) all.push_back(collect_facts(meter, i));
  return mapped(added_up(all), [](auto& sum) { return std::move(sum.second); });
}

EnergyFacts EnergyReport::collect_here(int nodes) {
  return collect_energy(meters(), nodes, static_cast<int>(gpus_) * nodes);
}

EnergyFacts EnergyReport::collect(World& world, int nodes) {
  std::vector<EnergyFacts> mine(world.communicators().size());
  mine.front().meters = meters();
  const std::vector<MeterFacts> all = flattened(gather(world, mine), &EnergyFacts::meters);
  const auto size = world.communicators().front()->size();
  return collect_energy(all, nodes, gpus_ == 0 ? 0 : size);
}

EnergyFacts collect_energy(const std::vector<MeterFacts>& of_processes, int nodes, int gpus) {
  EnergyFacts energy;
  for (auto& [processes, meter] : added_up(of_processes)) {
    const bool of_gpus = meter.covers == to_string(Covered::gpus) && meter.meter.starts_with("GPU");
    if (of_gpus && gpus > 0 && meter.counters != gpus) {
      give_up(meter, fmt::format("it covers {} of {} GPUs", meter.counters.value_or(0), gpus));
    } else if (!of_gpus && processes != nodes) {
      give_up(meter, fmt::format("it is on {} of {} nodes only", processes, nodes));
    }
    energy.meters.push_back(std::move(meter));
  }
  const auto find = [&](Covered covered) -> const MeterFacts* {
    const MeterFacts* found = nullptr;
    for (const MeterFacts& meter : energy.meters) {
      if (meter.covers != to_string(covered)) continue;
      const bool is_better = !found || (!found->trouble.empty() && meter.trouble.empty()) ||
                             (found->sampled.value_or(false) && !meter.sampled.value_or(false) &&
                              meter.trouble.empty());
      if (is_better) found = &meter;
    }
    return found;
  };
  std::vector<const MeterFacts*> chosen;
  for (const Covered whole : {Covered::node, Covered::modules}) {
    if (const MeterFacts* meter = find(whole); meter && chosen.empty()) chosen = {meter};
  }
  if (chosen.empty()) {
    for (const Covered part : {Covered::gpus, Covered::cpus, Covered::memory}) {
      if (const MeterFacts* meter = find(part)) chosen.push_back(meter);
    }
  }
  if (chosen.empty()) return energy;
  MeterFacts sum = *chosen.front();
  std::vector<std::string> parts;
  for (const MeterFacts* meter : chosen) {
    parts.push_back(meter->covers);
    if (meter != chosen.front()) add(sum, *meter);
    if (energy.trouble.empty() && !meter->trouble.empty()) {
      energy.trouble = meter->meter + ": " + meter->trouble;
    }
  }
  energy.covers = join(parts, " + ");
  energy.seconds = sum.seconds;
  energy.joules = sum.joules;
  energy.evaluation_joules = sum.evaluation_joules;
  energy.checkpoint_joules = sum.checkpoint_joules;
  energy.idle_watts = sum.idle_watts;
  return energy;
}

GpuReport::GpuReport(const ChosenGpus& gpus, const std::vector<CpuSet>& cpus)
    : places_(gpus.cards().size()) {
  if (places_.empty()) return;
  const Topology machine = topology_of_machine();
  std::vector<std::string> pcis;
  for (const Gpu& gpu : gpus.cards()) {
    GpuFacts& place = places_[pcis.size()];
    place.pci = gpu.pci;
    place.numa_node = machine.numa_of_gpu(gpu.pci);
    if (place.numa_node && pcis.size() < cpus.size()) {
      const std::set<int> nodes = machine.find_nodes(cpus[pcis.size()]);
      place.cpus_numa_nodes = format_cpus({nodes.begin(), nodes.end()});
    }
    pcis.push_back(gpu.pci);
  }
  try {
    watch_ = gpus.driver().watch(pcis);
  } catch (const Error& error) {
    log::warning("GPU utilization and clocks are unavailable: {}", error.what());
  }
}

void GpuReport::warn_of_far_cpus(World* world) const {
  if (places_.empty()) return;
  const std::vector<GpuFacts> places = world != nullptr ? gather(*world, places_) : places_;
  const auto far = std::ranges::find_if(places, has_far_cpus);
  if (far == places.end()) return;
  log::warning(
      "of {} of {} the CPUs are on another NUMA node than the GPU ({} is on node {}, its replica's "
      "CPUs are on {}), which can slow input and copies: {}",
      std::ranges::count_if(places, has_far_cpus), counted(places.size(), "replica"), far->pci,
      *far->numa_node, far->cpus_numa_nodes, kBindNearGpus);
}

std::vector<GpuFacts> GpuReport::stop() {
  if (!watch_) return places_;
  std::vector<GpuFacts> facts = watch_->stop();
  for (std::size_t i = 0; i < facts.size(); ++i) {
    facts[i].numa_node = places_[i].numa_node;
    facts[i].cpus_numa_nodes = places_[i].cpus_numa_nodes;
  }
  return facts;
}

GpuUse GpuReport::collect_here() {
  GpuUse use;
  use.each = stop();
  summarize(use);
  return use;
}

GpuUse GpuReport::collect(World& world) {
  GpuUse use;
  if (places_.empty()) return use;
  use.each = gather(world, stop());
  summarize(use);
  return use;
}

void warn_of_busy_cpus(const std::vector<RankCard>& cards, int ranks_here) {
  const auto load = load_average({});
  if (!load || load->runnable <= ranks_here) return;
  const std::string host = host_name();
  std::set<int> cpus;
  for (const RankCard& card : cards) {
    if (card.host != host) continue;
    for (const int cpu : parse_numbers(card.cpus)) cpus.insert(cpu);
  }
  const auto tasks =
      busy_tasks({cpus.begin(), cpus.end()}, [] { std::this_thread::sleep_for(kLook); });
  if (tasks.empty()) return;
  log::warning("{}{}; expect slower and noisier times", kBusyCpus, to_text(tasks));
}

void warn_of_busy_machine(const LoadFacts& load) {
  if (!load.busy.value_or(false)) return;
  log::warning("the machine was busy: {}; the times of this run are unreliable", load.why);
}

LoadReport::LoadReport(const std::vector<CpuSet>& cpus) : meter_(all_cpus(cpus)) {}

LoadFacts LoadReport::collect(World& world, bool ranks_share_cpus) const {
  std::vector<LoadFacts> mine(world.communicators().size());  // a process counts once
  mine.front() = meter_.read();
  if (ranks_share_cpus) mine.front().other_cpu_share.reset();
  return summarize(gather(world, mine));
}

LoadFacts summarize(std::vector<LoadFacts> processes) {
  std::erase_if(processes, [](const LoadFacts& load) { return !(load.cpu_seconds > 0); });
  if (processes.empty()) return {};
  std::ranges::stable_sort(processes, std::greater(), &LoadFacts::other_cpu_share);
  LoadFacts facts = most(processes);
  facts.worst_other_cpu_share = facts.other_cpu_share;
  facts.other_cpu_share = overall_share(processes);
  for (const auto sum : {&LoadFacts::involuntary_switches, &LoadFacts::thermal_throttles,
                         &LoadFacts::peak_memory_bytes}) {
    facts.*sum = total(processes, sum);
  }
  facts.cpu_seconds = total(processes, &LoadFacts::cpu_seconds);
  bool is_known = true;
  for (const LoadFacts& load : processes) {
    if (facts.why.empty()) facts.why = busy_because(load);
    if (load.least_mhz) facts.least_mhz = std::min(*facts.least_mhz, *load.least_mhz);
    is_known = is_known && shows_busy(load);
  }
  if (!facts.why.empty() || is_known) facts.busy = !facts.why.empty();
  return facts;
}

}  // namespace paceline
