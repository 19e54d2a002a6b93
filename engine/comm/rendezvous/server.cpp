#include "engine/comm/rendezvous/server.h"

#include <fmt/format.h>
#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <map>
#include <set>
#include <span>
#include <utility>

#include "engine/comm/rendezvous/socket.h"
#include "engine/comm/rendezvous/token_file.h"
#include "engine/core/clock.h"
#include "engine/core/error.h"
#include "engine/core/log.h"

namespace paceline {

namespace {

constexpr std::size_t kMostStrangers = 256;             // connections before their handshake
constexpr double kCrowdSeconds = 0.5;                   // for their greeting, once they are so many
constexpr std::size_t kMostUnsent = 4 * kLargestValue;  // then we read no more from that rank
constexpr std::size_t kOwnDescriptors = 64;             // beside the ranks' connections

struct Connection {
  Descriptor socket;
  MessageParser parser{kLargestGreeting};
  std::string unsent = {};
  Deadline greeting{StoreServer::kGreetingSeconds};
  std::uint32_t events = EPOLLIN;  // that are watched for
  bool closing = false;            // once all is sent
};

// What an event is of; connections are numbered from kFirstName on.
constexpr int kWakeUp = 0, kListener = 1, kFirstName = 2;

Error no_port(const BootstrapAddress& where, int cause, const std::string& holder) {
  if (cause == EADDRNOTAVAIL) {
    return {ErrorKind::usage, fmt::format("\"{}\" is not a local address", where.host),
            "bootstrap store", "set PACELINE_STORE to an address of rank 0's node"};
  }
  return {ErrorKind::usage,
          fmt::format("none of {} ports is free: {} at {}", where.ports.size(),
                      std::strerror(cause), holder),
          "bootstrap store", "set PACELINE_PORTS to a range that is free"};
}

// The descriptors whose events a thread waits for.
class Watcher {
 public:
  Watcher() : descriptor_(epoll_create1(EPOLL_CLOEXEC)) { check(descriptor_ ? 0 : -1); }

  void watch(const Descriptor& descriptor, int name, std::uint32_t events) {
    control(EPOLL_CTL_ADD, descriptor, name, events);
  }
  void change(const Descriptor& descriptor, int name, std::uint32_t events) {
    control(EPOLL_CTL_MOD, descriptor, name, events);
  }
  // What has happened within that time. A closed descriptor is watched no more.
  std::span<const epoll_event> wait(int milliseconds) {
    const int ready = epoll_wait(descriptor_.number(), events_.data(),
                                 static_cast<int>(events_.size()), milliseconds);
    return {events_.data(), static_cast<std::size_t>(std::max(0, ready))};
  }

 private:
  void control(int how, const Descriptor& descriptor, int name, std::uint32_t events) {
    epoll_event event{};
    event.events = events;
    event.data.fd = name;
    check(epoll_ctl(descriptor_.number(), how, descriptor.number(), &event));
  }
  static void check(int result) {
    if (result == 0) return;
    throw usage_error(fmt::format("no event queue: {}", std::strerror(errno)), "bootstrap store",
                      "raise the limit on open files (ulimit -n)");
  }

  Descriptor descriptor_;
  std::array<epoll_event, 256> events_{};
};

Descriptor bind_first(const BootstrapAddress& where) {
  int cause = EADDRNOTAVAIL;
  bool only_loopback = true;
  std::string holder;
  for (const Endpoint& endpoint : resolve(where.host)) {
    if (endpoint.is_wildcard()) {
      throw usage_error(fmt::format("\"{}\" would open the store to every interface", where.host),
                        "bootstrap store", "set PACELINE_STORE to one address of rank 0's node");
    }
    // Many systems map a node's own name to 127.0.1.1.
    if (where.across_nodes && endpoint.is_loopback()) continue;
    only_loopback = false;
    for (const std::uint16_t port : where.ports) {
      Descriptor socket = listen_at(endpoint, port);
      if (socket) return socket;
      cause = errno;
      if (holder.empty()) holder = describe_listener(endpoint, port);
      if (cause != EADDRINUSE && cause != EACCES) break;
    }
  }
  if (only_loopback) {
    throw usage_error(fmt::format("on its own node \"{}\" is a loopback address, which other nodes "
                                  "cannot reach",
                                  where.host),
                      "bootstrap store", "set PACELINE_STORE to an address of rank 0's node");
  }
  throw no_port(where, cause, holder);
}

}  // namespace

// A turn costs as much as has happened, however many ranks there are.
class StoreServer::Loop {
 public:
  Loop(Descriptor listener, const std::string& token, const std::string& address,
       const BootstrapAddress& where, int ranks)
      : listener_(std::move(listener)), state_(token, address, ranks) {
    if (!where.token_file.empty()) {
      token_file_ = std::make_unique<TokenFile>(
          where.token_file, TokenFile::Content{token, find_local_port(listener_)});
    }
    watcher_.watch(wake_up_.descriptor(), kWakeUp, EPOLLIN);
    watcher_.watch(listener_, kListener, EPOLLIN);
  }

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
    for (const epoll_event& event : watcher_.wait(wait_limit())) {
      const int name = event.data.fd;
      if (name == kListener) accept_waiting();
      if (name >= kFirstName && connections_.count(name) != 0) serve(name, event.events);
    }
    state_.tick(now_seconds(), answers_);
    drop_silent();
    deliver();
    if (token_file_ && state_.is_complete()) token_file_.reset();
    watch_listener();
  }

