// Messages between the members of a ring: what a transport (MPI, TCP) offers to `ring.h`.
//
// Within a collective, messages from one member to another arrive in the order in which they were
// sent and fill receives in the order in which these were posted. A message of no bytes is complete
// at once and never travels. Nothing blocks but the waits; these have a deadline and then throw
// stall, and peer_lost after an abort, naming the rank they waited for.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace paceline {

class Wire {
 public:
  virtual ~Wire() = default;
  virtual int rank() const = 0;  // among the members
  virtual int size() const = 0;

  // The size of messages that suits this transport, and how many receives to post ahead.
  struct Messages {
    std::size_t bytes, window;
  };
  virtual Messages messages() const = 0;
  // Receives may also go here: room for messages().window messages, as long as the wire.
  virtual std::span<std::byte> scratch() = 0;

  // Messages of the collective that begins now lie in `data` or in scratch().
  virtual void begin(std::span<std::byte> data, std::string_view label) = 0;
  virtual void send(int to, std::span<const std::byte> message) = 0;
  virtual void receive(int from, std::span<std::byte> message) = 0;
  // Until the oldest receive that has not been waited for is complete.
  virtual void wait_received() = 0;
  // Until the first `sends` sends of this collective are complete: their bytes may be changed.
  virtual void wait_sent(std::size_t sends) = 0;
};

}  // namespace paceline
