#include "engine/comm/rendezvous/message.h"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "engine/core/error.h"
#include "engine/core/hash.h"

namespace paceline {

namespace {

constexpr std::uint32_t kMagic = 0x50434C42;  // "PCLB"
constexpr std::uint16_t kVersion = 2;
constexpr std::size_t kHeaderBytes = 36;

template <typename Integer>
void put(std::string& bytes, Integer value) {
  for (int shift = 8 * (static_cast<int>(sizeof value) - 1); shift >= 0; shift -= 8) {
    bytes += static_cast<char>(static_cast<unsigned char>(value >> shift));
  }
}

template <typename Integer>
Integer take(std::string_view& bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < sizeof(Integer); ++i) {
    value = value << 8 | static_cast<unsigned char>(bytes[i]);
  }
  bytes.remove_prefix(sizeof(Integer));
  return static_cast<Integer>(value);
}

Error stranger(const char* what) {
  return {ErrorKind::input, what, "bootstrap connection",
          "check what else uses the ports of PACELINE_PORTS"};
}

const std::string& opening() {
  static const std::string bytes = [] {
    std::string start;
    put(start, kMagic);
    put(start, kVersion);
    return start;
  }();
  return bytes;
}

}  // namespace

std::string encode(const Message& message) {
  std::string bytes = opening();
  bytes.reserve(kHeaderBytes + message.key.size() + message.value.size());
  put(bytes, static_cast<std::uint16_t>(message.type));
  put(bytes, message.ticket);
  put(bytes, message.number);
  put(bytes, std::uint32_t{0});
  put(bytes, static_cast<std::uint32_t>(message.key.size()));
  put(bytes, static_cast<std::uint32_t>(message.value.size()));
  return bytes + message.key + message.value;
}

std::optional<Message> MessageParser::next() {
  const std::size_t known = std::min(bytes_.size(), opening().size());
  if (bytes_.compare(0, known, opening(), 0, known) != 0) {
    throw stranger("these bytes are no message of this version of Paceline");
  }
  if (bytes_.size() < kHeaderBytes) return std::nullopt;

  std::string_view header = std::string_view(bytes_).substr(opening().size());
  const auto type = take<std::uint16_t>(header);
  const auto ticket = take<std::uint64_t>(header);
  const auto number = take<std::uint64_t>(header);
  const auto reserved = take<std::uint32_t>(header);
  const auto key = take<std::uint32_t>(header);
  const auto value = take<std::uint32_t>(header);
  if (type < static_cast<std::uint16_t>(MessageType::hello_store) ||
      type > static_cast<std::uint16_t>(MessageType::progress) || reserved != 0) {
    throw stranger("a message of unknown type");
  }
  if (key > kLargestKey || value > largest_value_) throw stranger("a message over the size limit");

  if (bytes_.size() < kHeaderBytes + key + value) return std::nullopt;
  Message message{static_cast<MessageType>(type), ticket, number, bytes_.substr(kHeaderBytes, key),
                  bytes_.substr(kHeaderBytes + key, value)};
  bytes_.erase(0, kHeaderBytes + key + value);
  return message;
}

void check_answer(const Message& answer, int ranks) {
  const auto world = static_cast<std::uint64_t>(ranks);
  bool is_right = true;
  switch (answer.type) {
    case MessageType::gone:
      is_right = answer.number < world && answer.value.size() <= 2 * kLongestWhy;
      break;
    case MessageType::late:
      is_right = answer.number % kOneMoreRank + answer.number / kOneMoreRank < world;
      break;
    case MessageType::set_done:
    case MessageType::got:
    case MessageType::goodbye:
    case MessageType::late_end:
    case MessageType::ask_progress:
      break;
    default:
      is_right = false;
  }
  if (!is_right) throw stranger("an answer that a store of this run does not give");
}

void add_late_ranks(const Message& late, int ranks, std::vector<int>& all) {
  const auto more = late.number / kOneMoreRank;
  if (all.size() + more >= static_cast<std::size_t>(ranks)) throw stranger("too many late ranks");
  const auto first = static_cast<int>(late.number % kOneMoreRank);
  for (int i = 0; i <= static_cast<int>(more); ++i) all.push_back(first + i);
}

std::string random_token() {
  std::array<std::uint64_t, 2> bits{};
  if (getrandom(bits.data(), sizeof bits, 0) != sizeof bits) {
    throw internal_error(fmt::format("no random bytes: {}", std::strerror(errno)), "getrandom");
  }
  return to_hex(bits[0]) + to_hex(bits[1]);
}

std::string make_proof(const std::string& token, ProofSide side, std::string address,
                       const Message& hello, const std::string& nonce) {
  // An interface's name in an IPv6 address, "fe80::1%eth0", is another on each machine.
  if (const auto scope = address.find('%'); scope != std::string::npos) {
    address.erase(scope, address.find(']') - scope);
  }
  const std::string text =
      fmt::format("{} {} {} ", static_cast<char>(side), address, nonce) + encode(hello);
  std::string proof(EVP_MAX_MD_SIZE, '\0');
  unsigned length = 0;
  if (HMAC(EVP_sha256(), token.data(), static_cast<int>(token.size()),
           reinterpret_cast<const unsigned char*>(text.data()), text.size(),
           reinterpret_cast<unsigned char*>(proof.data()), &length) == nullptr) {
    throw internal_error("this OpenSSL has no HMAC-SHA256", "bootstrap store");
  }
  proof.resize(length);
  return proof;
}

bool is_same_proof(const std::string& a, const std::string& b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace paceline
