#include "engine/comm/rendezvous/message.h"

#include <gtest/gtest.h>

#include "tests/support/expect_error.h"

namespace paceline {
namespace {

Message sample() {
  return {MessageType::set, 0x0102030405060708, 0xfffefdfcfbfaf9f8, "address/2",
          std::string("a\0b", 3)};
}

TEST(Message, IsInNetworkOrder) {
  const std::string bytes = encode(sample());
  const std::string header("PCLB\0\2\0\7\1\2\3\4\5\6\7\10", 16);
  EXPECT_EQ(bytes.substr(0, 16), header);
  EXPECT_EQ(bytes.size(), 36 + 9 + 3U);
}

TEST(Message, ComesBackWhereverTheBytesAreCut) {
  const std::string bytes = encode(sample()) + encode(Message{MessageType::goodbye});
  for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
    MessageParser parser(kLargestValue);
    std::vector<Message> got;
    for (const std::string& piece : {bytes.substr(0, cut), bytes.substr(cut)}) {
      parser.feed(piece);
      while (auto message = parser.next()) got.push_back(*message);
    }
    ASSERT_EQ(got.size(), 2U) << cut;
    EXPECT_EQ(got[0].type, MessageType::set);
    EXPECT_EQ(got[0].ticket, sample().ticket);
    EXPECT_EQ(got[0].number, sample().number);
    EXPECT_EQ(got[0].key, sample().key);
    EXPECT_EQ(got[0].value, sample().value);
    EXPECT_EQ(got[1].type, MessageType::goodbye);
  }
}

void expect_refused(std::string bytes, std::size_t largest_value, const std::string& why) {
  MessageParser parser(largest_value);
  parser.feed(bytes);
  expect_error(ErrorKind::input, {why}, [&] { parser.next(); });
}

TEST(Message, StrangersAreSeenAtTheFirstByte) {
  expect_refused("S", kLargestValue, "no message of this version");
  std::string other_version = encode(sample());
  other_version[5] = 1;
  expect_refused(other_version.substr(0, 6), kLargestValue, "no message of this version");
}

TEST(Message, SizesAreCheckedBeforeTheContentComes) {
  Message large = sample();
  large.value.assign(kLargestGreeting + 1, 'x');
  expect_refused(encode(large).substr(0, 36), kLargestGreeting, "over the size limit");
  large = sample();
  large.key.assign(kLargestKey + 1, 'x');
  expect_refused(encode(large).substr(0, 36), kLargestValue, "over the size limit");
}

TEST(Message, UnknownTypesAreRefused) {
  for (const char type : {'\0', '\23'}) {
    std::string bytes = encode(sample());
    bytes[7] = type;
    expect_refused(bytes, kLargestValue, "unknown type");
  }
}

}  // namespace
}  // namespace paceline
