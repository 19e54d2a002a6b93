// A wire of Gloo's TCP connections.
#pragma once

#include <gloo/context.h>

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "engine/comm/communicator.h"
#include "engine/comm/transport/wire.h"

namespace paceline::gloo_backend {

class GlooWire final : public Wire {
 public:
  // Errors call member m rank m * ranks_a_task.
  GlooWire(std::shared_ptr<gloo::Context> context, const Deadlines& deadlines, int ranks_a_task);

  int rank() const override { return context_->rank; }
  int size() const override { return context_->size; }
  Messages messages() const override;
  std::span<std::byte> scratch() override { return scratch_; }
  void begin(std::span<std::byte> data, std::string_view label) override;
  void send(int to, std::span<const std::byte> message) override;
  void receive(int from, std::span<std::byte> message) override;
  void wait_received() override;
  void wait_sent(std::size_t sends) override;

  // Ends the waits of this rank, from any thread.
  void abort(std::string_view why) noexcept;

 private:
  using Buffer = gloo::transport::UnboundBuffer;
  struct Pending {
    Buffer* buffer;  // null: a message of no bytes
    int peer;
  };

  Buffer& buffer_of(const std::byte* address) const;
  template <typename Wait>
  void wait(const Pending& pending, bool came, const Wait& wait);
  void let_go();
  [[noreturn]] void throw_aborted();
  [[noreturn]] void fail(const std::exception& error, int peer, bool came);

  std::shared_ptr<gloo::Context> context_;
  Deadlines deadlines_;
  int ranks_a_task_;
  std::vector<std::byte> scratch_;
  std::unique_ptr<Buffer> scratch_buffer_, data_buffer_;
  std::deque<Pending> received_;
  std::vector<Pending> sent_;
  std::size_t waited_sends_ = 0, waited_receives_ = 0;
  std::string_view label_;
  mutable std::mutex mutex_;  // of the buffers' lives and `why_`
  std::atomic<bool> aborted_{false};
  std::string why_;
};

// Throws what Gloo's exception in a wait for `peer` means: stall or peer_lost. `came`: `peer` has
// sent something in this collective.
[[noreturn]] void throw_translated(const std::exception& error, int rank, int peer, bool came,
                                   const Deadlines& deadlines, std::string_view label);

}  // namespace paceline::gloo_backend
