#include "engine/comm/rendezvous/liveness.h"

#include <fmt/format.h>
#include <poll.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <utility>

#include "engine/core/error.h"
#include "engine/core/lane.h"
#include "engine/core/log.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

constexpr double kSendSeconds = 2;
constexpr double kLateSeconds = 3;  // more than the second that the server gives the ranks

}  // namespace

LivenessConnection::LivenessConnection(const BootstrapAddress& where, int rank, double seconds,
                                       OnLost on_lost)
    : joined_(join_store(where, MessageType::hello_control, rank, seconds)),
      rank_(rank),
      ranks_(where.ranks),
      host_rank_(where.rank0_hosts ? 0 : -1),
      on_lost_(std::move(on_lost)),
      thread_([this] { run(); }) {
  send(Message{MessageType::progress});  // from here on the store watches this connection
}

LivenessConnection::~LivenessConnection() {
  leave();
}

void LivenessConnection::leave() noexcept {
  if (!thread_.joinable()) return;
  leaving_ = true;
  send(Message{MessageType::goodbye});
  wake_up_.ring();
  thread_.join();
}

void LivenessConnection::abort(const std::string& why) noexcept {
  try {
    Message message{MessageType::abort};
    message.value = fmt::format("rank {}: {}", rank_, why.substr(0, kLongestWhy));
    send(message);
  } catch (const std::exception&) {
    // Without memory for the message, the end of the connection has to do.
  }
}

bool LivenessConnection::send(const Message& message) noexcept {
  try {
    const std::lock_guard lock(send_mutex_);
    if (ended_) return false;
    ended_ = message.type == MessageType::goodbye || message.type == MessageType::abort;
    return send_all(joined_.socket, encode(message), Deadline(kSendSeconds));
  } catch (const std::exception&) {
    return false;
  }
}

void LivenessConnection::run() noexcept {
  name_this_thread("control");
  try {
    bool more = handle_all();  // what came right behind the welcome
    while (more && !leaving_) more = listen();
  } catch (const std::exception& error) {
    lost(host_rank_, fmt::format("the connection to the bootstrap store broke: {}", error.what()));
  }
  const std::lock_guard lock(late_mutex_);
  over_ = true;
  late_changed_.notify_all();
}

// Returns false when the connection has ended.
bool LivenessConnection::listen() {
  std::array<pollfd, 2> entries{pollfd{joined_.socket.number(), POLLIN, 0},
                                pollfd{wake_up_.descriptor().number(), POLLIN, 0}};
  if (poll(entries.data(), entries.size(), -1) < 0) {
    if (errno == EINTR) return true;
    throw internal_error("poll failed", "control socket");
  }
  if (entries[0].revents == 0) return true;
  std::string bytes;
  const Transfer result = receive(joined_.socket, bytes);
  joined_.parser.feed(bytes);
  if (!handle_all()) return false;
  if (result != Transfer::ended) return true;
  const std::string who = host_rank_ == 0 ? "rank 0, which hosts the bootstrap store,"
                                          : "the starter, which hosts the bootstrap store,";
  lost(host_rank_, fmt::format("{} at {} is gone", who, joined_.server));
  return false;
}

bool LivenessConnection::handle_all() {
  while (auto message = joined_.parser.next()) {
    if (!handle(*message)) return false;
  }
  return true;
}

bool LivenessConnection::handle(const Message& message) {
  check_answer(message, ranks_);
  switch (message.type) {
    case MessageType::goodbye:
      return false;
    case MessageType::gone:
      lost(static_cast<int>(message.number), printable(message.value));
      return true;  // goes on answering for this rank's progress
    case MessageType::ask_progress:
      send(Message{MessageType::progress, message.ticket, progress_.load()});
      return true;
    case MessageType::late:
    case MessageType::late_end: {
      const std::lock_guard lock(late_mutex_);
      if (message.ticket != late_ticket_ || late_complete_) return true;
      if (message.type == MessageType::late) {
        add_late_ranks(message, ranks_, late_);
      } else {
        late_complete_ = true;
        late_changed_.notify_all();
      }
      return true;
    }
    default:
      return true;
  }
}

void LivenessConnection::lost(int rank, const std::string& why) noexcept {
  if (leaving_) return;
  const OnLost call = std::exchange(on_lost_, nullptr);
  if (!call) return;
  try {
    call(rank, why);
  } catch (const std::exception& error) {
    log::warning("after the loss of a rank ({}): {}", why, error.what());
  }
}

std::vector<int> LivenessConnection::late_ranks() {
  const std::lock_guard asking(asking_);
  std::unique_lock lock(late_mutex_);
  Message message{MessageType::ask_late, ++late_ticket_};
  late_.clear();
  late_complete_ = false;
  lock.unlock();
  if (!send(message)) return {};
  lock.lock();
  late_changed_.wait_for(lock, std::chrono::duration<double>(kLateSeconds),
                         [this] { return late_complete_ || over_; });
  return late_complete_ ? late_ : std::vector<int>{};
}

}  // namespace paceline
