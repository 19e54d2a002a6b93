#include "engine/comm/rendezvous/join.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>

#include "engine/comm/rendezvous/message.h"
#include "engine/comm/rendezvous/token_file.h"
#include "engine/core/error.h"
#include "engine/core/hash.h"
#include "engine/core/text.h"
#include "engine/failure/rank_status.h"
#include "engine/launch/process_rank.h"

namespace paceline {

namespace {

constexpr double kAnswerSeconds = 3;
constexpr double kPauseSeconds = 0.05;      // between rounds of all addresses
constexpr double kAnswersPause = 1;         // the same while somebody may still answer
constexpr double kHeadStartSeconds = 0.02;  // of an address before the next one is tried

// The greeting of what listens at an address. Both sides prove that they know the token before
// either believes the other.
class Greeting {
 public:
  Greeting(const Endpoint& endpoint, std::uint16_t port)
      : endpoint_(endpoint), port_(port), address_(format_address(endpoint.text(), port)) {}

  // False: nobody listens.
  bool begin(const BootstrapAddress& where, const Message& hello) {
    socket_ = begin_to_connect(endpoint_, port_);
    if (!socket_) return false;
    tune(socket_);
    token_ = where.token;
    ranks_ = where.ranks;
    hello_ = hello;
    hello_.value = random_token() + host_name();
    unsent_ = encode(hello_);
    parser_ = MessageParser(kLargestGreeting);
    until_ = Deadline(kAnswerSeconds);
    is_proved_ = is_welcome_ = false;
    return true;
  }

  bool is_pending() const { return static_cast<bool>(socket_); }
  pollfd entry() const {
    return {socket_.number(), static_cast<short>(unsent_.empty() ? POLLIN : POLLOUT), 0};
  }

  // True: this is the store. Ends without it if the other side is a stranger, or silent.
  bool advance() {
    std::string bytes;
    const bool is_open = send_some(socket_, unsent_) != Transfer::ended &&
                         receive(socket_, bytes) != Transfer::ended;
    bool is_ours = true;
    try {
      parser_.feed(bytes);
      for (auto message = parser_.next(); message; message = parser_.next()) {
        is_ours = is_ours && answer(*message);
        if (is_welcome_) return true;
      }
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::input) throw;
      is_ours = false;
    }
    const bool is_late = until_.passed();
    if (!is_ours || (is_late && unsent_.empty())) stranger_ = describe_listener(endpoint_, port_);
    if (!is_ours || !is_open || is_late) socket_.close();
    return false;
  }

  Joined take() {
    parser_.allow(kLargestValue);
    return {std::move(socket_), std::move(parser_), address_};
  }
  const std::string& stranger() const { return stranger_; }  // who answered, but not as the store
  bool has_other_token() const { return has_other_token_; }

 private:
  // False: it is no answer of this run's store.
  bool answer(const Message& message) {
    if (!is_proved_) {
      if (message.type != MessageType::challenge) return false;
      const auto prove = [&](ProofSide side) {
        return make_proof(token_, side, address_, hello_, message.key);
      };
      is_proved_ = is_same_proof(message.value, prove(ProofSide::store));
      has_other_token_ = !is_proved_;
      if (has_other_token_) return false;
      Message proof{MessageType::proof};
      proof.value = prove(ProofSide::rank);
      unsent_ += encode(proof);
      return true;
    }
    const bool is_refused = message.type == MessageType::refused;
    if (!is_refused && message.type != MessageType::welcome) return false;
    is_welcome_ = !is_refused && message.number == static_cast<std::uint64_t>(ranks_);
    if (is_welcome_) return true;
    throw Error(ErrorKind::mismatch,
                fmt::format("the bootstrap store rejected this rank: {}",
                            is_refused ? printable(message.value)
                                       : fmt::format("its world has {} ranks, this one {}",
                                                     message.number, ranks_)),
                address_, "start all ranks of a run with one command and one PACELINE_TOKEN");
  }

