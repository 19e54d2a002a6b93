// A site profile (sites/*.json): what a cluster's Slurm wants to hear and what our jobs need there.
// README.md describes the keys.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "results/machine.h"

namespace paceline {

enum class GpuForm { none, gres, gpus, gpus_per_task, gpus_per_node };
enum class MemoryForm { none, mem, mem_per_cpu, mem_per_gpu };
enum class JobLauncher { srun, mpirun };

struct SiteContainer {
  bool on = false;
  std::string command = "apptainer", image;
  bool nv = true;  // where the replicas are GPUs
  std::vector<std::string> overlays, binds;
  std::string cache;  // folder of its downloads, which else lie in the home folder
};

// Texts that become paths, or values of environment variables, may begin with "$NAME" or
// "${NAME}", which the job fills in; all else in a profile is taken as it stands.
struct Site {
  std::string name, description;
  std::string where;  // the file, for errors

  std::string account, partition, qos, constraint, hint;
  bool exclusive = false;
  bool ntasks_per_node = true;
  GpuForm gpu_form = GpuForm::none;
  std::string gpu_type;
  MemoryForm memory_form = MemoryForm::none;
  double gb_per_replica = 4;              // until a record tells
  std::vector<std::string> burst_buffer;  // "#BB ...", "#DW ..."
  std::vector<std::string> extra;         // "#SBATCH ..."

  int minutes = 60;          // of a run that no record tells the time of
  double margin = 1.5;       // on the slowest known run
  int most_minutes = 0;      // the site's limit; 0: none known
  int throttle = 0;          // elements of one array at a time; 0: no limit
  int max_array_size = 0;    // 0: asked of Slurm
  int max_submit = 0;        // elements in the queue at a time; 0: no limit known
  int signal_seconds = 120;  // before the time limit; 0: no signal
  bool requeue = false;      // a job that ended with 75 puts itself back into the queue

  std::string device;           // of specs that name none
  int cores_per_node = 0;       // "cores" in specs; 0: those of this machine
  std::optional<Machine> node;  // what its nodes are; a part of it will do
  bool reference = true;        // each job also runs a small point that is the same everywhere

  bool module_purge = false;
  std::vector<std::string> modules;
  std::map<std::string, std::string> environment;
  std::vector<std::string> unset;  // variables
  std::vector<std::string> setup;  // lines of the script, verbatim

  std::string data;     // PACELINE_DATA
  std::string stage;    // --stage of a run
  std::string program;  // paceline there; empty: the one that submits
  JobLauncher launcher = JobLauncher::srun;
  std::vector<std::string> launcher_options = {"--mpi=pmix"};
  SiteContainer container;
};

// Throws input naming key, file and line, with the nearest known key or value.
Site read_site(const std::filesystem::path& file);
Site parse_site(const std::string& name, std::string_view text);

// What a profile still has to be filled in: "account is XXX@v100", by key; from "XXX", "<...>".
std::vector<std::string> placeholders_of(const Site& site);

// As Slurm's options are written.
std::string_view text_of(GpuForm form);
std::string_view text_of(MemoryForm form);

}  // namespace paceline
