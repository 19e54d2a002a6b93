// A screen of four hosts, of which one has a slow link and another a busy neighbour.
#include <nlohmann/json.hpp>

#include "engine/core/json.h"
#include "tests/slurm/cluster.h"

namespace paceline {
namespace {

class SlurmScreen : public OnCluster {
 protected:
  // Each host has a third of a CPU, so that its neighbours take only what is its own.
  static void SetUpTestSuite() {
    cluster_ = std::make_unique<Cluster>("", "CLUSTER_CPU_PERCENT=30");
  }

  std::vector<std::string> named() const {
    const Ran ran =
        expect_success(shell("rm -rf screen; paceline screen --site site.json --nodes 4 "
                             "--cpus-per-task 1 --rounds 3 --out screen --wait --yes > log 2>&1 && "
                             "paceline screen report screen --json"));
    return ran.code == 0 ? parse_json(ran.out)["exclude"].get<std::vector<std::string>>()
                         : std::vector<std::string>{ran.out};
  }
};

TEST_F(SlurmScreen, NamesTheSlowLinkAndTheBusyNeighbour) {
  if (!cluster_->has_several_hosts()) {
    GTEST_SKIP() << "no right to make network namespaces: all nodes are one host";
  }
  write_site("site.json");
  for (const std::string node : {"n1", "n2", "n3", "n4"}) {
    const Ran limited = cluster_->call("link", node + " 100mbit");
    if (limited.code != 0) GTEST_SKIP() << "no limit of a link here: " << limited.out;
  }
  EXPECT_EQ(named(), std::vector<std::string>{});
  cluster_->call("link", "n2 25mbit");
  const Ran busy = cluster_->call(
      "run", "n4 sh -c 'for i in 1 2; do timeout 300 sh -c \"while :; do :; done\" & done'");
  if (busy.code != 0) GTEST_SKIP() << "no CPUs of a host's own here: " << busy.out;
  EXPECT_EQ(named(), (std::vector<std::string>{"n2", "n4"})) << shell("cat log").out;
}

}  // namespace
}  // namespace paceline