  Endpoint endpoint_;
  std::uint16_t port_;
  std::string address_, token_, unsent_, stranger_;
  int ranks_ = 0;
  Message hello_{MessageType::hello_store};
  Descriptor socket_;
  MessageParser parser_{kLargestGreeting};
  Deadline until_{0};
  bool is_proved_ = false, is_welcome_ = false, has_other_token_ = false;
};

std::string place_text(const BootstrapAddress& where) {
  if (where.ports.size() == 1) return format_address(where.host, where.ports.front());
  return fmt::format("{}, {} ports from {} on", where.host, where.ports.size(),
                     where.ports.front());
}

[[noreturn]] void throw_not_joined(const BootstrapAddress& where,
                                   const std::vector<Greeting>& greetings, int rank,
                                   double seconds) {
  const std::string time = format_seconds(seconds);
  if (greetings.empty()) {
    throw Error(ErrorKind::stall, fmt::format("rank 0 left no token within {}", time),
                where.token_file.string() + "*",
                "check that rank 0 runs, or set PACELINE_TOKEN for all ranks");
  }
  const auto stranger = std::ranges::find_if(
      greetings, [](const Greeting& greeting) { return !greeting.stranger().empty(); });
  if (where.token_file.empty() && std::ranges::any_of(greetings, &Greeting::has_other_token)) {
    throw usage_error("wrong token: the bootstrap store belongs to another run",
                      stranger->stranger(), "give all ranks of this run the same PACELINE_TOKEN");
  }
  throw Error(ErrorKind::stall,
              fmt::format("no bootstrap store answered rank {} within {}{}", rank, time,
                          stranger == greetings.end()
                              ? ""
                              : fmt::format("; {} is not this run's", stranger->stranger())),
              place_text(where),
              where.rank0_hosts ? "check that rank 0 runs and that firewalls open PACELINE_PORTS"
                                : "check that the starter runs and that its address is reachable");
}

void check_size(const std::string& text, std::size_t limit, const char* noun) {
  if (text.size() <= limit) return;
  throw internal_error(
      fmt::format("a {} of {} bytes, the store takes {}", noun, text.size(), limit),
      "bootstrap store", "report this");
}

constexpr const char* kDefaultPorts = "29400-29499";
constexpr std::size_t kLongestToken = 256;

Error wrong(std::string what, const char* variable, std::string fix) {
  return {ErrorKind::usage, std::move(what), variable, std::move(fix)};
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

// Beside what the ranks report, which all of them see; TMPDIR is the node's own.
std::filesystem::path find_shared_folder(const ProcessRank& process,
                                         const Environment& environment) {
  if (const auto folder = status_folder(environment)) return *folder;
  std::error_code error;
  const bool is_one_node = process.local_size == process.size;
  const auto folder = is_one_node ? std::filesystem::temp_directory_path(error) : ".";
  return error ? "/tmp" : folder;
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
  const bool has_file = !where.token_file.empty();
  const std::vector<Endpoint> endpoints = resolve(where.host);
  const Deadline deadline(seconds);
  BootstrapAddress known = where;
  std::vector<Greeting> greetings;  // one an address, in the order in which they are tried
  std::size_t next = 0;
  const auto list_addresses = [&] {
    greetings.clear();
    for (const std::uint16_t port : known.ports) {
      for (const Endpoint& endpoint : endpoints) greetings.emplace_back(endpoint, port);
    }
    next = 0;
  };
  if (!has_file) list_addresses();
  Deadline next_begins(0);
  while (!deadline.passed()) {
    if (has_file && next == 0 && next_begins.passed()) {
      const auto content = TokenFile::read(where.token_file);
      if (content && content->token != known.token) {
        known.token = content->token;
        known.ports = {content->port};
        list_addresses();
      }
    }
    if (next_begins.passed()) {
      const bool has_begun = next < greetings.size() && !greetings[next].is_pending() &&
                             greetings[next].begin(known, message);
      next = greetings.empty() ? 0 : (next + 1) % greetings.size();
      if (!has_begun && next != 0) continue;
      const bool some_pending = std::ranges::any_of(greetings, &Greeting::is_pending);
      next_begins = Deadline(next != 0      ? kHeadStartSeconds
                             : some_pending ? kAnswersPause
                                            : kPauseSeconds);
    }
    std::vector<pollfd> entries;
    for (const Greeting& greeting : greetings) {
      if (greeting.is_pending()) entries.push_back(greeting.entry());
    }
    poll(entries.data(), entries.size(), earlier(deadline, next_begins).milliseconds_left());
    for (Greeting& greeting : greetings) {
      if (!greeting.is_pending()) continue;
      if (greeting.advance()) return greeting.take();
      if (greeting.is_pending()) continue;
      next_begins = Deadline(next == 0 ? kPauseSeconds : 0);
      if (greeting.has_other_token() && known.ports.size() == 1 && !has_file) {
        throw_not_joined(known, greetings, rank, seconds);
      }
    }
  }
  throw_not_joined(known, greetings, rank, seconds);
}

StoreClient::StoreClient(const BootstrapAddress& where, int rank, double seconds)
    : joined_(join_store(where, MessageType::hello_store, rank, seconds)),
      ranks_(where.ranks),
      seconds_(seconds) {}

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
        check_answer(*got, ranks_);
        if (got->type == answer && got->ticket == ticket_) return std::move(*got);
      }
    } catch (const Error& error) {
      lost(error.what());
    }
    if (deadline.passed() || !wait_for(joined_.socket, POLLIN, deadline)) {
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

void StoreClient::lost(const std::string& why) {
  const std::lock_guard lock(mutex_);
  throw Error(ErrorKind::peer_lost, interrupted_.empty() ? why : interrupted_,
              fmt::format("bootstrap store {}", joined_.server),
              "see the log of the process that hosted it for the first error");
}

BootstrapAddress find_bootstrap(const ProcessRank& process, const Environment& environment) {
  BootstrapAddress address;
  address.token = checked_token(environment);
  address.ranks = process.size;
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
  if (address.token.empty()) {
    address.token_file =
        find_shared_folder(process, environment) / fmt::format("paceline-{}-", hash_hex(identity));
    address.ports.push_back(0);  // any: the file names it
  }
  return address;
}

BootstrapAddress starter_bootstrap(const std::string& host, const Environment& environment) {
  BootstrapAddress address{
      .host = host, .ports = parse_ports(environment), .token = random_token()};
  start_at(hash_value(address.token), address.ports);
  address.ports.push_back(0);  // any: the ranks get it by their environment
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

}  // namespace paceline
