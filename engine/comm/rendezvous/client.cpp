#include "engine/comm/rendezvous/client.h"

#include <fmt/format.h>
#include <poll.h>

#include "engine/core/error.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

void check_size(const std::string& text, std::size_t limit, const char* noun) {
  if (text.size() <= limit) return;
  throw Error(ErrorKind::internal,
              fmt::format("a {} of {} bytes, the store takes {}", noun, text.size(), limit),
              "bootstrap store", "report this");
}

}  // namespace

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

}  // namespace paceline
