#include <gtest/gtest.h>

#include <thread>

#include "engine/input/cache/image_store.h"
#include "tests/support/expect_error.h"
#include "tests/support/scratch.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

std::string kept_text(const SampleCache& cache, std::size_t i) {
  std::string data(cache.size(i), '\0');
  if (!data.empty()) cache.get(i, data.data());
  return data;
}

void put(SampleCache& cache, std::size_t i, const std::string& data) {
  cache.put(i, static_cast<std::int32_t>(i), data.data(), data.size());
}

SampleCache make_cache(std::size_t samples, std::size_t bytes, const fs::path& folder = {}) {
  return {std::make_shared<CacheRegion>(CacheRegion::Size{{samples}, bytes},
                                        CacheRegion::Reach::process, folder),
          0};
}

TEST(SampleCache, KeepsUpToItsBudget) {
  SampleCache cache = make_cache(4, 25);
  for (const std::size_t i : {2, 0, 1}) put(cache, i, std::string(10, static_cast<char>('a' + i)));
  EXPECT_EQ(kept_text(cache, 2), "cccccccccc");
  EXPECT_EQ(cache.label(2), 2);
  EXPECT_EQ(kept_text(cache, 0), "aaaaaaaaaa");
  EXPECT_EQ(cache.size(1), 0U);
  EXPECT_EQ(cache.memory_bytes(), 20U);
  put(cache, 2, "other");
  EXPECT_EQ(kept_text(cache, 2), "cccccccccc");
}

TEST(SampleCache, TheRestGoesToAFile) {
  const Scratch scratch;
  SampleCache cache = make_cache(4, 15, scratch.path());
  for (std::size_t i = 0; i < 4; ++i) put(cache, i, std::string(10, static_cast<char>('a' + i)));
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(kept_text(cache, i), std::string(10, static_cast<char>('a' + i)));
    EXPECT_EQ(cache.label(i), static_cast<std::int32_t>(i));
  }
  EXPECT_EQ(cache.memory_bytes(), 10U);
  EXPECT_EQ(cache.file_bytes(), 30U);
  EXPECT_EQ(scratch.files(), 0U);  // nothing to clean up
}

TEST(SampleCache, TwoSetsShareABudgetAndCountApart) {
  const auto area = std::make_shared<CacheRegion>(CacheRegion::Size{{2, 3}, 25},
                                                  CacheRegion::Reach::process, fs::path());
  SampleCache first(area, 0), second(area, 1);
  put(first, 1, "ten bytes.");
  put(second, 0, "ten others");
  put(second, 2, "ten bytes.");
  EXPECT_EQ(kept_text(first, 1), "ten bytes.");
  EXPECT_EQ(kept_text(second, 0), "ten others");
  EXPECT_EQ(second.size(2), 0U);
  EXPECT_EQ(first.size(0), 0U);
  EXPECT_EQ(first.memory_bytes(), 10U);
  EXPECT_EQ(second.memory_bytes(), 10U);
}

TEST(SampleCache, ThreadsThatPutTheSame) {
  constexpr std::size_t kSamples = 500;
  SampleCache cache = make_cache(kSamples, 1 << 20);
  const auto work = [&] {
    for (std::size_t i = 0; i < kSamples; ++i) {
      const std::string data(1 + i % 100, static_cast<char>(i));
      put(cache, i, data);
      const std::string found = kept_text(cache, i);
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
               [] { UnlinkedFile("no-such-folder"); });
}

}  // namespace
}  // namespace paceline
