// A study's points on the nodes of a site, and its smoke test.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "engine/core/environment.h"
#include "slurm/commands.h"
#include "slurm/site.h"
#include "sweeps/expansion.h"
#include "sweeps/spec.h"

namespace paceline {

// Where another program than this one runs, it may have what this one was built without.
bool is_run_by_this_program(const Site& site);

// Sets the site's device in a spec that names none.
void set_device(Spec& spec, const Site& site);

// Whether a smoke test replaces the spec's devices and backends. Sites whose jobs get GPUs are
// tested with them: many refuse jobs of such partitions without.
bool smokes_on_cpus(const Site& site);

// Makes the same points and scripts as small as they can be.
void make_smoke_test(Spec& spec, Site& site);

// The nodes as the profile describes them, else as Slurm reports them. Without either, "cores" are
// `cores_here`, with a warning.
struct SiteMachine {
  TargetMachine machine;
  std::string warning = {};
};
SiteMachine find_target_machine(const Site& site, bool on_cpus, const SlurmCommands& slurm,
                                int cores_here);

// "device=cuda", "backend=nccl": what the points of a spec run on.
std::set<std::string> list_services(const Spec& spec, const TargetMachine& machine);

// The site's data folder as this shell has it. Empty: its variable is set only in jobs.
std::optional<std::string> find_data_folder(const Site& site, const Environment& environment);

// Where jobs look for data that this machine does not have.
std::string data_note(const Site& site, const Environment& environment);

// How to name a data set's folder. `option`: --data was given.
std::string absent_data_cure(const Site& site, bool option);

}  // namespace paceline
