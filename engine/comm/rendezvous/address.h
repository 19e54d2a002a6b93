// Where the bootstrap store is, from the environment.
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
  std::string host;                  // a name or a numeric address; the server binds only to it
  std::vector<std::uint16_t> ports;  // in the order in which server and clients try them
  std::string token;
  bool rank0_hosts = false;   // else the process that started the ranks does
  bool across_nodes = false;  // then a loopback address will not do
};

// PACELINE_STORE=host:port (with PACELINE_TOKEN): our starter's. Else rank 0 hosts, at
// PACELINE_STORE without a port, MASTER_ADDR, the first host of the Slurm step, or, on one node,
// 127.0.0.1; at one of PACELINE_PORTS (29400-29499), from a place on that the job's identity
// chooses. MASTER_PORT is torchrun's own and never used.
//
// Without PACELINE_TOKEN the token is a hash of the job's identity and the user's number: it keeps
// jobs apart and does not keep strangers out. Throws usage, with the cure.
BootstrapAddress find_bootstrap(const ProcessRank& process, const Environment& environment);

// What a starter serves at before it knows the port: any address of this machine, the site's ports.
BootstrapAddress starter_bootstrap(const std::string& host, const Environment& environment);

// The first host of a Slurm list: "n[01-04,07],m3" gives "n01". Throws usage.
std::string first_host(std::string_view nodelist);

// 32 hexadecimal digits from the kernel.
std::string random_token();

}  // namespace paceline
