// Files of tokens.
#include <gtest/gtest.h>

#include "engine/core/file.h"
#include "engine/input/loading/dataset.h"
#include "engine/plan/network.h"
#include "tests/support/expect_error.h"
#include "tests/support/scratch.h"

namespace paceline {
namespace {

// llm.c's format, version 1.
std::string bin_file(const std::vector<std::uint16_t>& tokens, std::uint32_t declared,
                     std::uint32_t magic = 20240520) {
  std::string bytes(1024, '\0');
  const std::uint32_t header[] = {magic, 1, declared};
  for (std::size_t i = 0; i < 12; ++i) bytes[i] = static_cast<char>(header[i / 4] >> 8 * (i % 4));
  for (const std::uint16_t token : tokens) {
    bytes += static_cast<char>(token & 0xFF);
    bytes += static_cast<char>(token >> 8);
  }
  return bytes;
}

class Tokens : public testing::Test {
 protected:
  void write(const std::string& name, const std::string& bytes) {
    replace_file(scratch_ / name, bytes);
  }
  DatasetPair load(int context, int vocabulary) {
    return load_tokens(scratch_.path(), context, vocabulary);
  }
  static std::size_t token(const Dataset& set, std::size_t sample, std::size_t place) {
    return token_at(set.images.data() + sample * set.sample_bytes(), place);
  }
  Scratch scratch_;
};

TEST_F(Tokens, SamplesShareTheirEnds) {
  write("tiny_train.bin", bin_file({10, 300, 12, 13, 14, 15, 16}, 7));
  write("tiny_val.bin", bin_file({1, 2, 3, 4}, 4));
  const DatasetPair sets = load(3, 500);
  ASSERT_EQ(sets.train.samples, 2U);
  EXPECT_EQ(token(sets.train, 0, 1), 300U);
  EXPECT_EQ(token(sets.train, 0, 3), 13U);
  EXPECT_EQ(token(sets.train, 1, 0), 13U);
  EXPECT_EQ(token(sets.train, 1, 3), 16U);
  EXPECT_EQ(sets.test.samples, 1U);
  EXPECT_EQ(sets.train.labels.size(), 2U);
}

// Shards in the order of names; no sample spans two.
TEST_F(Tokens, ShardsFollowEachOther) {
  write("web_train_000002.bin", bin_file({20, 21, 22}, 3));
  write("web_train_000001.bin", bin_file({10, 11, 12, 13}, 4));
  write("web_val_000000.bin", bin_file({1, 2, 3}, 3));
  const DatasetPair sets = load(2, 64);
  ASSERT_EQ(sets.train.samples, 2U);
  EXPECT_EQ(token(sets.train, 0, 0), 10U);
  EXPECT_EQ(token(sets.train, 1, 0), 20U);
}

TEST_F(Tokens, TextIsReadByBytes) {
  write("train.txt", "hello\xC3\xA9");
  write("val.txt", "all the world");
  const DatasetPair sets = load(4, 256);
  ASSERT_EQ(sets.train.samples, 1U);
  EXPECT_EQ(token(sets.train, 0, 4), std::size_t{'o'});
  EXPECT_EQ(load(6, 256).train.samples, 1U);
  EXPECT_EQ(token(load(6, 256).train, 0, 5), 0xC3U);
}

TEST_F(Tokens, NamesAreReadByTheirWords) {
  write("constraints_val.txt", "of the test");
  write("my-training.v2.txt", "of the training");
  write("retrain_latest.txt", "of neither");
  const DatasetPair sets = load(2, 256);
  EXPECT_EQ(token(sets.train, 0, 1), std::size_t{'f'});
  EXPECT_EQ(sets.train.samples, 7U);
  EXPECT_EQ(sets.test.samples, 5U);
}

// Its last tenth is the test split. Of a folder, files whose names match no split are named.
TEST_F(Tokens, ASingleFileIsSplit) {
  write("docs.txt", std::string(90, 'a') + "bcdefghijk");
  const DatasetPair sets = load_tokens(scratch_ / "docs.txt", 4, 256);
  EXPECT_EQ(sets.train.samples, 22U);
  ASSERT_EQ(sets.test.samples, 2U);
  EXPECT_EQ(token(sets.test, 0, 0), std::size_t{'b'});
  EXPECT_EQ(sets.hash, tokens_hash(scratch_ / "docs.txt"));
  expect_error(ErrorKind::input, {"docs.txt belongs to no split", "put train or val"},
               [&] { load(4, 256); });
}

TEST_F(Tokens, TheHashFollowsTheBytes) {
  write("train.txt", "some text");
  write("val.txt", "more text");
  const std::string before = tokens_hash(scratch_.path());
  EXPECT_EQ(load(2, 256).hash, before);
  write("val.txt", "more test");
  EXPECT_NE(tokens_hash(scratch_.path()), before);
}

TEST_F(Tokens, WrongFilesAreNamed) {
  expect_error(ErrorKind::input, {"no sample of 5 tokens"}, [&] { load(4, 256); });
  write("val.txt", "long enough");
  write("train.bin", bin_file({1, 2, 3, 4, 5, 6}, 7));
  expect_error(ErrorKind::input, {"7 tokens", "12 bytes", "train.bin"}, [&] { load(2, 256); });
  write("train.bin", bin_file({1, 2, 3}, 3, 20240801));
  expect_error(ErrorKind::input, {"llm.c", "train.bin"}, [&] { load(2, 256); });
  write("train.bin", bin_file({1, 2, 50256}, 3));
  expect_error(ErrorKind::input, {"50256", "place 2", "256", "train.bin"}, [&] { load(2, 256); });
}

TEST(SyntheticTokens, AreBelowTheVocabulary) {
  const DatasetPair sets = synthetic_tokens(7, 300, 50, 5, 3);
  ASSERT_EQ(sets.train.samples, 50U);
  std::size_t largest = 0;
  for (std::size_t i = 0; i < 50 * 8; ++i) {
    largest = std::max(largest, token_at(sets.train.images.data(), i));
  }
  EXPECT_LT(largest, 300U);
  EXPECT_GT(largest, 255U);
}

}  // namespace
}  // namespace paceline