  // Beyond that newcomers wait in the kernel's queue until the silent ones are dropped. The same
  // holds for a moment when accept() failed for want of descriptors.
  bool listens() const { return strangers_.size() < kMostStrangers && accept_again_.passed(); }

  void watch_listener() {
    if (std::exchange(listening_, listens()) == listening_) return;
    watcher_.change(listener_, kListener, listening_ ? std::uint32_t{EPOLLIN} : 0);
  }

  void watch(int name, Connection& connection) {
    std::uint32_t events = 0;
    if (!connection.closing && connection.unsent.size() < kMostUnsent) events |= EPOLLIN;
    if (!connection.unsent.empty()) events |= EPOLLOUT;
    if (std::exchange(connection.events, events) == events) return;
    watcher_.change(connection.socket, name, events);
  }

  int wait_limit() const {
    Deadline next(3600);
    if (!accept_again_.passed()) next = earlier(next, accept_again_);
    if (const auto tick = state_.next_tick()) next = earlier(next, Deadline(*tick - now_seconds()));
    if (!strangers_.empty()) next = earlier(next, Deadline(oldest_seconds_left()));
    return next.milliseconds_left();
  }

  void accept_waiting() {
    while (listens()) {
      Descriptor socket(
          accept4(listener_.number(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!socket) {
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
          accept_again_ = Deadline(0.1);
        }
        return;
      }
      tune(socket);
      const int name = next_name_++;
      Connection& connection = connections_[name];
      connection.socket = std::move(socket);
      watcher_.watch(connection.socket, name, connection.events);
      strangers_.insert(name);
    }
  }

  void serve(int name, std::uint32_t events) {
    Connection& connection = connections_.at(name);
    if ((events & EPOLLOUT) != 0) flush(name, connection);
    if (connections_.count(name) == 0 || (events & ~std::uint32_t{EPOLLOUT}) == 0) return;
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
        if (state_.admitted(name) && strangers_.erase(name) != 0) {
          connection.parser.allow(kLargestValue);
        }
        if (!answers_.empty() && answers_.back().then_close) break;
      }
    } catch (const Error& error) {
      if (!std::exchange(reported_, true)) {
        log::warning("bootstrap store: a connection from {} was dropped: {}",
                     find_peer_host(connection.socket), error.what());
      }
      return false;
    }
    return result != Transfer::ended;
  }

  void drop(int name) {
    state_.end(name, answers_);
    strangers_.erase(name);
    connections_.erase(name);
  }

  // Of the stranger who came first.
  double oldest_seconds_left() const {
    const bool is_crowd = strangers_.size() >= kMostStrangers;
    return connections_.at(*strangers_.begin()).greeting.milliseconds_left() / 1000.0 -
           (is_crowd ? kGreetingSeconds - kCrowdSeconds : 0);
  }

  void drop_silent() {
    while (!strangers_.empty() && oldest_seconds_left() <= 0) drop(*strangers_.begin());
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
    if (result == Transfer::ended || (connection.closing && connection.unsent.empty())) {
      drop(name);
    } else {
      watch(name, connection);
    }
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
  Watcher watcher_;
  std::atomic<bool> stopping_{false};
  bool listening_ = true;
  StoreState state_;
  std::unique_ptr<TokenFile> token_file_;  // until all ranks have joined
  std::map<int, Connection> connections_;
  std::set<int> strangers_;  // connections before their handshake
  int next_name_ = kFirstName;
  std::vector<StoreState::Answer> answers_;
  Deadline accept_again_{0};
  bool reported_ = false;
};

StoreServer::StoreServer(const BootstrapAddress& where, int ranks) {
  allow_open_files(2 * static_cast<std::size_t>(ranks) + kOwnDescriptors,
                   fmt::format("the bootstrap store of {} ranks", ranks));
  Descriptor listener = bind_first(where);
  address_ = format_address(find_local_host(listener), find_local_port(listener));
  const std::string token = where.token_file.empty() ? where.token : random_token();
  loop_ = std::make_unique<Loop>(std::move(listener), token, address_, where, ranks);
  thread_ = std::thread([loop = loop_.get()] { loop->run(); });
}

StoreServer::~StoreServer() {
  loop_->stop();
  thread_.join();
}

}  // namespace paceline
