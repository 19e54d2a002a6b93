#include "slurm/job_check.h"

#include <gtest/gtest.h>

#include "tests/support/expect_error.h"

namespace paceline {
namespace {

Environment job() {
  return {
      {"SLURM_JOB_ID", "18"},       {"SLURM_ARRAY_JOB_ID", "5"},    {"SLURM_ARRAY_TASK_ID", "3"},
      {"SLURM_JOB_NODELIST", "n1"}, {"SLURMD_NODENAME", "n1"},      {"SLURM_JOB_NUM_NODES", "1"},
      {"SLURM_NTASKS", "2"},        {"SLURM_CPUS_ON_NODE", "8"},    {"SLURM_CPUS_PER_TASK", "4"},
      {"SLURM_GPUS_ON_NODE", "2"},  {"CUDA_VISIBLE_DEVICES", "0,1"}};
}

Point run_on(const char* device) {
  Point point;
  point.set("gpus", std::int64_t{2});
  point.set("cpus_per_task", std::int64_t{4});
  point.set("backend", std::string("gloo"));
  point.set("device", std::string(device));
  return point;
}

void expect_refused(Environment environment, int mask, const Point& point,
                    const std::vector<std::string>& parts) {
  expect_error(ErrorKind::usage, parts, [&] { check_grant(read_grant(environment, mask), point); });
}

TEST(JobCheck, AJobAsItWasAskedFor) {
  const JobGrant grant = read_grant(job(), 8);
  EXPECT_EQ(grant.job, "5_3");
  EXPECT_EQ(grant.visible_gpus, 2);
  expect_parts(grant.text(), {"job 5_3 on n1"});
  check_grant(grant, run_on("cpu"));
  check_grant(grant, run_on("cuda"));
  check_grant(read_grant({}, 1), run_on("cuda"));  // not in a job: the run itself sees
}

TEST(JobCheck, AMaskOfFewerCpusThanTheTasksNeed) {
  expect_refused(job(), 4, run_on("cpu"), {"mask", "4 CPUs", "needs 8", "2 tasks of 4", "n1"});
  Point shared = run_on("cpu");
  shared.set("oversubscribe", true);
  check_grant(read_grant(job(), 4), shared);
}

TEST(JobCheck, OtherCountsThanTheRuns) {
  Environment environment = job();
  environment["SLURM_NTASKS"] = "1";
  expect_refused(environment, 8, run_on("cpu"), {"1 tasks", "needs 2", "--ntasks"});
  environment = job();
  environment["SLURM_JOB_NUM_NODES"] = "2";
  expect_refused(environment, 8, run_on("cpu"), {"2 nodes", "needs 1"});
  environment = job();
  environment["SLURM_CPUS_ON_NODE"] = "2";
  expect_refused(environment, 8, run_on("cpu"), {"2 CPUs", "needs 8", "--cpus-per-task"});
}

TEST(JobCheck, RanksThatWouldSeeNoGpu) {
  Environment environment = job();
  environment["CUDA_VISIBLE_DEVICES"] = "";
  expect_refused(environment, 8, run_on("cuda"), {"sees no GPU", "gpus"});
  check_grant(read_grant(environment, 8), run_on("cpu"));
  environment = job();
  environment["CUDA_VISIBLE_DEVICES"] = "0";
  environment["SLURM_GPUS_ON_NODE"] = "1";
  expect_refused(environment, 8, run_on("cuda"), {"1 GPUs here", "needs 2"});
  environment.erase("CUDA_VISIBLE_DEVICES");
  environment.erase("SLURM_GPUS_ON_NODE");
  expect_refused(environment, 8, run_on("cuda"), {"sees no GPU"});
}

}  // namespace
}  // namespace paceline
