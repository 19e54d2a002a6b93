// Finds the address of the bootstrap store from the environment.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/core/environment.h"
#include "engine/launch/process_rank.h"

namespace paceline {

inline constexpr const char* kStoreVariable = "PACELINE_STORE";
inline constexpr const char* kTokenVariable = "PACELINE_TOKEN";
inline constexpr const char* kPortsVariable = "PACELINE_PORTS";

struct BootstrapAddress {
  std::string host;                  // a name or numeric address; the server binds only to it
  std::vector<std::uint16_t> ports;  // in the order in which server and clients try them
  std::string token;
  bool rank0_hosts = false;   // else the process that started the ranks hosts it
  bool across_nodes = false;  // then it cannot be a loopback address
};

// PACELINE_STORE=host:port (with PACELINE_TOKEN) is the store of the process that started the
// ranks. Otherwise rank 0 hosts it, at the first of these that is set: PACELINE_STORE without a
// port, MASTER_ADDR, the first host of the Slurm step; on one node, 127.0.0.1. It uses a port of
// PACELINE_PORTS (default 29400-29499); a hash of the job's identity selects the first. MASTER_PORT
// belongs to torchrun and is never used.
//
// Without PACELINE_TOKEN, the token is a hash of the job's identity and the user id. It separates
// jobs but is not a secret. Throws usage with a cure.
BootstrapAddress find_bootstrap(const ProcessRank& process, const Environment& environment);

// For a starter that does not know the port yet: an address of this machine and the site's ports.
BootstrapAddress starter_bootstrap(const std::string& host, const Environment& environment);

// The first host of a Slurm node list: "n[01-04,07],m3" gives "n01". Throws usage.
std::string first_host(std::string_view nodelist);

// 32 random hexadecimal digits from the kernel.
std::string random_token();

}  // namespace paceline
