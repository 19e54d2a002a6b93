// One area and two processes.
#include "engine/input/cache/cache_area.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "engine/input/cache/image_store.h"
#include "tests/support/expect_error.h"
#include "tests/support/scratch.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

const std::vector<std::size_t> kSamples = {4, 3};
constexpr std::size_t kBytes = 10;

std::string sample(std::size_t i) {
  return std::string(kBytes, static_cast<char>('a' + i));
}

std::string kept(const SampleCache& cache, std::size_t i) {
  std::string data(cache.size(i), '\0');
  if (!data.empty()) cache.get(i, data.data());
  return data;
}

void put(SampleCache& cache, std::size_t i) {
  cache.put(i, static_cast<std::int32_t>(10 * i), sample(i).data(), kBytes);
}

std::shared_ptr<CacheRegion> make(std::size_t bytes, const fs::path& folder = {}) {
  return std::make_shared<CacheRegion>(CacheRegion::Size{kSamples, bytes}, CacheRegion::Reach::node,
                                       folder);
}

// Runs `work` in a process of its own, without core files; returns how it ended, as waitpid() has
// it.
int in_child(const std::function<bool()>& work) {
  const pid_t child = fork();
  if (child == 0) {
    const rlimit none{0, 0};
    setrlimit(RLIMIT_CORE, &none);
    _exit(work() ? 0 : 1);
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return status;
}

TEST(CacheRegion, IsFilledAndReadByTwoProcesses) {
  const Scratch scratch;
  const auto area = make(3 * kBytes, scratch.path());
  const CacheRegion::Address address = area->address();
  SampleCache first(area, 0), second(area, 1);
  put(first, 0);
  const int status = in_child([&] {
    const auto opened = std::make_shared<CacheRegion>(address, kSamples);
    SampleCache theirs(opened, 0), others(opened, 1);
    for (const std::size_t i : {1, 3}) put(theirs, i);
    put(others, 2);  // no memory is left
    return opened->bytes() == 3 * kBytes && kept(theirs, 0) == sample(0) && theirs.label(0) == 0;
  });
  EXPECT_EQ(status, 0);
  for (const std::size_t i : {0, 1, 3}) {
    EXPECT_EQ(kept(first, i), sample(i));
    EXPECT_EQ(first.label(i), static_cast<std::int32_t>(10 * i));
  }
  EXPECT_EQ(first.size(2), 0U);
  EXPECT_EQ(kept(second, 2), sample(2));
  EXPECT_EQ(first.memory_bytes(), 3 * kBytes);
  EXPECT_EQ(second.file_bytes(), kBytes);
  EXPECT_EQ(scratch.files(), 0U);
}

// The data of its second sample cannot be read: the kernel kills it in the middle of filling.
TEST(CacheRegion, AProcessKilledWhileItFillsHarmsNoOther) {
  const auto area = make(4 * kBytes);
  const CacheRegion::Address address = area->address();
  const int status = in_child([&] {
    std::signal(SIGSEGV, SIG_DFL);
    SampleCache theirs(std::make_shared<CacheRegion>(address, kSamples), 0);
    put(theirs, 0);
    const void* forbidden = mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    theirs.put(1, 7, static_cast<const char*>(forbidden), kBytes);
    return true;
  });
  ASSERT_TRUE(WIFSIGNALED(status));
  SampleCache cache(area, 0);
  EXPECT_EQ(kept(cache, 0), sample(0));
  EXPECT_EQ(cache.size(1), 0U);
  put(cache, 1);
  EXPECT_EQ(cache.size(1), 0U);  // it stays so: who needs it decodes it
  put(cache, 2);
  EXPECT_EQ(kept(cache, 2), sample(2));
}

TEST(CacheRegion, ProcessesThatFillTheSameAtOnce) {
  constexpr std::size_t kMany = 5000;
  const auto area = std::make_shared<CacheRegion>(CacheRegion::Size{{kMany}, kMany * kBytes},
                                                  CacheRegion::Reach::node, fs::path());
  const CacheRegion::Address address = area->address();
  const auto fill = [&](SampleCache cache) {
    bool sound = true;
    for (std::size_t i = 0; i < kMany; ++i) {
      const std::string data(kBytes, static_cast<char>(i));
      cache.put(i, static_cast<std::int32_t>(i), data.data(), data.size());
      const std::string found = kept(cache, i);
      sound = sound && (found.empty() || found == data);
    }
    return sound;
  };
  const pid_t child = fork();
  if (child == 0) {
    _exit(fill(SampleCache(std::make_shared<CacheRegion>(address, std::vector{kMany}), 0)) ? 0 : 1);
  }
  EXPECT_TRUE(fill(SampleCache(area, 0)));
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  SampleCache cache(area, 0);
  for (std::size_t i = 0; i < kMany; ++i) {
    ASSERT_EQ(kept(cache, i), std::string(kBytes, static_cast<char>(i)));
  }
  EXPECT_EQ(cache.memory_bytes(), kMany * kBytes);
}

TEST(CacheRegion, TheWrongProcessIsNoticed) {
  const auto area = make(kBytes), other = make(kBytes);
  CacheRegion::Address wrong = area->address();
  wrong.memory = other->address().memory;
  expect_error(ErrorKind::input, {"another one"}, [&] { CacheRegion(wrong, kSamples); });
  expect_error(ErrorKind::input, {"another one"}, [&] {
    CacheRegion(area->address(), {kSamples[0], kSamples[1] + 1});
  });
  wrong = area->address();
  wrong.memory = 1 << 20;
  expect_error(ErrorKind::input, {"the cache of process", "No such file"},
               [&] { CacheRegion(wrong, kSamples); });
  wrong = area->address();
  wrong.process = 0;
  expect_error(ErrorKind::input, {"cannot be opened"}, [&] { CacheRegion(wrong, kSamples); });
  CacheRegion(area->address(), kSamples);
}

TEST(CacheRegion, WhatCannotBeMappedReportsWhatToLower) {
  for (const auto reach : {CacheRegion::Reach::process, CacheRegion::Reach::node}) {
    expect_error(ErrorKind::usage, {"cannot be mapped", "--cache-mb"}, [&] {
      CacheRegion({kSamples, std::size_t{1} << 60}, reach, {});
    });
  }
}

}  // namespace
}  // namespace paceline
