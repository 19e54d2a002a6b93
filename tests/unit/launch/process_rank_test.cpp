#include "engine/launch/process_rank.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "engine/launch/program.h"
#include "tests/support/why_not.h"
#include "tests/unit/launch/expect_error.h"

namespace paceline {
namespace {

struct Expected {
  int rank, size, local_rank, local_size, node, nodes;
  std::string evidence;
};

void expect_place(const Environment& environment, const Expected& expected) {
  const ProcessRank process = find_process_rank(environment);
  EXPECT_EQ(process.rank, expected.rank);
  EXPECT_EQ(process.size, expected.size);
  EXPECT_EQ(process.local_rank, expected.local_rank);
  EXPECT_EQ(process.local_size, expected.local_size);
  EXPECT_EQ(process.node, expected.node);
  EXPECT_EQ(process.nodes, expected.nodes);
  EXPECT_EQ(process.evidence, expected.evidence);
  EXPECT_EQ(process.launched, expected.evidence != "alone");
}

// `a` comes first where both have a name.
Environment operator+(Environment a, const Environment& b) {
  a.insert(b.begin(), b.end());
  return a;
}

// Rank 3 of 4, the second of two on the second node.
const Environment kOpenMpi = {{"OMPI_COMM_WORLD_RANK", "3"},
                              {"OMPI_COMM_WORLD_SIZE", "4"},
                              {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                              {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                              {"PMIX_RANK", "3"}};
const Environment kStep = {{"SLURM_STEP_ID", "0"}, {"SLURM_PROCID", "3"},
                           {"SLURM_NTASKS", "4"},  {"SLURM_STEP_NUM_TASKS", "4"},
                           {"SLURM_LOCALID", "1"}, {"SLURM_NODEID", "1"},
                           {"SLURM_NNODES", "2"},  {"SLURM_STEP_TASKS_PER_NODE", "2(x2)"}};
const Environment kTorchrun = {
    {"RANK", "3"}, {"WORLD_SIZE", "4"}, {"LOCAL_RANK", "1"}, {"LOCAL_WORLD_SIZE", "2"}};
const Environment kHydra = {
    {"PMI_RANK", "3"}, {"PMI_SIZE", "4"}, {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "2"}};
const Environment kPals = {{"PALS_RANKID", "3"},
                           {"PALS_LOCAL_RANKID", "1"},
                           {"PMI_RANK", "3"},
                           {"PMI_SIZE", "4"},
                           {"PMI_LOCAL_SIZE", "2"}};
const Environment kFlux = {
    {"FLUX_JOB_ID", "f2"},    {"FLUX_TASK_RANK", "3"},     {"FLUX_JOB_SIZE", "4"},
    {"FLUX_JOB_NNODES", "2"}, {"FLUX_TASK_LOCAL_ID", "1"}, {"PMI_RANK", "3"},
    {"PMI_SIZE", "4"}};
const Environment kJsrun = {{"JSM_NAMESPACE_RANK", "3"},
                            {"JSM_NAMESPACE_SIZE", "4"},
                            {"JSM_NAMESPACE_LOCAL_RANK", "1"},
                            {"JSM_NAMESPACE_LOCAL_SIZE", "2"}};
// What a batch script sees: it is no rank.
const Environment kBatchShell = {{"SLURM_PROCID", "0"},
                                 {"SLURM_LOCALID", "0"},
                                 {"SLURM_NODEID", "0"},
                                 {"SLURM_NTASKS", "4"},
                                 {"SLURM_NNODES", "2"}};

TEST(ProcessRank, NothingIsAlone) {
  expect_place({}, {0, 1, 0, 1, 0, 1, "alone"});
}

TEST(ProcessRank, EachLauncherIsRead) {
  expect_place(kOpenMpi, {3, 4, 1, 2, 1, 2, "Open MPI (OMPI_COMM_WORLD_RANK)"});
  expect_place(kStep, {3, 4, 1, 2, 1, 2, "Slurm step"});
  expect_place(kStep + Environment{{"PMIX_RANK", "3"}},
               {3, 4, 1, 2, 1, 2, "PMIx in a Slurm step (PMIX_RANK)"});
  expect_place(kTorchrun, {3, 4, 1, 2, 1, 2, "torchrun (RANK)"});
  expect_place(kHydra, {3, 4, 1, 2, 1, 2, "PMI (PMI_RANK)"});
  expect_place(kPals, {3, 4, 1, 2, 1, 2, "PALS (PALS_RANKID)"});
  expect_place(kFlux, {3, 4, 1, 2, 1, 2, "Flux (FLUX_TASK_RANK)"});
  expect_place(kJsrun, {3, 4, 1, 2, 1, 2, "jsrun (JSM_NAMESPACE_RANK)"});
}

TEST(ProcessRank, FluxWithUnequalNodesIsRefused) {
  EXPECT_ERROR(find_process_rank(Environment{{"FLUX_JOB_SIZE", "5"}} + kFlux), usage,
               "5 tasks on 2 nodes are not as many on each");
}

TEST(ProcessRank, AComponentOfAHeterogeneousJobIsSaid) {
  Environment step = kStep;
  step["SLURM_HET_SIZE"] = "2";
  step["SLURM_PROCID"] = "5";
  EXPECT_ERROR(find_process_rank(step), usage, "srun --het-group=0");
  step["SLURM_JOB_ID"] = "12";
  EXPECT_EQ(describe_job(step), "Slurm job 12, heterogeneous of 2 components");
}

TEST(ProcessRank, JobsOfOtherSchedulersAreNamed) {
  EXPECT_EQ(describe_job({}), "");
  EXPECT_EQ(describe_job({{"PBS_JOBID", "4711.server"}}), "PBS job 4711.server");
  EXPECT_EQ(describe_job({{"LSB_JOBID", "8"}}), "LSF job 8");
  EXPECT_EQ(describe_job(kFlux), "Flux job f2");
}

TEST(ProcessRank, PmiUnderSrunTakesSlurmsLocalRank) {
  expect_place(kStep + Environment{{"PMI_RANK", "3"}, {"PMI_SIZE", "4"}},
               {3, 4, 1, 2, 1, 2, "PMI (PMI_RANK)"});
}

TEST(ProcessRank, UnequalNodesOfAStep) {
  const Environment unequal = {{"SLURM_STEP_TASKS_PER_NODE", "3,1"}, {"SLURM_LOCALID", "0"}};
  expect_place(unequal + kStep, {3, 4, 0, 1, 1, 2, "Slurm step"});
}

// Under mpirun Slurm's numbers are those of mpirun's helpers, one a node.
TEST(ProcessRank, SlurmIsNotBelievedUnderMpirun) {
  const Expected right{3, 4, 1, 2, 1, 2, "Open MPI (OMPI_COMM_WORLD_RANK)"};
  expect_place(kOpenMpi + kBatchShell, right);  // ranks on the head node
  Environment helper = {{"SLURM_STEP_ID", "0"},
                        {"SLURM_PROCID", "0"},
                        {"SLURM_NTASKS", "1"},
                        {"SLURM_LOCALID", "0"},
                        {"SLURM_NODEID", "0"},
                        {"SLURM_NNODES", "1"},
                        {"SLURM_STEP_TASKS_PER_NODE", "1"}};
  expect_place(kOpenMpi + helper, right);  // ranks on the second node
  helper["SLURM_PROCID"] = "1";
  helper["SLURM_NTASKS"] = "2";
  expect_place(kOpenMpi + helper, right);  // on the third
  expect_place(kHydra + helper, {3, 4, 1, 2, 1, 2, "PMI (PMI_RANK)"});
}

TEST(ProcessRank, ShellsOfAJobAreNoRanks) {
  expect_place(kBatchShell, {0, 1, 0, 1, 0, 1, "alone"});
  expect_place(Environment{{"SLURM_STEP_ID", "4294967290"}} + kStep, {0, 1, 0, 1, 0, 1, "alone"});
}

TEST(ProcessRank, TorchrunOnEachNodeOfAStep) {
  const Environment starter = {{"SLURM_PROCID", "1"}, {"SLURM_STEP_NUM_TASKS", "2"}};
  expect_place(kTorchrun + starter + kStep, {3, 4, 1, 2, 1, 2, "torchrun (RANK)"});
}

TEST(ProcessRank, LaunchersThatDisagreeAreRefused) {
  const Environment stale = {{"RANK", "0"}, {"LOCAL_RANK", "0"}};
  EXPECT_ERROR(find_process_rank(stale + kTorchrun + kOpenMpi), usage,
               "torchrun (RANK) says rank 0 of 4, but Open MPI (OMPI_COMM_WORLD_RANK) says rank 3 "
               "of 4; start the ranks with one launcher only");
  EXPECT_ERROR(find_process_rank(kStep + Environment{{"PMIX_RANK", "2"}}), usage,
               "PMIX_RANK=2 but SLURM_PROCID=3");
}

TEST(ProcessRank, IncompleteOrImpossibleEvidenceIsRefused) {
  EXPECT_ERROR(find_process_rank({{"PMIX_RANK", "1"}}), usage, "nothing says how many ranks");
  EXPECT_ERROR(find_process_rank({{"RANK", "0"}, {"WORLD_SIZE", "2"}}), usage, "LOCAL_RANK is not");
  EXPECT_ERROR(find_process_rank({{"OMPI_COMM_WORLD_RANK", "x"}}), usage, "x is not a rank");
  EXPECT_ERROR(find_process_rank(Environment{{"OMPI_COMM_WORLD_RANK", "4"}} + kOpenMpi), usage,
               "rank 4 of 4");
  EXPECT_ERROR(find_process_rank(Environment{{"SLURM_STEP_TASKS_PER_NODE", "2(x"}} + kStep), usage,
               "SLURM_STEP_TASKS_PER_NODE");
}

TEST(ProcessRank, MpiMustAgree) {
  const ProcessRank process = find_process_rank(kStep);
  EXPECT_NO_THROW(check_against_mpi(process, 3, 4));
  EXPECT_ERROR(check_against_mpi(process, 0, 1), usage,
               "Slurm step says rank 3 of 4, but MPI sees 1 rank: these are 4 singletons, not 4 "
               "ranks; start them with srun --mpi=pmix");
  EXPECT_ERROR(check_against_mpi(process, 2, 4), usage, "MPI says rank 2 of 4");
  EXPECT_ERROR(check_against_mpi({}, 2, 4), usage, "alone says rank 0 of 1");
}

// What find_node() says within `unshare OPTIONS sh -c 'SETUP && ...'`.
std::string node_inside(const std::string& options, const std::string& setup) {
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
  const auto output =
      capture_output({"/bin/sh", "-c",
                      "unshare " + options + " sh -c '" + setup + " && " + program +
                          " --gtest_filter=Node.DISABLED_Print --gtest_also_run_disabled_tests'"});
  const std::size_t found = output.find("node ");
  return found == output.npos ? output : output.substr(found, output.find('\n', found) - found);
}

std::string node_here() {
  return "node " + std::to_string(find_node(0));
}

TEST(Node, DISABLED_Print) {
  std::puts(node_here().c_str());
}

TEST(Node, IsTheSameUnderAnotherHostName) {
  const std::string refused = why_not("unshare -ru hostname elsewhere");
  if (!refused.empty()) GTEST_SKIP() << "no right to rename a host: " << refused;
  EXPECT_EQ(node_inside("-ru", "hostname elsewhere"), node_here());
}

TEST(Node, IsAnotherWhereSharedMemoryOrNetworkIs) {
  const std::string mount = "mount -t tmpfs none /dev/shm",
                    refused = why_not("unshare -rmn " + mount);
  if (!refused.empty()) GTEST_SKIP() << "no right to make namespaces: " << refused;
  for (const auto& inside : {node_inside("-rm", mount), node_inside("-rn", "true")}) {
    EXPECT_TRUE(inside.starts_with("node ")) << inside;
    EXPECT_NE(inside, node_here());
  }
}

}  // namespace
}  // namespace paceline
