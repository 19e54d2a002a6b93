#include "engine/launch/topology.h"

#include <fmt/format.h>
#include <hwloc.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <set>

#include "engine/core/error.h"
#include "engine/core/text.h"

namespace paceline {

// The names are those of lscpu (util-linux, sys-utils/lscpu-arm.c).
std::string arm_model(const std::string& implementer, const std::string& part) {
  if (implementer.empty() || part.empty()) return "unknown CPU";
  struct Known {
    const char *implementer, *part, *name;
  };
  constexpr Known kKnown[] = {{"0x41", "0xd0c", "Neoverse-N1"},
                              {"0x41", "0xd40", "Neoverse-V1"},
                              {"0x41", "0xd49", "Neoverse-N2"},
                              {"0x41", "0xd4f", "Neoverse-V2"},
                              {"0x46", "0x001", "A64FX"}};
  for (const Known& known : kKnown) {
    if (implementer == known.implementer && part == known.part) return known.name;
  }
  return fmt::format("aarch64 CPU, implementer {}, part {}", implementer, part);
}

namespace {

struct Destroyer {
  void operator()(hwloc_topology* topology) const { hwloc_topology_destroy(topology); }
};
using Handle = std::unique_ptr<hwloc_topology, Destroyer>;

void check(int result, const char* what) {
  if (result == 0) return;
  throw internal_error(fmt::format("{}: {}", what, std::strerror(errno)), "hwloc",
                       "report it with the output of lstopo");
}

// What tests give in place of this machine.
struct Description {
  std::string synthetic, xml;
  bool is_here() const { return synthetic.empty() && xml.empty(); }
};

Handle open_topology(const Description& description) {
  hwloc_topology_t raw = nullptr;
  check(hwloc_topology_init(&raw), "cannot start reading the topology");
  Handle handle(raw);
  if (!description.synthetic.empty()) {
    check(hwloc_topology_set_synthetic(raw, description.synthetic.c_str()),
          "not a synthetic topology");
  }
  if (!description.xml.empty()) {
    check(hwloc_topology_set_xml(raw, description.xml.c_str()), "not a stored topology");
  }
  check(hwloc_topology_set_type_filter(raw, HWLOC_OBJ_PCI_DEVICE, HWLOC_TYPE_FILTER_KEEP_IMPORTANT),
        "cannot keep devices");
  // Linux tells of devices without it, and libpciaccess leaks. Where there is none, nothing is left
  // out.
  hwloc_topology_set_components(raw, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, "pci");
  check(hwloc_topology_set_flags(raw, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED), "cannot set flags");
  check(hwloc_topology_load(raw), "cannot read the topology");
  return handle;
}

int find_numa(hwloc_topology_t topology, hwloc_obj_t pu) {
  hwloc_obj_t node = nullptr;
  while ((node = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, node)) != nullptr) {
    if (hwloc_bitmap_intersects(node->cpuset, pu->cpuset)) {
      return static_cast<int>(node->os_index);
    }
  }
  return 0;
}

// Display and 3D controllers, in the notation of canonical_pci().
std::map<std::string, int> find_gpus(hwloc_topology_t topology) {
  constexpr unsigned kDisplay = 0x03;  // the PCI specification's base class
  std::map<std::string, int> found;
  for (hwloc_obj_t device = nullptr;
       (device = hwloc_get_next_pcidev(topology, device)) != nullptr;) {
    const auto& pci = device->attr->pcidev;
    const hwloc_obj_t near = hwloc_get_non_io_ancestor_obj(topology, device);
    if (pci.class_id >> 8 != kDisplay || hwloc_bitmap_weight(near->nodeset) != 1) continue;
    found[fmt::format("{:04x}:{:02x}:{:02x}.{:x}", static_cast<unsigned>(pci.domain), pci.bus,
                      pci.dev, pci.func)] = hwloc_bitmap_first(near->nodeset);
  }
  return found;
}

std::string read_model(hwloc_topology_t topology) {
  const auto info = [&](const char* key) {
    for (const hwloc_obj_type_t type : {HWLOC_OBJ_PACKAGE, HWLOC_OBJ_MACHINE}) {
      const hwloc_obj_t object = hwloc_get_obj_by_type(topology, type, 0);
      const char* value = object ? hwloc_obj_get_info_by_name(object, key) : nullptr;
      if (value != nullptr) return std::string(trim(value));
    }
    return std::string();
  };
  const std::string model = info("CPUModel");
  return model.empty() ? arm_model(info("CPUImplementer"), info("CPUPart")) : model;
}

// hwloc's logical order puts near objects together and a core's threads side by side.
Topology read(const Description& description) {
  const Handle handle = open_topology(description);
  const hwloc_topology_t raw = handle.get();
  const CpuSet usable = description.is_here() ? usable_cpus() : CpuSet{};
  Topology topology;
  topology.cpu_model = read_model(raw);
  topology.machine_cpus = std::max(1, hwloc_get_nbobjs_by_type(raw, HWLOC_OBJ_PU));
  topology.machine_cores = hwloc_get_nbobjs_by_type(raw, HWLOC_OBJ_CORE);
  if (topology.machine_cores <= 0) topology.machine_cores = topology.machine_cpus;
  topology.numa_nodes = std::max(1, hwloc_get_nbobjs_by_type(raw, HWLOC_OBJ_NUMANODE));
  topology.memory_bytes =
      static_cast<std::int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  if (topology.numa_nodes > 1) topology.gpu_numa = find_gpus(raw);
  hwloc_obj_t pu = nullptr;
  while ((pu = hwloc_get_next_obj_by_type(raw, HWLOC_OBJ_PU, pu)) != nullptr) {
    const int id = static_cast<int>(pu->os_index);
    if (description.is_here() && !std::binary_search(usable.begin(), usable.end(), id)) continue;
    const hwloc_obj_t core = hwloc_get_ancestor_obj_by_type(raw, HWLOC_OBJ_CORE, pu);
    const auto number = core ? core->logical_index : pu->logical_index;
    topology.cpus.push_back({id, static_cast<int>(number), find_numa(raw, pu)});
  }
  return topology;
}

}  // namespace

