#include "engine/launch/process_rank.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/core/error.h"
#include "engine/core/hash.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

// Reads the whole numbers that launchers leave.
class Numbers {
 public:
  explicit Numbers(const Environment& environment) : environment_(environment) {}

  bool has(const std::string& name) const { return environment_.count(name) != 0; }

  std::optional<int> find(const std::string& name) const {
    const auto found = environment_.find(name);
    if (found == environment_.end()) return std::nullopt;
    const auto value = to_integer(found->second);
    if (!value || *value < 0 || *value > INT32_MAX) {
      throw usage_error(fmt::format("{} is not a rank or count", found->second), name,
                        "unset it, or start the ranks with mpirun or srun --mpi=pmix");
    }
    return static_cast<int>(*value);
  }

  int need(const std::string& name, std::string_view because) const {
    if (const auto value = find(name)) return *value;
    throw usage_error(fmt::format("{} is set but {} is not", because, name), "",
                      fmt::format("set {0}, or unset {1} and start the ranks with mpirun or "
                                  "srun --mpi=pmix",
                                  name, because));
  }

  std::string text(const std::string& name) const { return environment_value(environment_, name); }

 private:
  const Environment& environment_;
};

// The variables of launchers that name all four numbers. The rank's shows the launcher, if `also`
// is there, too.
struct Launched {
  const char *rank, *size, *local_rank, *local_size, *evidence, *also = nullptr;
};

