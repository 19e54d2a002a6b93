#include "engine/comm/backends/gloo/gloo_wire.h"

#include <fmt/format.h>
#include <gloo/common/error.h>
#include <gloo/transport/unbound_buffer.h>

#include <chrono>

#include "engine/core/error.h"

namespace paceline::gloo_backend {

namespace {

// Gloo asks for every message, so a few large ones are best as long as the next are asked for
// early.
constexpr Wire::Messages kMessages{256 * 1024, 8};

constexpr std::uint64_t kSlot = 1;  // collectives follow each other: order tells messages
constexpr double kSecondsToBlame = 2;

std::chrono::milliseconds patience(const Deadlines& deadlines, bool came) {
  const double seconds = deadlines.limit_seconds() + (came ? kSecondsToBlame : 0);
  return std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000));
}

}  // namespace

void throw_translated(const std::exception& error, int rank, int peer, bool came,
                      const Deadlines& deadlines, std::string_view label) {
  const std::string_view words = error.what();
  if (words.find("imed out") == std::string_view::npos) {
    throw Error(ErrorKind::peer_lost, fmt::format("the connection to rank {} broke", peer),
                std::string(label), "see that rank's error")
        .on_rank(rank);
  }
  const std::string_view did = came ? "came but did not continue" : "did not come";
  throw Error(ErrorKind::stall,
              fmt::format("rank {} {} within {:g} s", peer, did, deadlines.limit_seconds()),
              std::string(label), came ? "see which rank it waited for" : "see what it was doing")
      .on_rank(rank);
}

GlooWire::GlooWire(std::shared_ptr<gloo::Context> context, const Deadlines& deadlines,
                   int ranks_a_task)
    : context_(std::move(context)),
      deadlines_(deadlines),
      ranks_a_task_(ranks_a_task),
      scratch_(kMessages.bytes * kMessages.window),
      scratch_buffer_(context_->createUnboundBuffer(scratch_.data(), scratch_.size())) {}

Wire::Messages GlooWire::messages() const {
  return kMessages;
}

void GlooWire::begin(std::span<std::byte> data, std::string_view label) {
  std::lock_guard lock(mutex_);
  if (aborted_) throw_aborted();
  data_buffer_ = context_->createUnboundBuffer(data.data(), data.size());
  received_.clear();
  sent_.clear();
  waited_sends_ = waited_receives_ = 0;
  label_ = label;
}

GlooWire::Buffer& GlooWire::buffer_of(const std::byte* address) const {
  const bool in_scratch = address >= scratch_.data() && address < scratch_.data() + scratch_.size();
  return in_scratch ? *scratch_buffer_ : *data_buffer_;
}

void GlooWire::send(int to, std::span<const std::byte> message) {
  if (message.empty()) return sent_.push_back({nullptr, to});
  Buffer& buffer = buffer_of(message.data());
  const auto offset = message.data() - static_cast<const std::byte*>(buffer.ptr);
  try {
    buffer.send(to, kSlot, static_cast<std::size_t>(offset), message.size());
  } catch (const gloo::Exception& error) {
    fail(error, to, true);
  }
  sent_.push_back({&buffer, to});
}

void GlooWire::receive(int from, std::span<std::byte> message) {
  if (message.empty()) return received_.push_back({nullptr, from});
  Buffer& buffer = buffer_of(message.data());
  const auto offset = message.data() - static_cast<std::byte*>(buffer.ptr);
  try {
    buffer.recv(from, kSlot, static_cast<std::size_t>(offset), message.size());
  } catch (const gloo::Exception& error) {
    fail(error, from, true);
  }
  received_.push_back({&buffer, from});
}

template <typename Wait>
void GlooWire::wait(const Pending& pending, bool came, const Wait& wait) {
  if (pending.buffer == nullptr) return;
  try {
    if (aborted_ || !wait(*pending.buffer, patience(deadlines_, came))) {
      std::lock_guard lock(mutex_);
      throw_aborted();
    }
  } catch (const gloo::Exception& error) {
    {
      std::lock_guard lock(mutex_);
      if (aborted_) throw_aborted();  // why it ended, rather than that a connection did
    }
    fail(error, pending.peer, came);
  }
}

void GlooWire::wait_received() {
  const Pending pending = received_.front();
  received_.pop_front();
  wait(pending, waited_receives_ > 0,
       [](Buffer& buffer, auto timeout) { return buffer.waitRecv(timeout); });
  ++waited_receives_;
}

void GlooWire::wait_sent(std::size_t sends) {
  for (; waited_sends_ < sends; ++waited_sends_) {
    wait(sent_[waited_sends_], true,
         [](Buffer& buffer, auto timeout) { return buffer.waitSend(timeout); });
  }
}

// Gloo's own thread goes on with what was asked of it for as long as the buffer lives, and the
// caller of a collective that failed may free the memory.
void GlooWire::let_go() {
  received_.clear();
  sent_.clear();
  data_buffer_.reset();
}

void GlooWire::fail(const std::exception& error, int peer, bool came) {
  {
    std::lock_guard lock(mutex_);
    let_go();
  }
  throw_translated(error, rank() * ranks_a_task_, peer * ranks_a_task_, came, deadlines_, label_);
}

// With the mutex held.
void GlooWire::throw_aborted() {
  let_go();
  throw Error(ErrorKind::peer_lost, why_.empty() ? "another rank gave up" : why_,
              fmt::format("while waiting at {}", label_), "see that rank's error")
      .on_rank(rank() * ranks_a_task_);
}

void GlooWire::abort(std::string_view why) noexcept {
  std::lock_guard lock(mutex_);
  if (aborted_) return;
  why_ = why;
  aborted_ = true;
  for (Buffer* buffer : {scratch_buffer_.get(), data_buffer_.get()}) {
    if (buffer == nullptr) continue;
    buffer->abortWaitRecv();
    buffer->abortWaitSend();
  }
}

}  // namespace paceline::gloo_backend
