#include "run/diagnosis.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>

#include "engine/core/environment.h"
#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/launch/environment_check.h"
#include "engine/launch/program.h"
#include "engine/launch/topology.h"
#include "engine/meter/energy_meter.h"
#include "engine/meter/network.h"
#include "engine/start/spawn.h"
#include "results/names.h"
#include "run/version.h"

namespace paceline {

namespace {

constexpr char kInstallMpi[] =
    "install Open MPI (Debian: openmpi-bin libopenmpi-dev; module load openmpi; spack install "
    "openmpi; conda install -c conda-forge openmpi)";
constexpr char kInstallGnuplot[] =
    "install it (Debian: gnuplot-nox; module load gnuplot; spack install gnuplot; conda install -c "
    "conda-forge gnuplot)";
// Two ranks of the largest workload of the quick study need less; Docker gives 64 MB by default.
constexpr double kSmallSharedMemory = 128e6;

DiagnosisSection about_build() {
  const Build b = build();
  return {"build",
          {{"version", build_id()},
           {"compiler", b.compiler},
           {"flags", b.compiler_flags},
           {"build type", b.build_type},
           {"modules", b.modules.empty() ? "none" : b.modules}}};
}

DiagnosisSection about_machine() {
  const Topology machine = topology_of_machine();
  CpuSet cpus = mapped(machine.cpus, &Cpu::id);
  std::ranges::sort(cpus);
  const std::string note = set_aside_note();
  DiagnosisSection section = {
      "machine",
      {{"CPU", machine.cpu_model},
       {"usable CPUs", fmt::format("{} of {} (affinity mask {})", cpus.size(), machine.machine_cpus,
                                   format_cpus(cpus))},
       {"OpenMP variables", note.empty() ? "none set aside" : note},
       {"cores", fmt::format("{} of {}{}", machine.usable_cores(), machine.machine_cores,
                             machine.hyperthreads() ? ", with hyper-threads" : "")},
       {"NUMA nodes", std::to_string(machine.numa_nodes)},
       {"memory", format_bytes(static_cast<double>(machine.memory_bytes))}}};
  const std::string ports = describe_ports(network_ports());
  section.facts.push_back({"network", ports.empty() ? "no card that is up" : ports});
  if (const std::string cards = describe_cards(); !cards.empty()) {
    section.facts.push_back({"GPUs", cards});
  }
  return section;
}

ProcessRank place_or_problem(const Environment& environment, Diagnosis& diagnosis,
                             std::string& text) {
  try {
    const ProcessRank process = find_process_rank(environment);
    text = process.launched
               ? fmt::format("{}: rank {} of {}", process.evidence, process.rank, process.size)
               : "none: ranks are started by paceline";
    if (const std::string job = describe_job(environment); !job.empty()) text += "; in " + job;
    return process;
  } catch (const Error& error) {
    text = "unclear";
    diagnosis.problems.push_back({error.what(), "", true});
    return {};
  }
}

// Ranks started by one MPI's mpirun and linked to another's library are singletons.
void check_launcher(const std::optional<Launcher>& launcher, const std::vector<Service>& asked,
                    Diagnosis& diagnosis) {
  const auto& backend = *std::ranges::find_if(known_names().backends, &Name::mpirun);
  const auto mpi = std::ranges::find(asked, backend.name, &Service::name);
  if (mpi == asked.end()) return;
  if (!launcher) {
    diagnosis.problems.push_back(
        {"backend mpi is built, but there is no mpirun in PATH", std::string(kInstallMpi), true});
    return;
  }
  const bool library_is_open_mpi = mpi->description.starts_with("Open MPI");
  const bool launcher_is_open_mpi = launcher->make == LauncherMake::open_mpi;
  if (!mpi->serves || library_is_open_mpi == launcher_is_open_mpi) return;
  diagnosis.problems.push_back(
      {fmt::format("{} is \"{}\", but this was built with {}", launcher->program.string(),
                   launcher->version, mpi->description),
       "put the mpirun of that MPI first in PATH", true});
}

std::optional<double> free_bytes(const std::filesystem::path& folder) {
  std::error_code code;
  const auto space = std::filesystem::space(folder, code);
  if (code) return std::nullopt;
  return static_cast<double>(space.available);
}

DiagnosisSection about_launch(const Environment& environment, const std::string& evidence,
                              const std::vector<Service>& asked, Diagnosis& diagnosis) {
  const auto launcher = find_launcher(environment);
  check_launcher(launcher, asked, diagnosis);
  const std::string folder = "/dev/shm";
  const auto free = free_bytes(folder);
  if (free && *free < kSmallSharedMemory) {
    diagnosis.problems.push_back(
        {fmt::format(
             "{} has only {} free: the ranks of a node may not fit their gradients there, and "
             "ring and mpi-ring then sum over messages",
             folder, format_bytes(*free)),
         "enlarge it (mount -o remount,size=..., docker run --shm-size=...)", false});
  }
  return {
      "launch",
      {{"launcher in force", evidence},
       {"mpirun", launcher ? fmt::format("{} ({})", launcher->program.string(), launcher->version)
                           : "not found"},
       {"shared memory", free ? fmt::format("{} free in {}", format_bytes(*free), folder)
                              : folder + ": not there"}}};
}

std::string service_text(const Name& name, std::string_view kind, const std::vector<Service>& asked,
                         Diagnosis& diagnosis) {
  if (!name.built) return "not built: " + name.reason;
  for (const Service& service : asked) {
    if (service.kind != kind || service.name != name.name) continue;
    if (service.serves) return service.description;
    if (service.absent) return "not here: " + service.description;
    // Backends of one process do not serve under mpirun or srun, and need not.
    if (name.tasks == "node") return "not under this launcher: " + service.description;
    diagnosis.problems.push_back(
        {fmt::format("{} {} does not serve here: {}", kind, name.name, service.description), "",
         true});
    return "does not serve here: " + service.description;
  }
  return "built";
}

DiagnosisSection about_names(std::string title, std::string_view kind,
                             const std::vector<Name>& names, const std::vector<Service>& asked,
                             Diagnosis& diagnosis) {
  DiagnosisSection section{std::move(title), {}};
  for (const Name& name : names) {
    section.facts.push_back({name.name, service_text(name, kind, asked, diagnosis)});
  }
  return section;
}

DiagnosisSection about_tools(const Environment& environment, Diagnosis& diagnosis) {
  const auto gnuplot = find_program("gnuplot", environment);
  std::string text = "not found";
  if (gnuplot) {
    const auto version = capture_output({gnuplot->string(), "--version"});
    text = fmt::format("{} ({})", gnuplot->string(), trim(version));
  } else {
    diagnosis.problems.push_back(
        {"no gnuplot in PATH: tables are printed, plots are not drawn", kInstallGnuplot, false});
  }
  const auto sbatch = find_program("sbatch", environment);
  return {"tools", {{"gnuplot", text}, {"Slurm", sbatch ? sbatch->string() : "not found"}}};
}

// A look at each counter, of a fifth of a second.
DiagnosisSection about_energy(Diagnosis& diagnosis) {
  constexpr auto kLook = std::chrono::milliseconds(200);
  EnergySources sources = energy_sources();
  for (const MeterTrouble& trouble : sources.troubles) {
    diagnosis.problems.push_back({trouble.what, trouble.cure, false});
  }
  DiagnosisSection section{"energy", gpu_meters()};
  if (sources.counters.empty()) {
    section.facts.push_back(
        {"CPUs and node", sources.troubles.empty()
                              ? "no counter: no RAPL, no Cray pm_counters, no hwmon power"
                              : "no counter that this user may read"});
    return section;
  }
  EnergyMeter meter(std::move(sources.counters), 1);
  std::this_thread::sleep_for(kLook);
  meter.update();
  for (std::size_t i = 0; i < meter.counters().size(); ++i) {
    const EnergyCounter& counter = meter.counters()[i];
    const EnergyReading reading = meter.reading(i, 0);
    const std::string now =
        reading.joules > 0 ? fmt::format(", {:.3g} W now", reading.watts()) : "";
    section.facts.push_back({counter.place, counter.meter + now});
  }
  return section;
}

void note_missing_mpi(const std::vector<Name>& backends, Diagnosis& diagnosis) {
  for (const Name& name : backends) {
    if (!name.mpirun || name.built) continue;
    diagnosis.problems.push_back({"backend mpi is not in this build: " + name.reason,
                                  fmt::format("{}, then build again", kInstallMpi), false});
  }
}

}  // namespace

std::vector<Problem> check_environment(const Environment& environment) {
  std::vector<Problem> problems;
  const auto add = [&](const std::vector<Warning>& remarks) {
    for (const Warning& remark : remarks) problems.push_back({remark.what, remark.cure, false});
  };
  add(remarks_on_modules(build().modules, environment_value(environment, "LOADEDMODULES")));
  add(find_remarks(environment, scan_node(environment)));
  return problems;
}

Diagnosis diagnose(const Environment& environment) {
  Diagnosis diagnosis;
  std::string evidence;
  const ProcessRank process = place_or_problem(environment, diagnosis, evidence);
  const std::vector<Service> asked = services(process);
  const Names& names = known_names();
  diagnosis.sections = {about_build(),
                        about_machine(),
                        about_launch(environment, evidence, asked, diagnosis),
                        about_names("backends", "backend", names.backends, asked, diagnosis),
                        about_names("devices", "device", names.devices, asked, diagnosis),
                        about_names("workloads", "workload", names.workloads, asked, diagnosis),
                        about_tools(environment, diagnosis),
                        about_energy(diagnosis)};
  note_missing_mpi(names.backends, diagnosis);
  std::ranges::move(check_environment(environment), std::back_inserter(diagnosis.problems));
  return diagnosis;
}

}  // namespace paceline
