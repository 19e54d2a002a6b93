// Messages between the members of a ring: what `ring.h` needs from a transport (MPI, TCP).
//
// Within a collective, messages from one member to another arrive in the order of sending, and fill
// receives in the order of posting. Empty messages complete immediately and are not sent. Only
// waits block. They have a deadline, after which they throw stall; after an abort they throw
// peer_lost. Both name the rank they waited for.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace paceline {

class Wire {
 public:
  virtual ~Wire() = default;
  virtual int rank() const = 0;  // index among the members
  virtual int size() const = 0;

  // The message size that suits this transport, and how many receives to post ahead.
  struct Messages {
    std::size_t bytes, window;
  };
  virtual Messages messages() const = 0;
  // A buffer for messages().window messages that receives may use. Valid as long as the wire.
  virtual std::span<std::byte> scratch() = 0;

  // Starts a collective. Its messages are in `data` or in scratch().
  virtual void begin(std::span<std::byte> data, std::string_view label) = 0;
  virtual void send(int to, std::span<const std::byte> message) = 0;
  virtual void receive(int from, std::span<std::byte> message) = 0;
  // Waits until the oldest receive not yet waited for is complete.
  virtual void wait_received() = 0;
  // Waits until the first `sends` sends of this collective are complete and their buffers can be
  // reused.
  virtual void wait_sent(std::size_t sends) = 0;
};

}  // namespace paceline
