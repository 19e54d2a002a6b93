#include "engine/comm/rendezvous/join.h"

#include <fmt/format.h>
#include <poll.h>

#include <optional>

#include "engine/core/error.h"
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

}  // namespace paceline
