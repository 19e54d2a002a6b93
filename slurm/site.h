// A site profile (sites/*.json): what a cluster's Slurm requires, and what Paceline's jobs need
// there. README.md describes the keys.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "results/machine.h"
#include "slurm/commands.h"

namespace paceline {

enum class GpuForm { none, gres, gpus, gpus_per_task, gpus_per_node };
enum class MemoryForm { none, mem, mem_per_cpu, mem_per_gpu };
enum class JobLauncher { srun, mpirun };

struct SiteContainer {
  bool on = false;
  std::string command = "apptainer", image;  // "srun": by its own options (pyxis)
  std::string edf;                           // of srun at CSCS: its --environment
  bool nv = true;                            // if replicas are GPUs
  std::vector<std::string> overlays, binds;
  std::string cache;  // folder for image downloads, instead of the home folder

  bool is_of_srun() const { return command == "srun"; }
};

// Texts for paths and environment variables may start with "$NAME" or "${NAME}", which the job
// expands. Everything else is literal.
struct Site {
  std::string name, description;
  std::string where;  // the file, for errors

  std::string account, partition, qos, constraint, hint;
  bool exclusive = false;
  bool ntasks_per_node = true;
  bool error_file = false;  // standard error goes to a file of its own
  GpuForm gpu_form = GpuForm::none;
  std::string gpu_type;
  MemoryForm memory_form = MemoryForm::none;
  double gb_per_replica = 4;              // until a record is available
  int gb_per_cpu = 0;                     // the least that mem_per_cpu requests, in Slurm's G
  std::vector<std::string> burst_buffer;  // "#BB ...", "#DW ..."
  std::vector<std::string> extra;         // "#SBATCH ..."

  int minutes = 60;          // time limit without records
  double margin = 1.5;       // factor on the slowest known run
  int most_minutes = 0;      // the site's maximum; 0: unknown
  int throttle = 0;          // concurrent elements per array; 0: unlimited
  int max_array_size = 0;    // 0: ask Slurm
  int max_submit = 0;        // maximum elements in the queue; 0: unknown
  int signal_seconds = 120;  // signal this long before the time limit; 0: no signal
  bool requeue = false;      // requeue jobs that end with 75

  std::string device;           // default for specs
  int cores_per_node = 0;       // "cores" in specs; 0: use this machine's
  int cpus_per_node = 0;        // as Slurm counts them; 0: cores_per_node
  int gpus_per_node = 0;        // 0: unknown
  int most_cpus_per_gpu = 0;    // that a job may ask for; 0: unknown
  std::optional<Machine> node;  // description of the nodes; may be partial
  bool reference = true;        // each job also runs a small reference point

  bool module_purge = false;
  std::vector<std::string> modules;
  std::map<std::string, std::string> environment;
  std::vector<std::string> unset;  // variables
  std::vector<std::string> setup;  // verbatim script lines

  std::string data;     // PACELINE_DATA
  std::string stage;    // --stage of a run
  std::string program;  // paceline on the cluster; empty: the submitting one
  JobLauncher launcher = JobLauncher::srun;
  std::vector<std::string> launcher_options = {"--mpi=pmix"};
  SiteContainer container;
};

// Throws input naming key, file and line, suggesting the nearest known key or value.
Site read_site(const std::filesystem::path& file);
Site parse_site(const std::string& name, std::string_view text);
std::string site_schema();  // JSON Schema of the file

// Placeholders that the user must replace: "account is XXX@v100", by key. Detects "XXX" and
// "<...>".
std::vector<std::string> list_placeholders(const Site& site);
void refuse_placeholders(const Site& site);  // throws usage with all of them

// The form's Slurm option.
std::string_view to_string(GpuForm form);

// Checks whether a site profile matches the cluster, for paceline doctor.

struct SiteFinding {
  std::string what, cure;
  bool blocks = false;  // submissions would be rejected, or jobs would fail
};

struct SiteReport {
  std::vector<std::pair<std::string, std::string>> facts;  // name, text
  std::vector<SiteFinding> findings;
};

// What Slurm would refuse of the profile: a partition or an account that is not there. Empty where
// it cannot be asked.
std::vector<SiteFinding> find_refusals(const Site& site, const SlurmCommands& slurm);

// Asks Slurm for its version, limits, partitions, GPUs and MPI types, and checks the files in the
// profile (those without variables). Submits no job.
SiteReport check_site(const Site& site, const SlurmCommands& slurm);

}  // namespace paceline
