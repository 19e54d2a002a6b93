#include "engine/comm/rendezvous/message.h"

#include <algorithm>

#include "engine/core/error.h"

namespace paceline {

namespace {

constexpr std::uint32_t kMagic = 0x50434C42;  // "PCLB"
constexpr std::uint16_t kVersion = 1;
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

}  // namespace paceline
