#include "engine/comm/rendezvous/server.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <map>
#include <utility>

#include "engine/comm/rendezvous/socket.h"
#include "engine/comm/rendezvous/store_state.h"
#include "engine/core/clock.h"
#include "engine/core/error.h"
#include "engine/core/log.h"

namespace paceline {

namespace {

constexpr std::size_t kMostStrangers = 256;             // connections before their handshake
constexpr std::size_t kMostUnsent = 4 * kLargestValue;  // then we read no more from that rank

struct Connection {
  Descriptor socket;
  MessageParser parser{kLargestGreeting};
  std::string unsent = {};
  Deadline greeting{StoreServer::kGreetingSeconds};
  bool closing = false;  // once all is sent
};

Error no_port(const BootstrapAddress& where, int cause) {
  if (cause == EADDRNOTAVAIL) {
    return {ErrorKind::usage, fmt::format("\"{}\" is no address of this machine", where.host),
            "bootstrap store", "set PACELINE_STORE to an address of rank 0's node"};
  }
  return {ErrorKind::usage,
          fmt::format("none of {} ports from {} on is free at {}: {}", where.ports.size(),
                      where.ports.front(), where.host, std::strerror(cause)),
          "bootstrap store", "set PACELINE_PORTS to a range that is free"};
}

Descriptor bind_first(const BootstrapAddress& where) {
  int cause = EADDRNOTAVAIL;
  bool only_loopback = true;
  for (const Endpoint& endpoint : resolve(where.host)) {
    if (endpoint.is_wildcard()) {
      throw Error(ErrorKind::usage,
                  fmt::format("\"{}\" would open the store to every interface", where.host),
                  "bootstrap store", "set PACELINE_STORE to one address of rank 0's node");
    }
    // Many systems map a node's own name to 127.0.1.1.
    if (where.across_nodes && endpoint.is_loopback()) continue;
    only_loopback = false;
    for (const std::uint16_t port : where.ports) {
      Descriptor socket = listen_at(endpoint, port);
      if (socket) return socket;
      cause = errno;
      if (cause != EADDRINUSE && cause != EACCES) break;
    }
  }
  if (only_loopback) {
    throw Error(ErrorKind::usage,
                fmt::format("on its own node \"{}\" is a loopback address, which other nodes "
                            "cannot reach",
                            where.host),
                "bootstrap store", "set PACELINE_STORE to an address of rank 0's node");
  }
  throw no_port(where, cause);
}

}  // namespace

class StoreServer::Loop {
 public:
  Loop(Descriptor listener, std::string token, int ranks)
      : listener_(std::move(listener)), state_(std::move(token), ranks) {}

  const Descriptor& listener() const { return listener_; }
  void stop() noexcept {
    stopping_ = true;
    wake_up_.ring();
  }

  void run() noexcept {
    try {
      while (!stopping_) turn();
      finish();
    } catch (const std::exception& error) {
      // Sockets close with us, so every rank learns that the store is gone.
      connections_.clear();
      log::warning("the bootstrap store ends: {}", error.what());
    }
  }

 private:
  void turn() {
    std::vector<pollfd> entries{{wake_up_.descriptor().number(), POLLIN, 0},
                                {listener_.number(), listens() ? short{POLLIN} : short{0}, 0}};
    std::vector<int> names;
    for (const auto& [name, connection] : connections_) {
      entries.push_back({connection.socket.number(), events_of(connection), 0});
      names.push_back(name);
    }
    const int ready = poll(entries.data(), entries.size(), patience());
    for (std::size_t i = 0; ready > 0 && i < names.size(); ++i) {
      if (entries[i + 2].revents != 0) serve(names[i], entries[i + 2].revents);
    }
    if (ready > 0 && entries[1].revents != 0) accept_one();
    state_.tick(now_seconds(), answers_);
    drop_silent();
    deliver();
  }

  std::size_t strangers() const {
    return static_cast<std::size_t>(
        std::count_if(connections_.begin(), connections_.end(),
                      [this](const auto& entry) { return !state_.admitted(entry.first); }));
  }

  // Beyond that newcomers wait in the kernel's queue until the silent ones are dropped. The same
  // holds for a moment when accept() failed for want of descriptors.
  bool listens() const { return strangers() < kMostStrangers && accept_again_.passed(); }

