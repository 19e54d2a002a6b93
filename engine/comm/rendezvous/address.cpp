#include "engine/comm/rendezvous/address.h"

#include <fmt/format.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>

#include "engine/comm/rendezvous/message.h"
#include "engine/core/error.h"
#include "engine/core/hash.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

constexpr const char* kDefaultPorts = "29400-29499";
constexpr std::size_t kLongestToken = 256;

Error wrong(std::string what, const char* variable, std::string fix) {
  return {ErrorKind::usage, std::move(what), variable, std::move(fix)};
}

std::optional<std::uint16_t> to_port(std::string_view text) {
  const auto number = to_integer(text);
  if (!number || *number < 1 || *number > 65535) return std::nullopt;
  return static_cast<std::uint16_t>(*number);
}

struct HostPort {
  std::string host;
  std::string port;  // empty: none given
};

// "host", "host:port", "[v6]:port", "[v6]" or a bare v6 address.
HostPort split_address(const std::string& text) {
  if (text.starts_with('[')) {
    const std::size_t close = text.find(']');
    if (close != std::string::npos && close + 1 == text.size())
      return {text.substr(1, close - 1), ""};
    if (close != std::string::npos && text[close + 1] == ':') {
      return {text.substr(1, close - 1), text.substr(close + 2)};
    }
    throw wrong(fmt::format("\"{}\" is no address", text), kStoreVariable,
                "write [address]:port, or host:port");
  }
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos || text.rfind(':') != colon) return {text, ""};
  if (colon == 0 || colon + 1 == text.size()) {
    throw wrong(fmt::format("\"{}\" lacks a host or a port", text), kStoreVariable,
                "write host:port");
  }
  return {text.substr(0, colon), text.substr(colon + 1)};
}

std::vector<std::uint16_t> parse_ports(const Environment& environment) {
  std::string text = environment_value(environment, kPortsVariable);
  if (text.empty()) text = kDefaultPorts;
  const std::vector<std::string> ends = split(text, '-');
  const auto first = to_port(trim(ends.front())), last = to_port(trim(ends.back()));
  if (ends.size() > 2 || !first || !last || *first > *last) {
    throw wrong(fmt::format("\"{}\" is no range of ports", text), kPortsVariable,
                "write for example 29400-29499");
  }
  std::vector<std::uint16_t> ports;
  for (int port = *first; port <= *last; ++port) ports.push_back(static_cast<std::uint16_t>(port));
  return ports;
}

// mpirun's and PALS's helpers on other nodes are Slurm steps of their own: there SLURM_STEP_*
// speaks of them, and differs between the ranks.
bool slurm_step_is_theirs(const Environment& environment) {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PALS_RANKID", "MPI_LOCALRANKID"}) {
    if (environment.count(name) != 0) return false;
  }
  return true;
}

// The same text in every rank of a job, another in every other job where the launcher tells.
std::string make_identity(const ProcessRank& process, const Environment& environment) {
  std::vector<std::string> names{"SLURM_JOB_ID", "TORCHELASTIC_RUN_ID",
                                 "TORCHELASTIC_RESTART_COUNT", "PMIX_NAMESPACE", "PALS_APID"};
  if (process.evidence.starts_with("torchrun")) {
    names.insert(names.end(), {"MASTER_ADDR", "MASTER_PORT"});
  } else if (slurm_step_is_theirs(environment)) {
    names.emplace_back("SLURM_STEP_ID");
  }
  std::string identity = fmt::format("{} ranks", process.size);
  for (const std::string& name : names) {
    identity += fmt::format(" {}={}", name, environment_value(environment, name));
  }
  return identity;
}

std::string find_host(const ProcessRank& process, const Environment& environment) {
  for (const char* name : {kStoreVariable, "MASTER_ADDR"}) {
    const std::string host = environment_value(environment, name);
    if (!host.empty()) return name == kStoreVariable ? split_address(host).host : host;
  }
  if (process.local_size == process.size) return "127.0.0.1";
  const char* name =
      slurm_step_is_theirs(environment) ? "SLURM_STEP_NODELIST" : "SLURM_JOB_NODELIST";
  const std::string nodelist = environment_value(environment, name);
  if (!nodelist.empty()) return first_host(nodelist);
  throw wrong(fmt::format("nothing says which node rank 0 of {} is on ({})", process.size,
                          process.evidence),
              "bootstrap store", "set PACELINE_STORE to an address of rank 0's node");
}