constexpr Launched kTorchrun{
    "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "torchrun (RANK)", "WORLD_SIZE"};
constexpr Launched kOpenMpi{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
                            "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE",
                            "Open MPI (OMPI_COMM_WORLD_RANK)"};
constexpr Launched kPals{"PALS_RANKID", "PMI_SIZE", "PALS_LOCAL_RANKID", "PMI_LOCAL_SIZE",
                         "PALS (PALS_RANKID)"};
// LSF's jsrun.
constexpr Launched kJsrun{"JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE", "JSM_NAMESPACE_LOCAL_RANK",
                          "JSM_NAMESPACE_LOCAL_SIZE", "jsrun (JSM_NAMESPACE_RANK)"};

template <const Launched& kNames>
std::optional<ProcessRank> from(const Numbers& env) {
  if (!env.has(kNames.rank) || (kNames.also && !env.has(kNames.also))) return std::nullopt;
  return ProcessRank{.rank = env.need(kNames.rank, kNames.rank),
                     .size = env.need(kNames.size, kNames.rank),
                     .local_rank = env.need(kNames.local_rank, kNames.rank),
                     .local_size = env.need(kNames.local_size, kNames.rank),
                     .evidence = kNames.evidence};
}

// Flux does not say how many tasks a node has: as many on each.
std::optional<ProcessRank> from_flux(const Numbers& env) {
  const std::string rank = "FLUX_TASK_RANK";
  if (!env.has(rank)) return std::nullopt;
  ProcessRank process;
  process.rank = env.need(rank, rank);
  process.size = env.need(env.has("FLUX_JOB_SIZE") ? "FLUX_JOB_SIZE" : "PMI_SIZE", rank);
  process.local_rank = env.need("FLUX_TASK_LOCAL_ID", rank);
  process.evidence = "Flux (FLUX_TASK_RANK)";
  const int nodes = env.find("FLUX_JOB_NNODES").value_or(1);
  if (nodes < 1 || process.size % nodes != 0) {
    throw usage_error(
        fmt::format("{} tasks on {} nodes are not as many on each", process.size, nodes),
        process.evidence, "start as many on each node: flux run -N NODES --tasks-per-node=N");
  }
  process.local_size = process.size / nodes;
  return process;
}

// "2(x3),1" for node 3 is 1: Slurm's tasks per node, equal counts folded.
std::optional<int> tasks_on_node(const std::string& folded, int node) {
  int first = 0;
  for (const std::string& part : split(folded, ',')) {
    const std::size_t open = part.find("(x");
    const auto tasks = to_integer(part.substr(0, open));
    const auto times = open == std::string::npos
                           ? std::optional<std::int64_t>(1)
                           : to_integer(part.substr(open + 2, part.size() - open - 3));
    if (!tasks || !times) return std::nullopt;
    if (node < first + *times) return static_cast<int>(*tasks);
    first += static_cast<int>(*times);
  }
  return std::nullopt;
}

// Batch and interactive shells are steps too, with numbers from this one on.
constexpr std::int64_t kFirstSpecialStep = 4294967280;

bool in_slurm_step(const Numbers& env) {
  const std::string id = env.has("SLURM_STEP_ID") ? "SLURM_STEP_ID" : "SLURM_STEPID";
  const auto step = to_integer(env.text(id));
  return step && *step < kFirstSpecialStep && env.has("SLURM_PROCID");
}

std::optional<ProcessRank> from_slurm(const Numbers& env) {
  if (!in_slurm_step(env)) return std::nullopt;
  const std::string rank = "SLURM_PROCID";
  ProcessRank process;
  process.rank = env.need(rank, rank);
  process.size = env.has("SLURM_STEP_NUM_TASKS") ? env.need("SLURM_STEP_NUM_TASKS", rank)
                                                 : env.need("SLURM_NTASKS", rank);
  process.local_rank = env.need("SLURM_LOCALID", rank);
  process.node = env.need("SLURM_NODEID", rank);
  process.nodes = env.has("SLURM_STEP_NUM_NODES") ? env.need("SLURM_STEP_NUM_NODES", rank)
                                                  : env.need("SLURM_NNODES", rank);
  const auto tasks = tasks_on_node(env.text("SLURM_STEP_TASKS_PER_NODE"), process.node);
  if (!tasks) {
    throw usage_error(
        fmt::format("no list of tasks: \"{}\"", env.text("SLURM_STEP_TASKS_PER_NODE")),
        "SLURM_STEP_TASKS_PER_NODE", "start the ranks with srun --mpi=pmix");
  }
  process.local_size = *tasks;
  process.evidence = "Slurm step";
  return process;
}

std::optional<ProcessRank> from_pmi(const Numbers& env) {
  if (!env.has("PMI_RANK") || env.has("PALS_RANKID") || env.has("FLUX_TASK_RANK")) {
    return std::nullopt;
  }
  ProcessRank process{.rank = env.need("PMI_RANK", "PMI_RANK"),
                      .size = env.need("PMI_SIZE", "PMI_RANK"),
                      .evidence = "PMI (PMI_RANK)"};
  const auto slurm = from_slurm(env);
  if (env.has("MPI_LOCALRANKID")) {
    process.local_rank = env.need("MPI_LOCALRANKID", "PMI_RANK");
    process.local_size = env.need("MPI_LOCALNRANKS", "MPI_LOCALRANKID");
  } else if (slurm && slurm->size == process.size) {
    process.local_rank = slurm->local_rank;
    process.local_size = slurm->local_size;
  } else {
    process.local_rank = env.need("PMI_LOCAL_RANK", "PMI_RANK");
    process.local_size = env.need("PMI_LOCAL_SIZE", "PMI_RANK");
  }
  return process;
}

// PMIx numbers the ranks but does not say how many there are: Slurm or Open MPI does.
std::optional<ProcessRank> from_pmix(const Numbers& env) {
  if (!env.has("PMIX_RANK") || env.has("OMPI_COMM_WORLD_RANK")) return std::nullopt;
  const int rank = env.need("PMIX_RANK", "PMIX_RANK");
  auto process = from_slurm(env);
  if (!process) {
    throw usage_error("PMIX_RANK is set, but nothing says how many ranks there are", "",
                      "start the ranks with mpirun or srun --mpi=pmix, or set RANK, WORLD_SIZE, "
                      "LOCAL_RANK and LOCAL_WORLD_SIZE");
  }
  if (process->rank != rank) {
    throw usage_error(fmt::format("PMIX_RANK={} but SLURM_PROCID={}", rank, process->rank), "",
                      "start the ranks with one launcher only: srun --mpi=pmix or mpirun");
  }
  process->evidence = "PMIx in a Slurm step (PMIX_RANK)";
  return process;
}

void check_range(const ProcessRank& process, const Numbers& env) {
  if (process.size >= 1 && process.rank < process.size && process.local_size >= 1 &&
      process.local_rank < process.local_size && process.local_size <= process.size) {
    return;
  }
  // Each component of a heterogeneous job counts its own tasks.
  const bool is_heterogeneous = env.find("SLURM_HET_SIZE").value_or(1) > 1;
  throw usage_error(fmt::format("rank {} of {}, local rank {} of {} cannot be", process.rank,
                                process.size, process.local_rank, process.local_size),
                    process.evidence,
                    is_heterogeneous
                        ? "start one component of the heterogeneous job: srun --het-group=0"
                        : "start the ranks with mpirun or srun --mpi=pmix");
}

std::string read_number(const Environment& environment, const char* name) {
  const std::string text = environment_value(environment, name);
  return to_integer(text).value_or(-1) >= 0 ? text : "";
}

}  // namespace

