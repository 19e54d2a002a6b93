#include "engine/launch/environment_check.h"

#include <gtest/gtest.h>

#include "tests/support/expect_parts.h"
#include "tests/support/scratch.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

bool says(const std::vector<Warning>& remarks, const std::string& part) {
  for (const Warning& remark : remarks) {
    EXPECT_FALSE(remark.cure.empty()) << remark.what;
    if (contains(remark.what, part)) return true;
  }
  return false;
}

void add_process(const fs::path& root, const std::string& number, const std::string& title) {
  fs::create_directories(root / "proc" / number);
  std::ofstream(root / "proc" / number / "cmdline", std::ios::binary) << title << '\0';
}

class Root : public ::testing::Test {
 protected:
  Scratch folder_;
  const fs::path root_ = folder_.path();
};

TEST_F(Root, JobsOfThisNodeAreThoseWithAStepHere) {
  add_process(root_, "10", "slurmstepd: [17.batch]");
  add_process(root_, "11", "slurmstepd: [17.0]");
  add_process(root_, "12", "slurmstepd: [23.extern]");
  add_process(root_, "13", "slurmd");
  add_process(root_, "14", "vi slurmstepd: [99.0]");
  add_process(root_, "self", "slurmstepd: [98.0]");
  const Environment job = {{"SLURM_JOB_ID", "17"}};
  EXPECT_EQ(jobs_here(job, root_), (std::set<std::string>{"17", "23"}));
  EXPECT_EQ(scan_node(job, root_).other_jobs, (std::set<std::string>{"23"}));
}

TEST_F(Root, WhereProcessesAreHiddenNothingIsReported) {
  add_process(root_, "12", "slurmstepd: [23.extern]");
  EXPECT_FALSE(jobs_here({{"SLURM_JOB_ID", "17"}}, root_));
  EXPECT_FALSE(jobs_here({}, root_));
  EXPECT_TRUE(scan_node({}, root_).other_jobs.empty());
}

TEST_F(Root, AFastNetworkIsSeen) {
  fs::create_directories(root_ / "sys/class/infiniband/mlx5_0");
  fs::create_directories(root_ / "sys/class/cxi/cxi0");
  EXPECT_EQ(scan_node({}, root_).fabrics, (std::vector<std::string>{"mlx5_0", "cxi0"}));
}

TEST(Remarks, NothingUnusualHasNoRemark) {
  EXPECT_TRUE(find_remarks({}, {}).empty());
  EXPECT_TRUE(
      find_remarks({{"OMPI_MCA_pml", "ucx"}, {"http_proxy", ""}}, {{"mlx5_0"}, 4, {}}).empty());
  // Without a fast network TCP is as good as it gets.
  EXPECT_TRUE(find_remarks({{"OMPI_MCA_pml", "ob1"}, {"NCCL_IB_DISABLE", "1"}}, {}).empty());
}

TEST(Remarks, SettingsThatLeaveAFastNetworkUnused) {
  const NodeScan fast = {{"mlx5_0"}, 0, {}};
  EXPECT_TRUE(says(find_remarks({{"OMPI_MCA_pml", "ob1"}}, fast), "MPI talks TCP"));
  EXPECT_TRUE(
      says(find_remarks({{"OMPI_MCA_pml", "ob1"}, {"OMPI_MCA_btl", "self,tcp"}}, fast), "mlx5_0"));
  EXPECT_FALSE(
      says(find_remarks({{"OMPI_MCA_pml", "ob1"}, {"OMPI_MCA_btl", "self,vader"}}, fast), "TCP"));
  EXPECT_TRUE(says(find_remarks({{"NCCL_NET", "Socket"}}, fast), "sockets"));
}

TEST(Remarks, ProxiesGpusAndNeighbours) {
  EXPECT_TRUE(
      says(find_remarks({{"https_proxy", "http://user:word@p:1"}}, {}), "https_proxy is set"));
  EXPECT_FALSE(says(find_remarks({{"https_proxy", "http://user:word@p:1"}}, {}), "word"));
  const Environment isolated = {{"CUDA_VISIBLE_DEVICES", "0"}, {"SLURM_STEP_NUM_TASKS", "4"}};
  EXPECT_TRUE(says(find_remarks(isolated, {{}, 4, {}}), "P2P"));
  EXPECT_FALSE(says(find_remarks(isolated, {{}, 1, {}}), "P2P"));
  EXPECT_TRUE(says(find_remarks({}, {{}, 0, {"23", "24"}}), "2 other jobs"));
}

TEST(Remarks, ModulesOfTheBuildThatAreMissing) {
  EXPECT_TRUE(remarks_on_modules("", "gcc/12").empty());
  EXPECT_TRUE(remarks_on_modules("gcc/12:openmpi/4", "slurm:gcc/12:openmpi/4").empty());
  const auto other = remarks_on_modules("gcc/12:openmpi/4", "gcc/12:openmpi/5");
  EXPECT_TRUE(says(other, "openmpi/4; loaded instead: openmpi/5"));
  EXPECT_TRUE(says(remarks_on_modules("gcc/12", ""), "not loaded: gcc/12"));
}

}  // namespace
}  // namespace paceline
