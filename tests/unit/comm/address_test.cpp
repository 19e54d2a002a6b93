#include <gtest/gtest.h>

#include <set>

#include "engine/comm/rendezvous/join.h"
#include "tests/support/expect_error.h"

namespace paceline {
namespace {

ProcessRank make_process(int rank, int size, int local_size, const std::string& evidence) {
  ProcessRank process;
  process.rank = rank;
  process.size = size;
  process.local_size = local_size;
  process.evidence = evidence;
  process.launched = true;
  return process;
}

const Environment kSlurm{{"SLURM_JOB_ID", "17"},
                         {"SLURM_STEP_ID", "0"},
                         {"SLURM_PROCID", "3"},
                         {"SLURM_STEP_NODELIST", "n[03-04],m1"}};

TEST(BootstrapAddress, OfOurStarter) {
  for (const auto& [store, host] :
       {std::pair("10.0.0.3:4711", "10.0.0.3"), std::pair("[fe80::1]:4711", "fe80::1")}) {
    const auto address = find_bootstrap(make_process(1, 2, 2, "Paceline"),
                                        {{"PACELINE_STORE", store}, {"PACELINE_TOKEN", "secret"}});
    EXPECT_EQ(address.host, host);
    EXPECT_EQ(address.ports, std::vector<std::uint16_t>{4711}) << store;
    EXPECT_EQ(address.token, "secret") << store;
    EXPECT_FALSE(address.rank0_hosts) << store;
  }
}

TEST(BootstrapAddress, OfASlurmStep) {
  const auto address = find_bootstrap(make_process(3, 4, 2, "Slurm step"), kSlurm);
  EXPECT_EQ(address.host, "n03");
  EXPECT_TRUE(address.rank0_hosts);
  EXPECT_TRUE(address.across_nodes);
  const std::set<std::uint16_t> ports(address.ports.begin(), address.ports.end());
  EXPECT_EQ(ports.size(), 101U);
  EXPECT_EQ(*ports.begin(), 0);  // any, as the token's file names it
  EXPECT_EQ(*std::next(ports.begin()), 29400);
  EXPECT_EQ(*ports.rbegin(), 29499);
}

TEST(BootstrapAddress, IsTheSameInAllRanksAndDiffersBetweenSteps) {
  const auto mine = find_bootstrap(make_process(3, 4, 2, "Slurm step"), kSlurm);
  Environment other = kSlurm;
  other["SLURM_PROCID"] = "0";
  const auto theirs = find_bootstrap(make_process(0, 4, 2, "Slurm step"), other);
  EXPECT_EQ(mine.ports, theirs.ports);
  EXPECT_EQ(mine.token_file, theirs.token_file);
  other["SLURM_STEP_ID"] = "1";
  EXPECT_NE(mine.token_file, find_bootstrap(make_process(0, 4, 2, "Slurm step"), other).token_file);
}

// mpirun's helper on another node is a Slurm step of its own, whose list lacks the first node.
TEST(BootstrapAddress, OfMpirunInASlurmJob) {
  Environment first{{"SLURM_JOB_ID", "17"},
                    {"SLURM_JOB_NODELIST", "n[03-04]"},
                    {"OMPI_COMM_WORLD_RANK", "0"},
                    {"PMIX_NAMESPACE", "123"}};
  Environment second = first;
  second["SLURM_STEP_ID"] = "0";
  second["SLURM_STEP_NODELIST"] = "n04";
  const std::string evidence = "Open MPI (OMPI_COMM_WORLD_RANK)";
  const auto a = find_bootstrap(make_process(0, 4, 2, evidence), first);
  const auto b = find_bootstrap(make_process(2, 4, 2, evidence), second);
  EXPECT_EQ(a.host, "n03");
  EXPECT_EQ(b.host, "n03");
  EXPECT_EQ(a.ports, b.ports);
  EXPECT_EQ(a.token_file, b.token_file);
}

TEST(BootstrapAddress, OfTorchrunNeverUsesItsPort) {
  const auto address =
      find_bootstrap(make_process(0, 4, 2, "torchrun (RANK)"), {{"MASTER_ADDR", "head"},
                                                                {"MASTER_PORT", "29400"},
                                                                {"PACELINE_PORTS", "5000-5001"},
                                                                {"PACELINE_TOKEN", "secret"}});
  EXPECT_EQ(address.host, "head");
  EXPECT_TRUE(address.rank0_hosts);
  EXPECT_EQ(std::set<std::uint16_t>(address.ports.begin(), address.ports.end()),
            (std::set<std::uint16_t>{5000, 5001}));
}

// Nothing of it follows from what others can know of a job.
TEST(BootstrapAddress, WithoutATokenRanksMeetWhereTheyShareAFolder) {
  const auto folder = [](int local_size, const Environment& environment) {
    const auto where =
        find_bootstrap(make_process(0, 4, local_size, "torchrun (RANK)"), environment);
    EXPECT_EQ(where.token, "");
    return where.token_file.parent_path();
  };
  EXPECT_EQ(folder(2, {{"MASTER_ADDR", "head"}, {"PACELINE_STATUS_DIR", "/a/b"}}), "/a/b");
  EXPECT_EQ(folder(2, {{"MASTER_ADDR", "head"}}), ".");
  EXPECT_EQ(folder(4, {}), std::filesystem::temp_directory_path());
  Environment slurm = kSlurm;
  slurm["SLURM_SUBMIT_DIR"] = "/home/u";
  EXPECT_EQ(folder(2, slurm), "/home/u/17/status");
  slurm["PACELINE_TOKEN"] = "secret";
  EXPECT_EQ(find_bootstrap(make_process(0, 4, 2, "Slurm step"), slurm).token_file, "");
}

TEST(BootstrapAddress, TheHostThatTheUserNamesComesFirst) {
  Environment environment = kSlurm;
  environment["PACELINE_STORE"] = "10.1.0.3";
  environment["MASTER_ADDR"] = "head";
  EXPECT_EQ(find_bootstrap(make_process(3, 4, 2, "Slurm step"), environment).host, "10.1.0.3");
}

TEST(BootstrapAddress, OnOneNodeIsLoopback) {
  const auto address = find_bootstrap(make_process(0, 2, 2, "PMI (PMI_RANK)"), {});
  EXPECT_EQ(address.host, "127.0.0.1");
  EXPECT_FALSE(address.across_nodes);
}

TEST(BootstrapAddress, ReportsWhatIsMissing) {
  expect_error(ErrorKind::usage, {"rank 0 of 4", "set PACELINE_STORE"},
               [] { find_bootstrap(make_process(0, 4, 2, "PMI (PMI_RANK)"), {}); });
  expect_error(ErrorKind::usage, {"PACELINE_TOKEN"}, [] {
    find_bootstrap(make_process(0, 2, 2, "alone"), {{"PACELINE_STORE", "127.0.0.1:4711"}});
  });
}

TEST(BootstrapAddress, RefusesWhatIsNoAddress) {
  for (const char* store : {"host:", ":4711", "host:x", "host:70000", "[::1", "[::1]x"}) {
    expect_error(ErrorKind::usage, {"PACELINE_STORE"}, [store] {
      find_bootstrap(make_process(0, 2, 2, "alone"),
                     {{"PACELINE_STORE", store}, {"PACELINE_TOKEN", "t"}});
    });
  }
  for (const char* ports : {"x", "0-5", "9-5", "1-2-3", "1-65536", "-"}) {
    expect_error(ErrorKind::usage, {"PACELINE_PORTS", ports}, [ports] {
      find_bootstrap(make_process(0, 2, 2, "alone"), {{"PACELINE_PORTS", ports}});
    });
  }
}

TEST(BootstrapAddress, FirstHostOfASlurmList) {
  EXPECT_EQ(first_host("n[01-04,07],m3"), "n01");
  EXPECT_EQ(first_host("n[7,01-04]"), "n7");
  EXPECT_EQ(first_host("m3,n[01-04]"), "m3");
  EXPECT_EQ(first_host("login"), "login");
  EXPECT_EQ(first_host("rack[0-1]node[01-16]-ib,x"), "rack0node01-ib");
  for (const char* list : {"", ",n1", "n[01-04", "n[]"}) {
    expect_error(ErrorKind::usage, {"PACELINE_STORE"}, [list] { first_host(list); });
  }
}

TEST(RandomToken, IsLongAndNeverTheSame) {
  const std::string token = random_token();
  EXPECT_EQ(token.size(), 32U);
  EXPECT_EQ(token.find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_NE(token, random_token());
}

}  // namespace
}  // namespace paceline
