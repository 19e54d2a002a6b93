#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "cli/study_options.h"
#include "engine/core/backend_stack.h"
#include "engine/core/environment.h"
#include "engine/core/error.h"
#include "engine/launch/topology.h"
#include "results/names.h"
#include "slurm/cluster_facts.h"
#include "slurm/commands.h"

namespace paceline {

namespace fs = std::filesystem;

namespace {

// Where there is no GPU, Gloo stands for NCCL: as many tasks of as many CPUs.
Value without_gpus(const Value& backend) {
  BackendStack stack = split_stack(to_text(backend));
  const std::string other = find_name("backend", stack.between).stand_in;
  if (!other.empty()) stack.between = other;
  return to_text(stack);
}

// Sites whose jobs get GPUs are tested with them: many refuse jobs of such partitions without.
bool smokes_on_cpus(const Site& site) {
  return site.gpu_form == GpuForm::none;
}

// The same points and scripts, as small as they can be.
void make_small(Spec& spec, Site& site) {
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

bool names_device(const Spec& spec) {
  const auto is_device = [](const auto& axis) { return axis.name == "device"; };
  return spec.fixed.find("device") || std::any_of(spec.axes.begin(), spec.axes.end(), is_device) ||
         std::any_of(spec.zips.begin(), spec.zips.end(), [&](const Zip& zip) {
           return std::any_of(zip.begin(), zip.end(), is_device);
         });
}

// "device=cuda", "backend=nccl": what the points of a spec run on.
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

// The nodes as the profile says, else as Slurm reports them. Without either, "cores" are this
// machine's, with a warning.
TargetMachine find_target_machine(const Site& site, bool on_cpus, std::string& warning) {
  NodeCounts facts;
  const bool asks_gpus = site.gpu_form != GpuForm::none && site.gpus_per_node == 0;
  if (site.cores_per_node == 0 || asks_gpus) {
    facts = count_nodes(site, SlurmCommands(environment_of_process()));
  }
  NodeSize node{facts.cpus, facts.gpus, on_cpus, "as sinfo reports"};
  if (site.cores_per_node > 0) {
    facts.cores = node.cpus = site.cores_per_node;
    node.source = site.where;
  }
  if (site.cpus_per_node > 0) node.cpus = site.cpus_per_node;
  if (site.gpus_per_node > 0) node.gpus = site.gpus_per_node;
  if (facts.cores > 0) return {facts.cores, true, {}, node};
  const int here = topology_of_machine().usable_cores();
  warning = fmt::format(
      "{}: \"cores_per_node\" is missing and Slurm did not report it, so \"cores\" in the spec "
      "means {}, as on this machine; add \"cores_per_node\"",
      site.where, here);
  return {here, false, {}, node};  // not the nodes': nobody gets a share of them
}

}  // namespace

Site load_site(const SubmitOptions& options) {
  Site site = read_site(options.site);
  if (!options.data.empty()) site.data = fs::absolute(options.data).string();
  if (options.no_container) site.container.on = false;
  return site;
}

bool is_run_by_this_program(const Site& site) {
  return !site.container.on && site.program.empty();
}

StudyPlan make_plan(const SubmitOptions& options, Site& site, std::set<std::string>& services,
                    std::string& warning, TargetPrecision& precision) {
  StudyPlan plan;
  plan.spec = read_spec(options.spec);
  if (!site.device.empty() && !names_device(plan.spec)) {
    plan.spec.fixed.set("device", site.device);
  }
  for (const std::string& assignment : options.set) override_axis(plan.spec, assignment);
  if (options.repeats > 0) plan.spec.repeats = options.repeats;
  plan.spec.control = plan.spec.control || options.control;
  precision = read_target_precision(options, plan.spec);
  precision.in_waves = true;
  if (precision.share > 0 && options.smoke) {
    throw Error(ErrorKind::usage, "a smoke test measures nothing", "--until-precision",
                "leave out one of --smoke and --until-precision");
  }
  const bool on_cpus = options.smoke && smokes_on_cpus(site);
  const TargetMachine machine = find_target_machine(site, on_cpus, warning);
  if (on_cpus) services = list_services(plan.spec, machine);
  if (options.smoke) make_small(plan.spec, site);
  if (is_run_by_this_program(site) && !engine_is_here() && !options.dry_run) {
    throw Error(ErrorKind::usage, "this build has no engine, so its jobs cannot train", site.where,
                "name the program of the compute nodes (\"program\"), or add --dry-run");
  }
  plan.expansion = expand(plan.spec, machine, Unbuilt::keep);
  plan.study = fs::absolute(fs::path(options.results) / plan.spec.name).lexically_normal();
  return plan;
}

}  // namespace paceline
