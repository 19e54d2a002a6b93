#include "engine/comm/algorithms/ring.h"

#include <algorithm>

#include "engine/comm/algorithms/sum.h"

namespace paceline {

namespace {

struct Data {
  std::byte* bytes;
  std::size_t count, element;

  std::span<std::byte> part(std::size_t begin, std::size_t end) const {
    return {bytes + begin * element, (end - begin) * element};
  }
};

std::size_t count_segments(std::size_t elements, std::size_t element_bytes,
                           const Wire::Messages& messages) {
  const std::size_t most = messages.bytes / element_bytes;
  return std::max<std::size_t>(1, (elements + most - 1) / most);
}

std::span<std::byte> scratch_slot(Wire& wire, std::size_t message, std::size_t bytes) {
  const Wire::Messages messages = wire.messages();
  return wire.scratch().subspan(message % messages.window * messages.bytes, bytes);
}

void add(std::span<std::byte> to, std::span<const std::byte> from, DType type) {
  add_to(to.data(), from.data(), to.size() / size_of(type), type);
}

class PairExchange {
 public:
  PairExchange(Wire& wire, const Data& data, DType type)
      : wire_(wire),
        data_(data),
        type_(type),
        window_(wire.messages().window),
        segments_(count_segments(data.count, data.element, wire.messages())) {}

  void run() {
    start_up_to(window_);
    for (std::size_t g = 0; g < segments_; ++g) {
      wire_.wait_received();
      wire_.wait_sent(g + 1);
      add(segment(g), scratch_slot(wire_, g, segment(g).size()), type_);
      start_up_to(g + 1 + window_);
    }
  }

 private:
  std::span<std::byte> segment(std::size_t g) const {
    return data_.part(data_.count * g / segments_, data_.count * (g + 1) / segments_);
  }

  void start_up_to(std::size_t end) {
    const int peer = 1 - wire_.rank();
    for (; started_ < std::min(end, segments_); ++started_) {
      const auto message = segment(started_);
      wire_.receive(peer, scratch_slot(wire_, started_, message.size()));
      wire_.send(peer, message);
    }
  }

  Wire& wire_;
  Data data_;
  DType type_;
  std::size_t window_, segments_, started_ = 0;
};

// Messages are numbered m = step * segments + segment, the same on every link.
class RingPass {
 public:
  RingPass(Wire& wire, const Data& data, DType type)
      : wire_(wire),
        data_(data),
        type_(type),
        members_(static_cast<std::size_t>(wire.size())),
        rank_(static_cast<std::size_t>(wire.rank())),
        window_(wire.messages().window),
        segments_(
            count_segments((data.count + members_ - 1) / members_, data.element, wire.messages())),
        adding_((members_ - 1) * segments_),
        messages_(2 * adding_) {}

  void run() {
    const int right = static_cast<int>((rank_ + 1) % members_);
    post();
    for (sent_ = 0; sent_ < messages_;) {
      while (taken_ + segments_ <= sent_) take();  // what step s sends, step s - 1 received
      wire_.send(right, message_at(rank_, sent_));
      ++sent_;
      post();
    }
    while (taken_ < messages_) take();
    wire_.wait_sent(messages_);
  }

 private:
  std::span<std::byte> message_at(std::size_t sender, std::size_t message) const {
    const std::size_t step = message / segments_, g = message % segments_;
    const std::size_t chunk = (sender + 2 * members_ - step) % members_;
    const std::size_t begin = data_.count * chunk / members_;
    const std::size_t count = data_.count * (chunk + 1) / members_ - begin;
    return data_.part(begin + count * g / segments_, begin + count * (g + 1) / segments_);
  }

  std::size_t left() const { return (rank_ + members_ - 1) % members_; }

  void post() {
    for (; posted_ < std::min(messages_, taken_ + window_); ++posted_) {
      auto message = message_at(left(), posted_);
      if (posted_ < adding_) {
        message = scratch_slot(wire_, posted_, message.size());
      } else {
        // It overwrites what was sent in the same step of the adding half.
        const std::size_t send_before = posted_ - adding_;
        if (send_before >= sent_) return;
        wire_.wait_sent(send_before + 1);
      }
      wire_.receive(static_cast<int>(left()), message);
    }
  }

  void take() {
    wire_.wait_received();
    if (taken_ < adding_) {
      const auto sum = message_at(left(), taken_);
      add(sum, scratch_slot(wire_, taken_, sum.size()), type_);
    }
    ++taken_;
    post();
  }

  Wire& wire_;
  Data data_;
  DType type_;
  std::size_t members_, rank_, window_, segments_, adding_, messages_;
  std::size_t sent_ = 0, posted_ = 0, taken_ = 0;
};

}  // namespace

void Ring::all_reduce(std::byte* data, std::size_t count, DType type, std::string_view label) {
  check_summable(type);
  if (wire_.size() == 1 || count == 0) return;
  const Data all{data, count, size_of(type)};
  wire_.begin(all.part(0, count), label);
  if (wire_.size() == 2) {
    PairExchange(wire_, all, type).run();
  } else {
    RingPass(wire_, all, type).run();
  }
}

}  // namespace paceline
