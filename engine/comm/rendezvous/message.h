// The protocol of store, clients and control sockets. A message is a header of 36 bytes (integers
// in network order), then the key, then the value:
//
//   magic u32 "PCLB" | version u16 | type u16 | ticket u64 | number u64 | reserved u32 = 0
//   key length u32 | value length u32
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace paceline {

inline constexpr std::size_t kLargestKey = 1024;
inline constexpr std::size_t kLargestValue = 1 << 20;
inline constexpr std::size_t kLongestWhy = 4096;
// Limit on what a peer can make the other side buffer before the handshake.
inline constexpr std::size_t kLargestGreeting = 1024;

enum class MessageType : std::uint16_t {
  hello_store = 1,  // client: number = rank, value = its nonce and host name
  hello_control,    // the same, for the connection that stands for the rank's life
  challenge,        // server: key = its nonce, value = its proof
  proof,            // client: value = its proof
  welcome,          // server: number = ranks of the world
  refused,          // server, value = why, then it closes
  set,              // client: ticket, key, value
  set_done,         // server: ticket
  get,              // client: ticket, key; a newer one replaces it
  got,              // either side: a clean end follows
  goodbye,          // either side: what follows is a clean end
  abort,            // client: value = why
  gone,             // server: number = rank, value = why
  ask_late,         // client: ticket
  late,             // server: ticket, number = a late rank, plus kOneMoreRank for each after it
  late_end,         // server: ticket
  ask_progress,     // server: ticket
  progress,         // client: ticket, number; the first, of ticket 0: it has read its welcome
};

// Added to the number of `late` for each further rank that is late, in a row.
inline constexpr std::uint64_t kOneMoreRank = std::uint64_t{1} << 32;

struct Message {
  MessageType type;
  std::uint64_t ticket = 0, number = 0;
  std::string key = {}, value = {};
};

std::string encode(const Message& message);

// Converts bytes to messages. Used by both sides.
class MessageParser {
 public:
  explicit MessageParser(std::size_t largest_value) : largest_value_(largest_value) {}
  void allow(std::size_t largest_value) { largest_value_ = largest_value; }

  void feed(std::string_view bytes) { bytes_ += bytes; }
  // The next complete message, if any. Throws input as soon as the bytes violate the protocol; the
  // connection is then unusable.
  std::optional<Message> next();

 private:
  std::size_t largest_value_;
  std::string bytes_;
};

// Throws input for what the store of a world of so many ranks never says to a rank that has greeted
// it.
void check_answer(const Message& answer, int ranks);

// Appends the ranks that a `late` names. Throws input if there are more than `ranks` then.
void add_late_ranks(const Message& late, int ranks, std::vector<int>& all);

inline constexpr std::size_t kTokenBytes = 32;
std::string random_token();  // of hexadecimal digits, from the kernel

enum class ProofSide : char { store = 's', rank = 'r' };

// Shows that a side knows the token without sending it: HMAC-SHA256 of the side, the store's
// address as that side sees it, and both nonces, the rank's as a part of its whole greeting. So an
// old proof is worth nothing, and neither is one that somebody at another address got from the true
// store.
std::string make_proof(const std::string& token, ProofSide side, std::string address,
                       const Message& hello, const std::string& nonce);
// Takes as long for a wrong proof as for a right one.
bool is_same_proof(const std::string& a, const std::string& b);

}  // namespace paceline
