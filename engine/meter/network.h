// The network ports of this node that are up.
#pragma once

#include <vector>

#include "engine/facts/hardware.h"
#include "engine/meter/meter_files.h"

namespace paceline {

// Ports of cards, not of bridges, tunnels and pairs of containers: those of /sys/class/infiniband,
// then the Ethernet devices of /sys/class/net, without the names that an InfiniBand port has there,
// too.
std::vector<NetworkPort> network_ports(const MeterRoots& roots = meter_roots());

}  // namespace paceline
