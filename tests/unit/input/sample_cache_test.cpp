#include "engine/input/sample_cache.h"

#include <gtest/gtest.h>

#include <thread>

#include "tests/support/expect_error.h"
#include "tests/support/scratch.h"

namespace paceline {
namespace {

std::string kept(const SampleCache& cache, std::size_t i) {
  std::string data(cache.size(i), '\0');
  if (!data.empty()) cache.get(i, data.data());
  return data;
}

void put(SampleCache& cache, std::size_t i, const std::string& data) {
  cache.put(i, static_cast<std::int32_t>(i), data.data(), data.size());
}

TEST(SampleCache, KeepsUpToItsBudget) {
  const auto budget = std::make_shared<MemoryBudget>(25);
  SampleCache cache(4, budget, nullptr);
  for (const std::size_t i : {2, 0, 1}) put(cache, i, std::string(10, static_cast<char>('a' + i)));
  EXPECT_EQ(kept(cache, 2), "cccccccccc");
  EXPECT_EQ(cache.label(2), 2);
  EXPECT_EQ(kept(cache, 0), "aaaaaaaaaa");
  EXPECT_EQ(cache.size(1), 0U);
  EXPECT_EQ(cache.memory_bytes(), 20U);
  put(cache, 2, "other");
  EXPECT_EQ(kept(cache, 2), "cccccccccc");
}

TEST(SampleCache, TheRestGoesToAFile) {
  const Scratch scratch;
  const auto budget = std::make_shared<MemoryBudget>(15);
  SampleCache cache(4, budget, std::make_shared<NamelessFile>(scratch.path()));
  for (std::size_t i = 0; i < 4; ++i) put(cache, i, std::string(10, static_cast<char>('a' + i)));
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(kept(cache, i), std::string(10, static_cast<char>('a' + i)));
    EXPECT_EQ(cache.label(i), static_cast<std::int32_t>(i));
  }
  EXPECT_EQ(cache.memory_bytes(), 10U);
  EXPECT_EQ(cache.file_bytes(), 30U);
  EXPECT_EQ(scratch.files(), 0U);  // nothing to clean up
}

TEST(SampleCache, TwoShareABudget) {
  const auto budget = std::make_shared<MemoryBudget>(15);
  SampleCache second(1, budget, nullptr);
  {
    SampleCache first(1, budget, nullptr);
    put(first, 0, "ten bytes.");
    put(second, 0, "ten bytes.");
    EXPECT_EQ(second.size(0), 0U);
  }
  SampleCache third(1, budget, nullptr);  // the first gave its memory back
  put(third, 0, "ten bytes.");
  EXPECT_EQ(kept(third, 0), "ten bytes.");
}

TEST(SampleCache, ThreadsThatPutTheSame) {
  constexpr std::size_t kSamples = 500;
  const auto budget = std::make_shared<MemoryBudget>(1 << 20);
  SampleCache cache(kSamples, budget, nullptr);
  const auto work = [&] {
    for (std::size_t i = 0; i < kSamples; ++i) {
      const std::string data(1 + i % 100, static_cast<char>(i));
      put(cache, i, data);
      const std::string found = kept(cache, i);
      EXPECT_TRUE(found.empty() || found == data);
    }
  };
  std::thread first(work), second(work);
  first.join();
  second.join();
  for (std::size_t i = 0; i < kSamples; ++i) EXPECT_EQ(cache.size(i), 1 + i % 100);
}

TEST(SampleCache, AFolderThatCannotHoldIt) {
  expect_error(ErrorKind::input, {"cannot hold the cache", "no-such-folder", "--cache-dir"},
               [] { NamelessFile("no-such-folder"); });
}

}  // namespace
}  // namespace paceline
