// A store on this machine, for the tests of what talks to it.
#pragma once

#include <poll.h>

#include <functional>
#include <thread>

#include "engine/comm/rendezvous/server.h"
#include "engine/comm/rendezvous/socket.h"
#include "engine/core/text.h"

namespace paceline {

inline constexpr double kPatience = 20;  // for a busy machine; nothing here waits that long

inline BootstrapAddress any_port(const std::string& host = "127.0.0.1") {
  BootstrapAddress address;
  address.host = host;
  address.ports = {0};
  address.token = "right token";
  address.ranks = 1;
  return address;
}

inline std::uint16_t parse_port(const StoreServer& server) {
  return static_cast<std::uint16_t>(*to_integer(split(server.address(), ':').back()));
}

// A store with a port of its own, and what its clients are told.
struct World {
  explicit World(int ranks) : server(any_port(), ranks), where(any_port()) {
    where.ports = {parse_port(server)};
    where.ranks = ranks;
  }
  StoreServer server;
  BootstrapAddress where;
};

inline Endpoint loopback() {
  return resolve("127.0.0.1").front();
}

inline Descriptor connect_to_port(std::uint16_t port) {
  return connect_to(loopback(), port, Deadline(kPatience));
}

inline Descriptor accept_one(const Descriptor& listener) {
  wait_for(listener, POLLIN, Deadline(kPatience));
  return Descriptor(accept4(listener.number(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
}

// The messages that come until the connection ends.
inline void receive_messages(const Descriptor& socket,
                             const std::function<void(const Message&)>& on_message) {
  MessageParser parser(kLargestValue);
  std::string bytes;
  for (Transfer result = Transfer::some; result != Transfer::ended;) {
    if (!wait_for(socket, POLLIN, Deadline(kPatience))) return;
    bytes.clear();
    result = receive(socket, bytes);
    parser.feed(bytes);
    while (const auto message = parser.next()) on_message(*message);
  }
}

// Knows the token, and answers one rank as it likes once that has joined. Without a token it
// answers the greeting, too. Its writing end closes after `closes_after` answers that are not
// empty.
class FalseStore {
 public:
  using Answer = std::function<std::string(const Message&)>;  // bytes

  FalseStore(int ranks, Answer answer, const std::string& token = "right token",
             int closes_after = -1)
      : listener_(listen_at(loopback(), 0)), where(any_port()) {
    where.ports = {find_local_port(listener_)};
    where.ranks = ranks;
    thread_ = std::thread([this, ranks, token, closes_after, answer = std::move(answer)]() mutable {
      peer_ = accept_one(listener_);
      StoreState state(token, format_address("127.0.0.1", where.ports.front()), ranks);
      receive_messages(peer_, [&](const Message& message) {
        std::vector<StoreState::Answer> answers;
        const bool has_joined = token.empty() || state.admitted(0);
        if (!has_joined) state.receive(0, message, 0, answers);
        for (const auto& one : answers) send_all(peer_, encode(one.message), Deadline(kPatience));
        const std::string bytes = has_joined ? answer(message) : "";
        send_all(peer_, bytes, Deadline(kPatience));
        if (!bytes.empty() && --closes_after == 0) shutdown(peer_.number(), SHUT_WR);
      });
    });
  }
  ~FalseStore() { thread_.join(); }
  void vanish() { shutdown(peer_.number(), SHUT_RDWR); }

 private:
  Descriptor listener_, peer_;
  std::thread thread_;

 public:
  BootstrapAddress where;
};

}  // namespace paceline
