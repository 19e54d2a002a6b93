#include "slurm/site_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/core/backend_stack.h"
#include "engine/core/text.h"
#include "results/names.h"
#include "slurm/cluster_facts.h"

namespace paceline {

namespace {

// Where there is no GPU, another backend stands for NCCL: as many tasks of as many CPUs.
Value without_gpus(const Value& backend) {
  BackendStack stack = split_stack(to_text(backend));
  const std::string other = find_name("backend", stack.between).stand_in;
  if (!other.empty()) stack.between = other;
  return to_text(stack);
}

// "SCRATCH" of "$SCRATCH/data" and "${SCRATCH}/data"; empty: it begins with no variable.
std::string leading_variable(const std::string& text) {
  if (text.empty() || text[0] != '$') return "";
  const bool is_braced = text.starts_with("${");
  const std::size_t begin = is_braced ? 2 : 1;
  return text.substr(begin, text.find(is_braced ? '}' : '/') - begin);
}

}  // namespace

bool is_run_by_this_program(const Site& site) {
  return !site.container.on && site.program.empty();
}

void set_device(Spec& spec, const Site& site) {
  const auto is_device = [](const Axis& axis) { return axis.name == "device"; };
  const bool is_named =
      spec.fixed.find("device") || std::any_of(spec.axes.begin(), spec.axes.end(), is_device) ||
      std::any_of(spec.zips.begin(), spec.zips.end(),
                  [&](const Zip& zip) { return std::any_of(zip.begin(), zip.end(), is_device); });
  if (!site.device.empty() && !is_named) spec.fixed.set("device", site.device);
}

bool smokes_on_cpus(const Site& site) {
  return site.gpu_form == GpuForm::none;
}

void make_smoke_test(Spec& spec, Site& site) {
  spec.name += ".smoke";
  if (smokes_on_cpus(site)) {
    change_values(spec, "backend", without_gpus);
    for (const char* assignment : {"device=cpu", "precision=fp32"}) override_axis(spec, assignment);
  }
  spec.repeats = 1;
  spec.control = false;
  for (const char* assignment : {"input=synthetic", "steps=2", "evaluate=none", "weights=none"}) {
    override_axis(spec, assignment);
  }
  site.minutes = 10;
}

SiteMachine find_target_machine(const Site& site, bool on_cpus, const SlurmCommands& slurm,
                                int cores_here) {
  NodeCounts facts;
  const bool asks_gpus = site.gpu_form != GpuForm::none && site.gpus_per_node == 0;
  if (site.cores_per_node == 0 || asks_gpus) facts = count_nodes(site, slurm);
  NodeSize node{facts.cpus, facts.gpus, on_cpus, "as sinfo reports"};
  if (site.cores_per_node > 0) {
    facts.cores = node.cpus = site.cores_per_node;
    node.source = site.where;
  }
  if (site.cpus_per_node > 0) node.cpus = site.cpus_per_node;
  if (site.gpus_per_node > 0) node.gpus = site.gpus_per_node;
  node.cpus_per_gpu = site.most_cpus_per_gpu;
  std::vector<std::string> notes;
  if (asks_gpus && node.gpus == 0 && !on_cpus) {
    notes.push_back(
        fmt::format("{}: \"gpus_per_node\" is missing and Slurm did not report it, so "
                    "jobs may ask for more GPUs than a node has; add \"gpus_per_node\"",
                    site.where));
  }
  if (facts.cores == 0) {
    notes.push_back(
        fmt::format("{}: \"cores_per_node\" is missing and Slurm did not report it, so "
                    "\"cores\" in the spec means {}, as on this machine; add "
                    "\"cores_per_node\"",
                    site.where, cores_here));
  }
  // Cores of this machine are not the nodes': nobody gets a share of them.
  const bool known = facts.cores > 0;
  return {{known ? facts.cores : cores_here, known, {}, node}, join(notes, "; ")};
}

std::set<std::string> list_services(const Spec& spec, const TargetMachine& machine) {
  std::set<std::string> services;
  for (const PlannedPoint& point : expand(spec, machine, Unbuilt::keep).points) {
    for (const char* kind : {"device", "backend"}) {
      const auto name = point.parameters.text(kind);
      if (name) services.insert(std::string(kind) + "=" + *name);
    }
  }
  return services;
}

std::optional<std::string> find_data_folder(const Site& site, const Environment& environment) {
  const std::string name = leading_variable(site.data);
  if (name.empty()) return site.data;
  const auto known = environment.find(name);
  if (known == environment.end()) return std::nullopt;
  const std::size_t end = name.size() + (site.data.starts_with("${") ? 3 : 1);
  return known->second + site.data.substr(std::min(end, site.data.size()));
}

std::string data_note(const Site& site, const Environment& environment) {
  if (!find_data_folder(site, environment)) {
    return fmt::format("data is {} in {}, and {} is not set here: only the jobs look there",
                       site.data, site.where, leading_variable(site.data));
  }
  return fmt::format("the data set is not on this machine; the jobs look in {}",
                     site.data.empty() ? "$PACELINE_DATA and data"
                                       : fmt::format("{} ({})", site.data, site.where));
}

std::string absent_data_cure(const Site& site, bool option) {
  if (option) return "correct --data";
  return site.data.empty()
             ? fmt::format("name its folder by --data, or as \"data\" in {}", site.where)
             : fmt::format("correct \"data\" in {}", site.where);
}

}  // namespace paceline
