#include "engine/comm/rendezvous/join.h"

#include <fmt/format.h>
#include <poll.h>
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
#include "engine/launch/process_rank.h"

namespace paceline {

namespace {

constexpr double kConnectSeconds = 2;
constexpr double kAnswerSeconds = 3;
constexpr double kPauseSeconds = 0.05;

struct Attempt {
  std::optional<Joined> joined;
  bool wrong_token = false;
};

// The store's answer, or nothing where it was a stranger or said nothing.
std::optional<Message> read_answer(const Descriptor& socket, MessageParser& parser,
                                   const Deadline& deadline) {
  try {
    while (true) {
      if (auto message = parser.next()) return message;
      if (!wait_for(socket, POLLIN, deadline)) return std::nullopt;
      std::string bytes;
      const Transfer result = receive(socket, bytes);
      parser.feed(bytes);
      if (result == Transfer::ended) return std::nullopt;
    }
  } catch (const Error&) {
    return std::nullopt;
  }
}

Attempt attempt(const Endpoint& endpoint, std::uint16_t port, const Message& hello,
                const Deadline& end) {
  Descriptor socket = connect_to(endpoint, port, earlier(end, Deadline(kConnectSeconds)));
  if (!socket) return {};
  tune(socket);
  const Deadline deadline = earlier(end, Deadline(kAnswerSeconds));
  MessageParser parser(kLargestGreeting);
  if (!send_all(socket, encode(hello), deadline)) return {};
  const auto answer = read_answer(socket, parser, deadline);
  if (!answer) return {};
  if (answer->type == MessageType::wrong_token) return {std::nullopt, true};
  const std::string server = format_address(endpoint.text(), port);
  if (answer->type == MessageType::refused) {
    throw Error(ErrorKind::mismatch,
                fmt::format("the bootstrap store rejected this rank: {}", answer->value), server,
                "start all ranks of a run with one command and one PACELINE_TOKEN");
  }
  if (answer->type != MessageType::welcome) return {};
  parser.allow(kLargestValue);
  return {Joined{std::move(socket), std::move(parser), server}, false};
}

std::string place_text(const BootstrapAddress& where) {
  if (where.ports.size() == 1) return format_address(where.host, where.ports.front());
  return fmt::format("{}, {} ports from {} on", where.host, where.ports.size(),
                     where.ports.front());
}

void check_size(const std::string& text, std::size_t limit, const char* noun) {
  if (text.size() <= limit) return;
  throw Error(ErrorKind::internal,
              fmt::format("a {} of {} bytes, the store takes {}", noun, text.size(), limit),
              "bootstrap store", "report this");
}

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
    throw wrong(fmt::format("\"{}\" is not an address", text), kStoreVariable,
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
    throw wrong(fmt::format("\"{}\" is not a range of ports", text), kPortsVariable,
                "write for example 29400-29499");
  }
  std::vector<std::uint16_t> ports;
  for (int port = *first; port <= *last; ++port) ports.push_back(static_cast<std::uint16_t>(port));
  return ports;
}

// Jobs, and starters on one machine, should not all knock at the same first port.
void start_at(std::uint64_t number, std::vector<std::uint16_t>& ports) {
  const auto first = ports.begin() + static_cast<std::ptrdiff_t>(number % ports.size());
  std::rotate(ports.begin(), first, ports.end());
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

Joined join_store(const BootstrapAddress& where, MessageType hello, int rank, double seconds) {
  Message message{hello};
  message.number = static_cast<std::uint64_t>(rank);
  message.key = where.token;
  message.value = host_name();
  const std::vector<Endpoint> endpoints = resolve(where.host);
  const Deadline deadline(seconds);
  bool wrong_token = false;
  do {
    for (const std::uint16_t port : where.ports) {
      for (const Endpoint& endpoint : endpoints) {
        if (deadline.passed()) break;
        Attempt result = attempt(endpoint, port, message, deadline);
        if (result.joined) return std::move(*result.joined);
        wrong_token |= result.wrong_token;
      }
    }
    if (wrong_token && where.ports.size() == 1) break;
    poll(nullptr, 0, earlier(deadline, Deadline(kPauseSeconds)).milliseconds_left());
  } while (!deadline.passed());

  if (wrong_token) {
    throw Error(ErrorKind::usage, "wrong token: the bootstrap store belongs to another run",
                place_text(where), "give all ranks of this run the same PACELINE_TOKEN");
  }
  throw Error(
      ErrorKind::stall,
      fmt::format("no bootstrap store answered rank {} within {}", rank, format_seconds(seconds)),
      place_text(where),
      where.rank0_hosts ? "check that rank 0 runs and that firewalls open PACELINE_PORTS"
                        : "check that the starter runs and that its address is reachable");
}

StoreClient::StoreClient(const BootstrapAddress& where, int rank, double seconds)
    : joined_(join_store(where, MessageType::hello_store, rank, seconds)), seconds_(seconds) {}

void StoreClient::set(const std::string& key, const std::string& value) {
  check_size(key, kLargestKey, "key");
  check_size(value, kLargestValue, "value");
  Message message{MessageType::set};
  message.key = key;
  message.value = value;
  request(std::move(message), MessageType::set_done, seconds_,
          fmt::format("the store's receipt for \"{}\"", key));
}

std::string StoreClient::get(const std::string& key, double seconds, const std::string& what) {
  check_size(key, kLargestKey, "key");
  Message message{MessageType::get};
  message.key = key;
  return request(std::move(message), MessageType::got, seconds,
                 what.empty() ? fmt::format("\"{}\"", key) : what)
      .value;
}

Message StoreClient::request(Message message, MessageType answer, double seconds,
                             const std::string& what) {
  const Deadline deadline(seconds);
  message.ticket = ++ticket_;
  // A request that went out by half cannot be taken back, so sending has the store's own patience.
  if (!send_all(joined_.socket, encode(message), Deadline(seconds_))) lost();
  while (true) {
    try {
      // Answers to earlier requests whose time was up are passed over.
      while (auto got = joined_.parser.next()) {
        if (got->type == answer && got->ticket == ticket_) return std::move(*got);
      }
    } catch (const Error&) {
      lost();
    }
    if (!wait_for(joined_.socket, POLLIN, deadline)) {
      throw Error(ErrorKind::stall,
                  fmt::format("{} did not come within {}", what, format_seconds(seconds)),
                  fmt::format("bootstrap store {}", joined_.server),
                  "see whether that rank runs; its log says how far it came");
    }
    std::string bytes;
    if (receive(joined_.socket, bytes) == Transfer::ended) lost();
    joined_.parser.feed(bytes);
  }
}

void StoreClient::interrupt(const std::string& why) noexcept {
  try {
    const std::lock_guard lock(mutex_);
    if (interrupted_.empty()) interrupted_ = why;
  } catch (const std::exception&) {
    // Without memory for the words, the end itself still arrives.
  }
  shutdown(joined_.socket.number(), SHUT_RDWR);
}

void StoreClient::lost() {
  const std::lock_guard lock(mutex_);
  throw Error(ErrorKind::peer_lost,
              interrupted_.empty() ? "the bootstrap store is gone" : interrupted_,
              fmt::format("bootstrap store {}", joined_.server),
              "see the log of the process that hosted it for the first error");
}

BootstrapAddress find_bootstrap(const ProcessRank& process, const Environment& environment) {
  BootstrapAddress address;
  address.token = checked_token(environment);
  address.across_nodes = process.local_size != process.size;
  const HostPort given = split_address(environment_value(environment, kStoreVariable));
  if (!given.port.empty()) {
    const auto port = to_port(given.port);
    if (!port) {
      throw wrong(fmt::format("\"{}\" is not a port", given.port), kStoreVariable,
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
  start_at(hash_value(identity), address.ports);
  if (address.token.empty())
    address.token = hash_hex(fmt::format("{} user {}", identity, getuid()));
  return address;
}

BootstrapAddress starter_bootstrap(const std::string& host, const Environment& environment) {
  BootstrapAddress address;
  address.host = host;
  address.token = random_token();
  address.ports = parse_ports(environment);
  start_at(hash_value(address.token), address.ports);
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
      throw wrong(fmt::format("\"{}\" is not a list of hosts", nodelist), "Slurm's node list",
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