CpuSet usable_cpus() {
  // The kernel wants room for every CPU it could have, not only for those that are there.
  for (int room = 1024; room <= 1 << 20; room *= 2) {
    cpu_set_t* mask = CPU_ALLOC(static_cast<std::size_t>(room));
    const std::size_t bytes = CPU_ALLOC_SIZE(static_cast<std::size_t>(room));
    const int result = sched_getaffinity(0, bytes, mask);
    CpuSet cpus;
    for (int cpu = 0; result == 0 && cpu < room; ++cpu) {
      if (CPU_ISSET_S(static_cast<std::size_t>(cpu), bytes, mask)) cpus.push_back(cpu);
    }
    CPU_FREE(mask);
    if (!cpus.empty()) return cpus;
    if (errno != EINVAL) break;
  }
  throw usage_error(fmt::format("the affinity cannot be read: {}", strerror(errno)),
                    "sched_getaffinity", "run it where the process may read its CPUs");
}

int Topology::usable_cores() const {
  return static_cast<int>(distinct(cpus, &Cpu::core).size());
}

std::optional<int> Topology::numa_of_gpu(const std::string& pci) const {
  const auto found = gpu_numa.find(canonical_pci(pci));
  return found == gpu_numa.end() ? std::nullopt : std::optional(found->second);
}

std::set<int> Topology::find_nodes(const CpuSet& set) const {
  std::set<int> nodes;
  for (const Cpu& cpu : cpus) {
    if (std::ranges::find(set, cpu.id) != set.end()) nodes.insert(cpu.numa);
  }
  return nodes;
}

Topology topology_of_machine() {
  return read({});
}

Topology synthetic_topology(const std::string& synthetic) {
  return read({synthetic, ""});
}

Topology stored_topology(const std::filesystem::path& xml) {
  return read({"", xml.string()});
}

}  // namespace paceline
