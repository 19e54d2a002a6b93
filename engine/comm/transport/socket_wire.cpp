#include "engine/comm/transport/socket_wire.h"

#include <fmt/format.h>
#include <poll.h>

#include <cerrno>
#include <utility>

#include "engine/core/error.h"

namespace paceline {

namespace {

// Messages of one size everywhere, as both ends cut the data alike. Few in flight stay in the
// caches that ranks of one machine send from and receive to; a network needs as many as its latency
// holds.
constexpr std::size_t kMessageBytes = 128 * 1024;
constexpr std::size_t kWindow = 4, kNetworkWindow = 16;
constexpr double kSecondsToBlame = 2;

}  // namespace

SocketWire::SocketWire(std::map<int, Descriptor> connections, RankGroup group,
                       const Deadlines& deadlines)
    : group_(std::move(group)), deadlines_(deadlines) {
  for (auto& [peer, socket] : connections) {
    if (paceline::is_local(socket)) ++local_links_;
    links_[peer].socket = std::move(socket);
  }
  messages_ = {kMessageBytes, is_local() ? kWindow : kNetworkWindow};
}

std::string SocketWire::description() const {
  if (is_local()) return "Unix sockets";
  return local_links_ == 0 ? "TCP" : "TCP, within a node Unix sockets";
}

std::span<std::byte> SocketWire::scratch() {
  if (scratch_.empty()) scratch_.resize(messages_.bytes * messages_.window);
  return scratch_;
}

Wire::Messages SocketWire::messages() const {
  return messages_;
}

void SocketWire::begin(std::span<std::byte>, std::string_view label) {
  label_ = label;
  throw_if_aborted();
  sends_.clear();
  receives_.clear();
  for (auto& [peer, link] : links_) {
    link.out.clear();
    link.in.clear();
    link.came = false;
  }
  waited_sends_ = waited_receives_ = 0;
}

void SocketWire::send(int to, std::span<const std::byte> message) {
  sends_.push_back({to, const_cast<std::byte*>(message.data()), message.size()});
  if (message.empty()) return;
  Link& link = links_.at(to);
  link.out.push_back(sends_.size() - 1);
  progress_out(to, link);
}

void SocketWire::receive(int from, std::span<std::byte> message) {
  receives_.push_back({from, message.data(), message.size()});
  if (!message.empty()) links_.at(from).in.push_back(receives_.size() - 1);
}

void SocketWire::wait_received() {
  pump_until_done(receives_.at(waited_receives_));
  ++waited_receives_;
}

void SocketWire::wait_sent(std::size_t sends) {
  for (; waited_sends_ < sends; ++waited_sends_) pump_until_done(sends_.at(waited_sends_));
}

void SocketWire::pump_until_done(const Piece& awaited) {
  const bool came = awaited.left > 0 && links_.at(awaited.peer).came;
  const Deadline end(deadlines_.limit_seconds() + (came ? kSecondsToBlame : 0));
  std::vector<pollfd> polled;
  if (awaited.left > 0) progress_in(awaited.peer, links_.at(awaited.peer));  // it may be there
  while (awaited.left > 0) {
    polled.assign(1, {wake_up_.descriptor().number(), POLLIN, 0});
    for (const auto& [peer, link] : links_) {
      const int events = (link.in.empty() ? 0 : POLLIN) | (link.out.empty() ? 0 : POLLOUT);
      polled.push_back({events != 0 ? link.socket.number() : -1, static_cast<short>(events), 0});
    }
    const int ready = poll(polled.data(), polled.size(), end.milliseconds_left());
    throw_if_aborted();
    if (ready == 0) throw_late(awaited.peer, links_.at(awaited.peer).came);
    std::size_t i = 1;
    for (auto& [peer, link] : links_) {
      const short events = polled[i++].revents;
      if (events == 0) continue;
      progress_in(peer, link);
      progress_out(peer, link);
    }
  }
}

void SocketWire::progress_in(int peer, Link& link) {
  while (!link.in.empty()) {
    Piece& piece = receives_[link.in.front()];
    const ssize_t got = recv(link.socket.number(), piece.at, piece.left, 0);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) throw_lost(peer, label_);
    link.came = true;
    piece.at += got;
    piece.left -= static_cast<std::size_t>(got);
    if (piece.left == 0) link.in.pop_front();
  }
}

void SocketWire::progress_out(int peer, Link& link) {
  while (!link.out.empty()) {
    Piece& piece = sends_[link.out.front()];
    const ssize_t sent = ::send(link.socket.number(), piece.at, piece.left, MSG_NOSIGNAL);
    if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) throw_lost(peer, label_);
    piece.at += sent;
    piece.left -= static_cast<std::size_t>(sent);
    if (piece.left == 0) link.out.pop_front();
  }
}

void SocketWire::check_connections(std::string_view label) {
  throw_if_aborted();
  for (const auto& [peer, link] : links_) {
    pollfd polled{link.socket.number(), POLLRDHUP, 0};
    if (poll(&polled, 1, 0) > 0) throw_lost(peer, label.empty() ? label_ : label);
  }
}

void SocketWire::throw_lost(int peer, std::string_view label) const {
  throw Error(ErrorKind::peer_lost,
              fmt::format("the connection to rank {} broke", name_of_member(peer)),
              std::string(label), "see that rank's error")
      .on_rank(group_.name());
}

void SocketWire::throw_late(int peer, bool came) const {
  throw Error(
      ErrorKind::stall,
      fmt::format("rank {} {} within {:g} s", name_of_member(peer),
                  came ? "came but did not continue" : "did not come", deadlines_.limit_seconds()),
      std::string(label_), came ? "see which rank it waited for" : "see what it was doing")
      .on_rank(group_.name());
}

void SocketWire::throw_if_aborted() {
  if (!aborted_) return;
  const std::lock_guard lock(mutex_);
  throw Error(ErrorKind::peer_lost, why_.empty() ? "another rank gave up" : why_,
              fmt::format("while waiting at {}", label_), "see that rank's error")
      .on_rank(group_.name());
}

void SocketWire::abort(std::string_view why) noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (aborted_) return;
    try {
      why_ = why;
    } catch (const std::exception&) {
      // Without memory for the words, the end itself still arrives.
    }
    aborted_ = true;
  }
  wake_up_.ring();
}

}  // namespace paceline
