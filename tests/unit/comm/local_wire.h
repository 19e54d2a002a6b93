// Wires between threads of a test: messages are copied when sender and receiver have both come.
#pragma once

#include <condition_variable>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "engine/comm/transport/socket_wire.h"

namespace paceline {

// Sends complete only once received, as large MPI messages do: what relies on buffering hangs.
class LocalNet {
 public:
  explicit LocalNet(int size) : links_(static_cast<std::size_t>(size * size)), size_(size) {}

  struct Piece {
    std::byte* bytes;
    std::size_t count;
    std::shared_ptr<bool> done;
  };
  struct Link {
    std::deque<Piece> sends, receives;
  };

  Link& link(int from, int to) { return links_[static_cast<std::size_t>(from * size_ + to)]; }
  int size() const { return size_; }

  void match(Link& link) {
    while (!link.sends.empty() && !link.receives.empty()) {
      const Piece send = link.sends.front(), receive = link.receives.front();
      if (send.count != receive.count) mismatched = true;
      std::memcpy(receive.bytes, send.bytes, std::min(send.count, receive.count));
      *send.done = *receive.done = true;
      link.sends.pop_front();
      link.receives.pop_front();
      ++messages;
      bytes += send.count;
    }
    changed.notify_all();
  }

  std::mutex mutex;
  std::condition_variable changed;
  bool mismatched = false;
  std::size_t messages = 0, bytes = 0;

 private:
  std::vector<Link> links_;
  int size_;
};

class LocalWire final : public Wire {
 public:
  LocalWire(LocalNet& net, int rank)
      : net_(net), rank_(rank), scratch_(messages().bytes * messages().window) {}

  int rank() const override { return rank_; }
  int size() const override { return net_.size(); }
  Messages messages() const override { return {1024, 3}; }
  std::span<std::byte> scratch() override { return scratch_; }
  void begin(std::span<std::byte>, std::string_view) override {
    sent_.clear();
    received_.clear();
    waited_sends_ = waited_receives_ = 0;
  }
  void send(int to, std::span<const std::byte> message) override {
    sent_.push_back(
        put(net_.link(rank_, to), true, const_cast<std::byte*>(message.data()), message.size()));
  }
  void receive(int from, std::span<std::byte> message) override {
    received_.push_back(put(net_.link(from, rank_), false, message.data(), message.size()));
  }
  void wait_received() override { wait(received_.at(waited_receives_++)); }
  void wait_sent(std::size_t sends) override {
    while (waited_sends_ < sends) wait(sent_.at(waited_sends_++));
  }

 private:
  std::shared_ptr<bool> put(LocalNet::Link& link, bool sends, std::byte* bytes, std::size_t count) {
    auto done = std::make_shared<bool>(count == 0);
    if (count == 0) return done;
    std::lock_guard lock(net_.mutex);
    (sends ? link.sends : link.receives).push_back({bytes, count, done});
    net_.match(link);
    return done;
  }
  void wait(const std::shared_ptr<bool>& done) {
    std::unique_lock lock(net_.mutex);
    if (!net_.changed.wait_for(lock, std::chrono::seconds(20), [&] { return *done; })) {
      throw std::runtime_error("a message never came");
    }
  }

  LocalNet& net_;
  int rank_;
  std::vector<std::byte> scratch_;
  std::vector<std::shared_ptr<bool>> sent_, received_;
  std::size_t waited_sends_ = 0, waited_receives_ = 0;
};

}  // namespace paceline
