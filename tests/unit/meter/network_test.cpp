// Network ports of machines that this one is not, by the files that the kernel documents.
#include "engine/meter/network.h"

#include <gtest/gtest.h>

#include "tests/unit/meter/fake_kernel.h"

namespace paceline {
namespace {

class Network : public ::testing::Test {
 protected:
  // A device of a card, whose files are in sys/devices/CARD.
  void device(const std::string& name, const std::string& card) const {
    write("devices/" + card + "/numa_node", "1");
    make_folder(sys_ / name);
    std::filesystem::create_symlink(sys_ / "devices" / card, sys_ / name / "device");
  }
  void ethernet(const std::string& name, const std::string& speed, const std::string& state = "up",
                const std::string& type = "1") const {
    write("class/net/" + name + "/speed", speed);
    write("class/net/" + name + "/operstate", state);
    write("class/net/" + name + "/type", type);
  }
  void infiniband(const std::string& name, const std::string& layer, const std::string& rate,
                  const std::string& state = "4: ACTIVE", const std::string& port = "1") const {
    const std::string folder = "class/infiniband/" + name + "/ports/" + port;
    write(folder + "/state", state);
    write(folder + "/rate", rate);
    write(folder + "/link_layer", layer);
  }
  void write(const std::string& name, const std::string& text) const {
    kernel_.write("sys/" + name, text + "\n");
  }
  std::string described() const { return describe_ports(network_ports(kernel_.roots())); }

  FakeKernel kernel_;
  const std::filesystem::path sys_ = kernel_.roots().sys;
};

TEST_F(Network, PortsThatAreUpHaveTheirRates) {
  for (const char* card : {"0", "1"}) {
    device("class/infiniband/mlx5_" + std::string(card), card);
    infiniband("mlx5_" + std::string(card), "InfiniBand", "200 Gb/sec (4X HDR)");
  }
  device("class/infiniband/mlx5_2", "2");
  infiniband("mlx5_2", "InfiniBand", "10 Gb/sec (4X SDR)", "1: DOWN");
  device("class/net/eth0", "3");
  ethernet("eth0", "10000");
  device("class/net/eth1", "4");
  ethernet("eth1", "-1");
  device("class/net/eth2", "5");
  ethernet("eth2", "1000", "down");
  EXPECT_EQ(described(),
            "InfiniBand 200 Gb/s (mlx5_0, mlx5_1), Ethernet 10 Gb/s (eth0), Ethernet of unknown "
            "rate (eth1)");
  EXPECT_EQ(network_ports(kernel_.roots()).front().numa_node, 1);
}

// The names of one card's port: an InfiniBand port is a network device, too.
TEST_F(Network, APortCountsOnce) {
  device("class/infiniband/mlx5_0", "0");
  infiniband("mlx5_0", "Ethernet", "100 Gb/sec (4X EDR)");
  infiniband("mlx5_0", "Ethernet", "25 Gb/sec (1X EDR)", "4: ACTIVE", "2");
  device("class/net/ens1", "0");
  ethernet("ens1", "100000");
  device("class/net/ib0", "1");
  ethernet("ib0", "100000", "up", "32");  // ARPHRD_INFINIBAND
  EXPECT_EQ(described(), "Ethernet 100 Gb/s (mlx5_0:1), Ethernet 25 Gb/s (mlx5_0:2)");
}

TEST_F(Network, BridgesAndWirelessAreNoCards) {
  ethernet("docker0", "10000");
  ethernet("lo", "", "unknown", "772");
  device("class/net/wlan0", "0");
  ethernet("wlan0", "");
  write("class/net/wlan0/wireless/status", "");
  EXPECT_EQ(described(), "");
}

}  // namespace
}  // namespace paceline