std::string describe_job(const Environment& environment) {
  constexpr std::pair<const char*, const char*> kJobs[] = {{"SLURM_JOB_ID", "Slurm"},
                                                           {"PBS_JOBID", "PBS"},
                                                           {"LSB_JOBID", "LSF"},
                                                           {"FLUX_JOB_ID", "Flux"}};
  for (const auto& [variable, name] : kJobs) {
    const std::string id = environment_value(environment, variable);
    if (id.empty()) continue;
    const std::string components = environment_value(environment, "SLURM_HET_SIZE");
    return fmt::format(
        "{} job {}{}", name, id,
        components.empty() ? "" : ", heterogeneous of " + components + " components");
  }
  return "";
}

ProcessRank find_process_rank(const Environment& environment) {
  const Numbers env(environment);
  std::vector<ProcessRank> claims;
  for (const auto source : {from<kTorchrun>, from<kOpenMpi>, from<kPals>, from_flux, from<kJsrun>,
                            from_pmi, from_pmix}) {
    auto process = source(env);
    if (!process) continue;
    check_range(*process, env);
    if (process->nodes == 1) {
      process->nodes = (process->size + process->local_size - 1) / process->local_size;
      process->node = process->rank / process->local_size;
    }
    claims.push_back(*process);
  }
  if (claims.empty()) {
    if (const auto slurm = from_slurm(env)) {
      check_range(*slurm, env);
      claims.push_back(*slurm);
    }
  }
  if (claims.empty()) return {};
  for (const ProcessRank& other : claims) {
    if (other.rank == claims[0].rank && other.size == claims[0].size) continue;
    throw usage_error(
        fmt::format("{} says rank {} of {}, but {} says rank {} of {}", claims[0].evidence,
                    claims[0].rank, claims[0].size, other.evidence, other.rank, other.size),
        "", "start the ranks with one launcher only, and unset the other's variables");
  }
  claims[0].launched = true;
  return claims[0];
}

void check_against_mpi(const ProcessRank& process, int mpi_rank, int mpi_size) {
  if (mpi_rank == process.rank && mpi_size == process.size) return;
  const std::string claim =
      fmt::format("{} says rank {} of {}", process.evidence, process.rank, process.size);
  if (mpi_size == 1) {
    throw usage_error(
        fmt::format("{0}, but MPI sees 1 rank: these are {1} singletons, not {1} ranks", claim,
                    process.size),
        "",
        "start them with srun --mpi=pmix, or with the mpirun of the MPI that this was "
        "built with");
  }
  throw usage_error(fmt::format("{}, but MPI says rank {} of {}", claim, mpi_rank, mpi_size), "",
                    "start the ranks with one launcher: mpirun or srun --mpi=pmix");
}

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "an unknown host";
}

std::uint64_t find_node(int rank) {
  if (const auto ranks = test_ranks_per_node()) return static_cast<std::uint64_t>(rank / *ranks);
  std::string node;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), node);
  for (const char* path : {"/dev/shm", "/proc/self/ns/net"}) {
    struct stat info {};
    node += stat(path, &info) == 0 ? fmt::format(" {}:{}", info.st_dev, info.st_ino) : " -";
  }
  return hash_value(node);
}

std::optional<int> test_ranks_per_node() {
  const char* text = std::getenv(kRanksPerNodeVariable);
  if (text == nullptr) return std::nullopt;
  const auto value = to_integer(text);
  if (value && *value >= 1 && *value <= 1 << 20) return static_cast<int>(*value);
  throw usage_error(fmt::format("\"{}\" is not a number of ranks", text), kRanksPerNodeVariable,
                    "unset it: it is for tests");
}

std::optional<std::filesystem::path> run_directory_of_job(const Environment& environment) {
  const std::filesystem::path submitted = environment_value(environment, "SLURM_SUBMIT_DIR");
  const std::string job = read_number(environment, "SLURM_JOB_ID");
  if (!submitted.is_absolute() || job.empty()) return std::nullopt;
  const std::string array = read_number(environment, "SLURM_ARRAY_JOB_ID");
  const std::string task = read_number(environment, "SLURM_ARRAY_TASK_ID");
  return submitted / (array.empty() || task.empty() ? job : array + "_" + task);
}

}  // namespace paceline
