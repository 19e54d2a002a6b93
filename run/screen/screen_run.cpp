#include "run/screen/screen_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>

#include "engine/core/clock.h"
#include "engine/core/environment.h"
#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/json.h"
#include "engine/core/lane.h"
#include "engine/core/log.h"
#include "engine/core/output.h"
#include "engine/core/text.h"
#include "engine/device/device.h"
#include "engine/facts/json.h"
#include "engine/failure/rank_status.h"
#include "engine/launch/process_rank.h"
#include "engine/meter/machine_load.h"
#include "results/machine.h"
#include "run/config.h"
#include "run/resolve.h"
#include "run/training_run.h"
#include "run/version.h"
#include "run/world.h"

namespace paceline {

namespace {

constexpr int kRounds = 4, kRoundsOfMany = 6;
constexpr std::size_t kLargeBytes = std::size_t{4} << 20, kSmallBytes = 8,
                      kCopied = std::size_t{64} << 20;
constexpr int kLargeSums = 5, kSmallSums = 50;
// A GPU that others use is not measured: by memory in use and by time before the screen.
constexpr double kOthersBytes = 2e9, kOthersShare = 0.05;

struct Rated {
  std::vector<ScreenRates> measured;

  void add(const std::string& what, double rate) {
    auto found = std::ranges::find(measured, what, &ScreenRates::measured);
    if (found == measured.end()) found = measured.insert(found, {what, {}});
    found->rates.push_back(rate);
  }
};

constexpr std::array kPrecisions = {"fp32", "bf16"};
using PrecisionDevice = std::pair<std::string, std::unique_ptr<Device>>;

double cpu_seconds_of_process() {
  timespec used{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
}

// One process's share.
class Screening {
 public:
  Screening(const ScreenRequest& request, const LaunchSpec& launch, const PlaceConfig& place)
      : request_(request),
        launch_(launch),
        place_(place),
        process_(find_process_rank(environment_of_process())) {}

  std::optional<MachineScreen> go() {
    log::Setup logging;
    logging.to_stderr = process_.rank == 0;
    log::set_up(logging);
    check_tasks(launch_, process_);
    const CpuAssignment assignment = assign_cpus(launch_, process_);
    World world(launch_, process_, assignment);
    try {
      return measure_in(world, assignment);
    } catch (const std::exception& error) {
      world.abort(error.what());
      drop_groups();
      throw;
    }
  }

 private:
  std::optional<MachineScreen> measure_in(World& world, const CpuAssignment& assignment) {
    Communicator& all = *world.communicators().front();
    bind_this_thread(assignment.replicas.front());
    MachineScreen screen{
        .started_at = utc_time_stamp(), .version = build_id(), .backend = launch_.backend};
    describe(world, assignment);
    find_nodes(all, screen);
    make_devices(world, assignment);
    const int count = static_cast<int>(screen.nodes.size());
    const int rounds = request_.rounds > 0                ? request_.rounds
                       : screen.nodes.size() > kManyNodes ? kRoundsOfMany
                                                          : kRounds;
    connect_pairs(world, draw_matchings(count, shared_seed(all)));
    connect_node(world);
    const LoadMeter load(assignment.replicas.front());
    const auto watch = world.gpus().cards().empty()
                           ? nullptr
                           : world.gpus().driver().watch({world.gpus().cards().front().pci});
    for (int round = 1; round <= rounds; ++round) {
      measure_device(all);
      measure_links(all);
      log::info("round {} of {}", round, rounds);
    }
    if (watch) add_remarks(watch->stop().front());
    const LoadFacts seen = load.read();
    if (!watch && seen.least_mhz) {
      device_.remarks.push_back(fmt::format("{:.0f} MHz", *seen.least_mhz));
    }
    if (seen.busy.value_or(false)) device_.remarks.push_back("busy: " + busy_because(seen));
    screen.transport = world.description();
    gather(all, screen);
    drop_groups();
    return process_.rank == 0 ? std::optional(std::move(screen)) : std::nullopt;
  }

  // Before the world that they are of.
  void drop_groups() {
    pairs_.clear();
    among_node_.reset();
  }

  // Who this is: node, hardware, switch.
  void describe(World& world, const CpuAssignment& assignment) {
    const Environment environment = environment_of_process();
    node_.host = host_name();
    // As machines are compared, but for the memory, of which two have hardly the same bytes.
    node_.kind = Machine{assignment.cpu_model, "", assignment.machine.cpus.value_or(0), 0}.text();
    node_.group = innermost_switch(environment_value(environment, "SLURM_TOPOLOGY_ADDR"),
                                   environment_value(environment, "SLURM_TOPOLOGY_ADDR_PATTERN"));
    const auto& cards = world.gpus().cards();
    device_.kind = cards.empty() ? node_.kind : cards.front().name;
    device_.name = cards.empty() ? "CPUs " + format_cpus(assignment.replicas.front())
                                 : "GPU " + cards.front().pci;
    if (!cards.empty()) refuse_used(world);
  }

  void refuse_used(World& world) const {
    if (request_.busy_ok) return;
    const std::string& pci = world.gpus().cards().front().pci;
    const GpuFacts now = world.gpus().driver().watch({pci})->stop().front();
    const double bytes = static_cast<double>(now.memory_bytes.value_or(0));
    const double share = now.utilization.value_or(0);
    if (bytes < kOthersBytes && share < kOthersShare) return;
    throw usage_error(fmt::format("GPU {} of {} is used by others: {} of memory, {:.0f} % busy",
                                  pci, node_.host, format_bytes(bytes), 100 * share),
                      "", "leave it out, or measure it as it is with --busy-ok");
  }

  // The ranks of each host, by the first of them; for tests, some ranks each.
  void find_nodes(Communicator& all, MachineScreen& screen) {
    const auto per_node = test_ranks_per_node();
    if (per_node) node_.host += fmt::format("-{}", all.rank() / *per_node);
    const std::vector<std::string> texts = gather_texts(all, json_text(facts_to_json(node_)));
    std::map<std::string, int> known;
    for (std::size_t rank = 0; rank < texts.size(); ++rank) {
      ScreenNode node;
      facts_from_json(parse_json(texts[rank]), node, {node_.host, ""});
      const bool is_here = node.host == node_.host;
      const auto [found, is_new] = known.emplace(node.host, static_cast<int>(leaders_.size()));
      if (is_new) {
        leaders_.push_back(static_cast<int>(rank));
        screen.nodes.push_back(std::move(node));
      }
      if (static_cast<int>(rank) == all.rank()) device_.node = found->second;
      if (is_here) neighbours_.push_back(static_cast<int>(rank));
    }
    has_neighbours_ = texts.size() > screen.nodes.size();
    is_leader_ = leaders_[static_cast<std::size_t>(device_.node)] == all.rank();
  }

  void make_devices(World& world, const CpuAssignment& assignment) {
    DeviceOptions options;
    options.cpus = assignment.replicas.front();
    options.threads = threads_ = static_cast<int>(options.cpus.size());
    options.gpu = world.gpus().device_index(0);
    for (const char* const precision : kPrecisions) {
      options.precision = precision;
      try {
        devices_.emplace_back(precision,
                              find_factory(device_table(), place_.device)->make(options));
      } catch (const Error& error) {
        if (devices_.empty()) throw;
        log::debug("no {}: {}", precision, error.what());
      }
    }
  }

  // One seed for all, as pairs are drawn anew each time.
  static std::uint32_t shared_seed(Communicator& all) {
    std::uint32_t seed = std::random_device()();
    all.broadcast(&seed, sizeof seed, 0);
    return seed;
  }

  // Collective: ranks that lead no node take part without a partner.
  void connect_pairs(World& world, const std::vector<Matching>& matchings) {
    for (std::size_t i = 0; i < matchings.size(); ++i) {
      RankGroup mine{-1, {}};
      for (const auto& [a, b] : matchings[i]) {
        const std::vector<int> ranks = {leaders_[static_cast<std::size_t>(a)],
                                        leaders_[static_cast<std::size_t>(b)]};
        const auto me = std::ranges::find(ranks, process_.rank);
        if (me == ranks.end()) continue;
        mine = {static_cast<int>(me - ranks.begin()), ranks};
        links_.push_back({a, b, {}});
      }
      auto pair = world.connect_group(mine, fmt::format("screen/{}", i));
      if (mine.rank < 0 && is_leader_) links_.push_back({-1, -1, {}});
      pairs_.push_back(std::move(pair));
    }
  }

  // What is between the devices of a node, where it has several.
  void connect_node(World& world) {
    if (!has_neighbours_) return;  // on no node, which all ranks see
    RankGroup mine{-1, neighbours_};
    if (neighbours_.size() > 1) {
      mine.rank =
          static_cast<int>(std::ranges::find(neighbours_, process_.rank) - neighbours_.begin());
    }
    among_node_ = world.connect_group(mine, "screen/node");
  }

  void measure_device(Communicator& all) {
    for (const char* const precision : kPrecisions) {
      all.barrier();  // also of ranks whose CPUs lack one
      const auto found = std::ranges::find(devices_, precision, &PrecisionDevice::first);
      if (found == devices_.end()) continue;
      const auto& device = found->second;
      const double began = now_seconds(), used = cpu_seconds_of_process();
      const ProbeFacts probe = device->probe();
      // The probe's best moments may be those between a neighbour's; what CPUs get counts, too.
      const double got = (cpu_seconds_of_process() - used) / (now_seconds() - began);
      const double share =
          device->memory_kind() == MemoryKind::device ? 1 : got / static_cast<double>(threads_);
      if (probe.flops_per_second) {
        device_rates_.add(std::string("multiply-adds in ") + precision,
                          share * *probe.flops_per_second);
      }
      if (probe.bytes_per_second && found == devices_.begin()) {
        device_rates_.add("memory copies", share * *probe.bytes_per_second);
      }
    }
    Device& device = *devices_.front().second;
    if (device.memory_kind() != MemoryKind::device) return;
    if (copied_.bytes() == 0) {
      copied_ = device.allocate(kCopied);
      staged_ = device.allocate_staging(kCopied);
    }
    all.barrier();
    const double began = now_seconds();
    device.copy_to_device(copied_.data(), staged_.data(), kCopied);
    device_rates_.add("copies from the host",
                      static_cast<double>(kCopied) / (now_seconds() - began));
  }

  void measure_links(Communicator& all) {
    for (std::size_t i = 0; i < pairs_.size(); ++i) {
      all.barrier();
      if (!pairs_[i]) continue;
      Rated rated{std::move(links_[i].measured)};
      measure_sums(*pairs_[i], "", rated);
      links_[i].measured = std::move(rated.measured);
    }
    all.barrier();
    if (among_node_) measure_sums(*among_node_, kWithinNode, node_rates_);
  }

  // On the host, or where the communicator sums alone: in the device's memory.
  void measure_sums(Communicator& some, const std::string& where, Rated& rated) {
    const bool on_host = some.reduces(MemoryKind::host);
    Device& device = *devices_.front().second;
    Memory& sums = on_host ? host_sums_ : device_sums_;
    if (sums.bytes() == 0) {
      sums = on_host ? host_memory(kLargeBytes) : device.allocate(kLargeBytes);
    }
    InlineLane inline_lane;
    Lane& lane = on_host ? inline_lane : device.comm_lane();
    const auto sum = [&](std::size_t bytes, int calls) {
      for (int call = 0; call < calls; ++call) {
        some.all_reduce(sums.data(), bytes / sizeof(float), DType::f32, lane, "screen");
      }
      {
        const StreamWait wait(some, "screen");
        lane.drain();
      }
      some.supervision().throw_if_ended();
    };
    const auto time = [&](std::size_t bytes, int calls) {
      sum(bytes, 1);
      const double began = now_seconds();
      sum(bytes, calls);
      return calls / (now_seconds() - began);
    };
    rated.add(kLargestSums + where, time(kLargeBytes, kLargeSums) * kLargeBytes);
    rated.add(kSmallestSums + where, time(kSmallBytes, kSmallSums));
  }

  void add_remarks(const GpuFacts& gpu) {
    if (!gpu.clock_limits.empty()) {
      device_.remarks.push_back("clocks limited by " + join(gpu.clock_limits, ", "));
    }
    if (gpu.sm_mhz) device_.remarks.push_back(fmt::format("{:.0f} MHz", *gpu.sm_mhz));
    if (gpu.uncorrected_errors.value_or(0) > 0) {
      device_.remarks.push_back(counted(static_cast<double>(*gpu.uncorrected_errors), "ECC error"));
    }
    if (gpu.pcie.find(" of ") != gpu.pcie.npos) device_.remarks.push_back("PCIe " + gpu.pcie);
  }

  // Of each pair its first node tells.
  void gather(Communicator& all, MachineScreen& screen) {
    device_.measured = std::move(device_rates_.measured);
    MachineScreen mine{.devices = {device_}};
    if (is_leader_ && among_node_) {
      node_.measured = std::move(node_rates_.measured);
      mine.nodes = {node_};
    }
    for (std::size_t i = 0; i < links_.size(); ++i) {
      if (links_[i].a == device_.node && is_leader_) mine.links.push_back(links_[i]);
    }
    for (const std::string& text : gather_texts(all, json_text(facts_to_json(mine)))) {
      MachineScreen of_rank;
      facts_from_json(parse_json(text), of_rank, {node_.host, ""});
      screen.devices.push_back(of_rank.devices.front());
      if (!of_rank.nodes.empty()) {
        screen.nodes[static_cast<std::size_t>(of_rank.devices.front().node)].measured =
            std::move(of_rank.nodes.front().measured);
      }
      screen.links.insert(screen.links.end(), of_rank.links.begin(), of_rank.links.end());
    }
    const auto busy = std::ranges::count_if(screen.devices, [](const ScreenDevice& device) {
      return std::ranges::any_of(device.remarks,
                                 [](const std::string& text) { return text.starts_with("busy"); });
    });
    if (busy > 0) {
      screen.warnings.push_back(
          fmt::format("others used {} of {} meanwhile: what is slow there may be they", busy,
                      counted(screen.devices.size(), "device")));
    }
  }

  const ScreenRequest& request_;
  const LaunchSpec& launch_;
  const PlaceConfig& place_;
  ProcessRank process_;
  ScreenNode node_;
  ScreenDevice device_;
  Rated device_rates_;
  std::vector<int> leaders_;  // by node: its first rank
  bool is_leader_ = false;
  std::vector<int> neighbours_;  // the ranks of this node
  bool has_neighbours_ = false;  // a node has several ranks
  std::vector<PrecisionDevice> devices_;
  int threads_ = 1;  // that a device on CPUs computes with
  Memory copied_, staged_;
  std::vector<ScreenLink> links_;                     // one a matching; of ranks that lead a node
  std::vector<std::unique_ptr<Communicator>> pairs_;  // one a matching; null: no partner
  std::unique_ptr<Communicator> among_node_;          // null: this node has one device
  Rated node_rates_;
  Memory host_sums_, device_sums_;
};

}  // namespace

std::string innermost_switch(const std::string& address, const std::string& pattern) {
  const std::vector<std::string> parts = split(address, '.'), kinds = split(pattern, '.');
  if (parts.size() != kinds.size()) return "";
  std::string last;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (kinds[i] == "switch" || kinds[i] == "block") last = parts[i];
  }
  return last;
}

ScreenOutcome run_screen(const ScreenRequest& request, const std::vector<std::string>& command) {
  Point given;
  for (const auto& [name, text] : {std::pair("gpus", request.gpus),
                                   {"nodes", request.nodes},
                                   {"backend", request.backend},
                                   {"device", request.device},
                                   {"cpus_per_task", request.cpus_per_task}}) {
    if (!text.empty()) given.set(name, parsed_value(name, text, option_name(name)));
  }
  given.set("oversubscribe", request.oversubscribe);
  const PlaceConfig place = make_place_config(resolve_place(given));
  LaunchSpec launch = make_launch_spec(place);
  launch.deadlines = request.deadlines;
  if (launch.layout.gpus != launch.layout.ntasks) {
    throw usage_error(fmt::format("backend {} has several replicas a task", launch.backend), "",
                      "use ring, mpi or nccl: a process for each device");
  }
  const ProcessRank process = find_process_rank(environment_of_process());
  const OutputFile file(std::filesystem::path(request.out) / kScreenFile, "--out", "a screen");
  if (process.rank == 0 && !request.out.empty() && !process.launched) {
    make_folder(request.out);
    file.check();
  }
  ScreenOutcome outcome;
  outcome.exit_code = run_ranks(launch, process, command, [&] {
    outcome.screen = Screening(request, launch, place).go();
    if (outcome.screen && !request.out.empty()) {
      make_folder(request.out);
      file.write(to_text(*outcome.screen));
      log::info("see: paceline screen report {}", request.out);
    }
    return 0;
  });
  return outcome;
}

}  // namespace paceline