std::string checked_token(const Environment& environment) {
  const std::string token = environment_value(environment, kTokenVariable);
  if (token.size() <= kLongestToken) return token;
  throw wrong(fmt::format("a token of {} characters", token.size()), kTokenVariable,
              fmt::format("use at most {}", kLongestToken));
}

}  // namespace

BootstrapAddress find_bootstrap(const ProcessRank& process, const Environment& environment) {
  BootstrapAddress address;
  address.token = checked_token(environment);
  address.across_nodes = process.local_size != process.size;
  const HostPort given = split_address(environment_value(environment, kStoreVariable));
  if (!given.port.empty()) {
    const auto port = to_port(given.port);
    if (!port) {
      throw wrong(fmt::format("\"{}\" is no port", given.port), kStoreVariable,
                  "use a number from 1 to 65535");
    }
    if (address.token.empty()) {
      throw wrong("the store's port is given, its token is not", kTokenVariable,
                  "set PACELINE_TOKEN too, or leave the port out of PACELINE_STORE: then rank 0 "
                  "hosts the store");
    }
    address.host = given.host;
    address.ports = {*port};
    return address;
  }

  address.rank0_hosts = true;
  address.host = find_host(process, environment);
  address.ports = parse_ports(environment);
  const std::string identity = make_identity(process, environment);
  const std::size_t start = hash_value(identity) % address.ports.size();
  std::rotate(address.ports.begin(), address.ports.begin() + static_cast<std::ptrdiff_t>(start),
              address.ports.end());
  if (address.token.empty())
    address.token = hash_hex(fmt::format("{} user {}", identity, getuid()));
  return address;
}

BootstrapAddress starter_bootstrap(const std::string& host, const Environment& environment) {
  BootstrapAddress address;
  address.host = host;
  address.token = random_token();
  address.ports = parse_ports(environment);
  // Starters on one machine should not all knock at the same first port.
  const std::size_t start = hash_value(address.token) % address.ports.size();
  std::rotate(address.ports.begin(), address.ports.begin() + static_cast<std::ptrdiff_t>(start),
              address.ports.end());
  return address;
}

std::string first_host(std::string_view nodelist) {
  const std::string_view first = trim(nodelist);
  std::string host;
  std::size_t at = 0;
  // Several brackets may stand in one name: "rack[0-1]node[01-16]".
  while (at < first.size() && first[at] != ',') {
    if (first[at] != '[') {
      host += first[at++];
      continue;
    }
    const std::size_t close = first.find(']', at);
    const std::string_view inside =
        close == std::string_view::npos ? "" : first.substr(at + 1, close - at - 1);
    const std::string_view number = inside.substr(0, inside.find_first_of("-,"));
    if (number.empty()) {
      throw wrong(fmt::format("\"{}\" is no list of hosts", nodelist), "Slurm's node list",
                  "set PACELINE_STORE to an address of rank 0's node");
    }
    host += number;
    at = close + 1;
  }
  if (!host.empty()) return host;
  throw wrong("an empty list of hosts", "Slurm's node list",
              "set PACELINE_STORE to an address of rank 0's node");
}

std::string random_token() {
  std::array<std::uint64_t, 2> bits{};
  std::size_t filled = 0;
  while (filled < sizeof bits) {
    const ssize_t count =
        getrandom(reinterpret_cast<char*>(bits.data()) + filled, sizeof bits - filled, 0);
    if (count < 0 && errno != EINTR) {
      throw Error(ErrorKind::internal, fmt::format("no random bytes: {}", std::strerror(errno)),
                  "getrandom");
    }
    if (count > 0) filled += static_cast<std::size_t>(count);
  }
  return to_hex(bits[0]) + to_hex(bits[1]);
}

}  // namespace paceline