  static short events_of(const Connection& connection) {
    int events = 0;
    if (!connection.closing && connection.unsent.size() < kMostUnsent) events |= POLLIN;
    if (!connection.unsent.empty()) events |= POLLOUT;
    return static_cast<short>(events);
  }

  int patience() const {
    Deadline next(3600);
    if (!accept_again_.passed()) next = earlier(next, accept_again_);
    if (const auto tick = state_.next_tick()) next = earlier(next, Deadline(*tick - now_seconds()));
    for (const auto& [name, connection] : connections_) {
      if (!state_.admitted(name)) next = earlier(next, connection.greeting);
    }
    return next.milliseconds_left();
  }

  void accept_one() {
    Descriptor socket(accept4(listener_.number(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket) {
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
        accept_again_ = Deadline(0.1);
      }
      return;
    }
    tune(socket);
    connections_[next_name_++].socket = std::move(socket);
  }

  void serve(int name, short events) {
    Connection& connection = connections_.at(name);
    if ((events & POLLOUT) != 0) flush(name, connection);
    if (connections_.count(name) == 0 || (events & ~POLLOUT) == 0) return;
    if (!read(name, connection)) drop(name);
  }

  // False: the connection has ended or does not keep to the protocol.
  bool read(int name, Connection& connection) {
    std::string bytes;
    const Transfer result = receive(connection.socket, bytes);
    if (connection.closing) return result != Transfer::ended;
    try {
      connection.parser.feed(bytes);
      while (auto message = connection.parser.next()) {
        state_.receive(name, *message, now_seconds(), answers_);
        if (state_.admitted(name)) connection.parser.allow(kLargestValue);
        if (!answers_.empty() && answers_.back().then_close) break;
      }
    } catch (const Error& error) {
      if (!std::exchange(told_, true)) {
        log::warning("bootstrap store: a connection from {} was dropped: {}",
                     peer_host_of(connection.socket), error.what());
      }
      return false;
    }
    return result != Transfer::ended;
  }

  void drop(int name) {
    state_.end(name, answers_);
    connections_.erase(name);
  }

  void drop_silent() {
    std::erase_if(connections_, [this](const auto& entry) {
      return !state_.admitted(entry.first) && entry.second.greeting.passed();
    });
  }

  // Dropping one may give new answers to others.
  void deliver() {
    while (!answers_.empty()) {
      const std::vector<StoreState::Answer> answers = std::exchange(answers_, {});
      for (const StoreState::Answer& answer : answers) {
        const auto found = connections_.find(answer.connection);
        if (found == connections_.end()) continue;
        found->second.unsent += encode(answer.message);
        found->second.closing |= answer.then_close;
      }
      for (const StoreState::Answer& answer : answers) {
        const auto found = connections_.find(answer.connection);
        if (found != connections_.end()) flush(answer.connection, found->second);
      }
    }
  }

  void flush(int name, Connection& connection) {
    const Transfer result = send_some(connection.socket, connection.unsent);
    if (result == Transfer::ended || (connection.closing && connection.unsent.empty())) drop(name);
  }

  // What has arrived is still served: an abort just before the end must reach the others.
  void finish() {
    listener_.close();
    std::vector<int> names;
    for (const auto& [name, connection] : connections_) names.push_back(name);
    for (const int name : names) {
      if (connections_.count(name) != 0 && !read(name, connections_.at(name))) drop(name);
    }
    deliver();
    state_.say_goodbye(answers_);
    deliver();
    const Deadline deadline(1);
    for (auto& [name, connection] : connections_) {
      if (state_.admitted(name)) send_all(connection.socket, connection.unsent, deadline);
    }
  }

  Descriptor listener_;
  WakeUp wake_up_;
  std::atomic<bool> stopping_{false};
  StoreState state_;
  std::map<int, Connection> connections_;
  int next_name_ = 0;
  std::vector<StoreState::Answer> answers_;
  Deadline accept_again_{0};
  bool told_ = false;
};

StoreServer::StoreServer(const BootstrapAddress& where, int ranks) {
  Descriptor listener = bind_first(where);
  address_ = format_address(local_host_of(listener), local_port_of(listener));
  loop_ = std::make_unique<Loop>(std::move(listener), where.token, ranks);
  thread_ = std::thread([loop = loop_.get()] { loop->run(); });
}

StoreServer::~StoreServer() {
  loop_->stop();
  thread_.join();
}

}  // namespace paceline
