#include "engine/input/cache/image_store.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>

#include "engine/input/loading/feeder.h"
#include "tests/support/expect_error.h"
#include "tests/support/on_threads.h"
#include "tests/support/scratch.h"
#include "tests/unit/input/made.h"

namespace paceline {
namespace {

constexpr std::size_t kStored = 12;
constexpr ImageStore::Size kSize{20, 24, 3};
constexpr std::size_t kValues = 20 * 24 * 3;

// Images in memory that count how they are read.
class CountedSource final : public SampleSource {
 public:
  CountedSource() {
    for (std::size_t i = 0; i < kStored; ++i) {
      images.push_back(make_jpeg(30, 33 + static_cast<int>(i), static_cast<int>(i)));
    }
  }
  std::size_t samples() const override { return images.size(); }
  void read(std::size_t i, EncodedSample& sample) const override {
    ++reads;
    const int now = ++at_once;
    int most = most_at_once;
    while (now > most && !most_at_once.compare_exchange_weak(most, now)) {
    }
    if (slow) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    --at_once;
    sample.bytes = images[i];
    sample.image = sample.bytes;
    sample.label = static_cast<std::int32_t>(i % 3);
    sample.height = sample.width = 0;
  }
  std::string where(std::size_t i) const override { return "shard, record " + std::to_string(i); }
  std::string hash() const override { return "0"; }
  std::vector<std::filesystem::path> files() const override { return {}; }

  std::vector<std::string> images;
  bool slow = false;
  mutable std::atomic<int> reads{0}, at_once{0}, most_at_once{0};
};

class StoreTest : public testing::Test {
 protected:
  std::shared_ptr<ImageStore> make_store(const InputOptions& options) const {
    const auto store = std::make_shared<ImageStore>(source_, kSize, options);
    if (options.cache == CacheKind::off) return store;
    store->keep_in(std::make_shared<CacheRegion>(CacheRegion::Size{{kStored}, options.cache_bytes},
                                                 CacheRegion::Reach::process, options.cache_folder),
                   0);
    return store;
  }
  // Sample i as it should be.
  std::vector<float> expected(std::size_t i) const {
    ImageDecoder decoder;
    Image image;
    decoder.decode(source_->images[i], 3, image, [] { return ""; });
    std::vector<float> out(kValues);
    Resizer().resize(image, kSize.height, kSize.width, out.data());
    return out;
  }
  template <typename T>
  void check(ImageStore& store, std::size_t i, std::size_t holds) {
    std::vector<T> out(kValues);
    EXPECT_EQ(store.fetch(i, out.data(), worker_), static_cast<std::int32_t>(holds % 3));
    const std::vector<float> exact = expected(holds);
    for (std::size_t v = 0; v < kValues; ++v) {
      const float wanted = sizeof(T) == 1 ? std::floor(exact[v] + 0.5F) : exact[v];
      ASSERT_EQ(static_cast<float>(out[v]), wanted) << "sample " << i << ", value " << v;
    }
  }
  template <typename T>
  void check_passes(ImageStore& store, int passes) {
    for (int pass = 0; pass < passes; ++pass) {
      for (std::size_t i = 0; i < kStored; ++i) check<T>(store, i, i);
    }
  }

  std::shared_ptr<CountedSource> source_ = std::make_shared<CountedSource>();
  ImageStore::Worker worker_;
};

TEST_F(StoreTest, WithoutACacheEveryFetchDecodes) {
  const auto s = make_store({});
  check_passes<std::uint8_t>(*s, 2);
  EXPECT_EQ(source_->reads, 24);
  EXPECT_EQ(worker_.counts.fetched, 24U);
  EXPECT_EQ(worker_.counts.decoded, 24U);
  EXPECT_EQ(worker_.counts.decoded_bytes, 24 * kValues);
  EXPECT_GT(worker_.counts.decode_seconds, 0);
}

TEST_F(StoreTest, ARawCacheKeepsEncodedBytes) {
  const auto s = make_store({.cache = CacheKind::raw, .cache_bytes = 1 << 20});
  check_passes<std::uint8_t>(*s, 3);
  EXPECT_EQ(source_->reads, 12);
  EXPECT_EQ(worker_.counts.decoded, 36U);
  EXPECT_EQ(worker_.counts.from_cache, 24U);
  std::size_t encoded = 0;
  for (const std::string& image : source_->images) encoded += image.size();
  EXPECT_EQ(s->cached_bytes_in_memory(), encoded);
}

TEST_F(StoreTest, ADecodedCacheDecodesOnceInBothTypes) {
  const auto bytes = make_store({.cache = CacheKind::decoded, .cache_bytes = 1 << 20});
  check_passes<std::uint8_t>(*bytes, 3);
  EXPECT_EQ(source_->reads, 12);
  EXPECT_EQ(bytes->cached_bytes_in_memory(), kStored * kValues);
  const auto floats =
      make_store({.cache = CacheKind::decoded, .type = DType::f32, .cache_bytes = 1 << 20});
  check_passes<float>(*floats, 3);
  EXPECT_EQ(source_->reads, 24);
  EXPECT_EQ(floats->cached_bytes_in_memory(), 4 * kStored * kValues);
}

TEST_F(StoreTest, WhatDoesNotFitIsDecodedAgainOrKeptInAFile) {
  InputOptions options{.cache = CacheKind::decoded, .cache_bytes = 5 * kValues + 1};
  const auto s = make_store(options);
  check_passes<std::uint8_t>(*s, 2);
  EXPECT_EQ(source_->reads, 12 + 7);
  EXPECT_EQ(s->cached_bytes_in_memory(), 5 * kValues);
  expect_parts(s->description(), {"decoded again"});
  const Scratch scratch;
  options.cache_folder = scratch.path();
  const auto with_file = make_store(options);
  check_passes<std::uint8_t>(*with_file, 2);
  EXPECT_EQ(source_->reads, 19 + 12);
  EXPECT_EQ(with_file->cached_bytes_in_file(), 7 * kValues);
  expect_parts(with_file->description(), {"kept in a file"});
}

TEST_F(StoreTest, ABudgetThatHoldsNothingReportsWhatToChange) {
  expect_error(ErrorKind::usage, {"cannot hold one decoded image", "--cache-mb", "--cache off"},
               [&] { make_store({.cache = CacheKind::decoded, .cache_bytes = kValues - 1}); });
}

TEST_F(StoreTest, ABadSampleEndsTheRun) {
  source_->images[4] = "not an image";
  source_->images[5].resize(source_->images[5].size() / 2);
  const auto s = make_store({});
  std::vector<std::uint8_t> out(kValues);
  expect_error(ErrorKind::input, {"neither JPEG nor PNG", "shard, record 4", "--on-bad-sample"},
               [&] { s->fetch(4, out.data(), worker_); });
  expect_error(ErrorKind::input, {"cut short", "shard, record 5"},
               [&] { s->fetch(5, out.data(), worker_); });
  check<std::uint8_t>(*s, 6, 6);
}

TEST_F(StoreTest, OrIsSkippedForTheNextGoodOne) {
  for (const std::size_t bad : {4, 5, 11}) source_->images[bad] = "not an image";
  for (const CacheKind kind : {CacheKind::off, CacheKind::raw, CacheKind::decoded}) {
    const auto s = make_store({.cache = kind, .cache_bytes = 1 << 20, .skip_bad = true});
    for (int pass = 0; pass < 2; ++pass) {
      check<std::uint8_t>(*s, 4, 6);
      check<std::uint8_t>(*s, 5, 6);
      check<std::uint8_t>(*s, 11, 0);
    }
    EXPECT_EQ(s->bad_samples(), (std::vector<std::size_t>{4, 5, 11}));
  }
  for (std::string& image : source_->images) image.clear();
  const auto s = make_store({.skip_bad = true});
  std::vector<std::uint8_t> out(kValues);
  expect_error(ErrorKind::input, {"all 12 samples are bad"},
               [&] { s->fetch(3, out.data(), worker_); });
}

TEST_F(StoreTest, SkippingStaysInsideTheLimit) {
  source_->images[3] = "not an image";
  const auto s = make_store({.skip_bad = true});
  s->limit(4);
  check<std::uint8_t>(*s, 3, 0);
}

TEST_F(StoreTest, ReadsInFlightAreLimited) {
  source_->slow = true;
  for (const int reads : {1, 2}) {
    source_->most_at_once = 0;
    const auto s = make_store({.parallel_reads = reads});
    on_threads(std::size_t{4}, [&](std::size_t t) {
      ImageStore::Worker worker;
      std::vector<std::uint8_t> out(kValues);
      for (std::size_t i = 0; i < 3; ++i) s->fetch(3 * t + i, out.data(), worker);
    });
    EXPECT_LE(source_->most_at_once, reads);
    EXPECT_GE(source_->most_at_once, 1);
  }
}

TEST_F(StoreTest, TheFeederStagesImagesOfEitherType) {
  Dataset set;
  set.name = "made";
  set.height = kSize.height;
  set.width = kSize.width;
  set.channels = 3;
  set.classes = 3;
  set.samples = kStored;
  for (const DType type : {DType::u8, DType::f32}) {
    set.image_type = type;
    const InputOptions options{.cache = CacheKind::decoded, .type = type, .cache_bytes = 1 << 20};
    set.store = make_store(options);
    for (const int threads : {0, 2}) {
      const StreamSpec spec{.seed = 3, .samples = kStored, .global_batch = 4};
      Feeder::Setup setup;
      setup.batch = 4;
      setup.steps = 6;
      setup.threads = threads;
      Feeder feeder(set, spec, setup);
      SampleStream stream(spec);
      std::vector<Drawn> drawn;
      for (std::size_t step = 0; step < setup.steps; ++step) {
        stream.draw(step, 0, 1, drawn);
        const StagedBatch& batch = feeder.next();
        ASSERT_EQ(batch.image_type, type);
        ASSERT_EQ(batch.images.size(), 4 * kValues * size_of(type));
        for (std::size_t i = 0; i < drawn.size(); ++i) {
          const float exact = expected(drawn[i].sample)[100];
          const std::size_t at = i * kValues + 100;
          const float found = type == DType::u8
                                  ? batch.images[at]
                                  : reinterpret_cast<const float*>(batch.images.data())[at];
          EXPECT_EQ(found, type == DType::u8 ? std::floor(exact + 0.5F) : exact);
          EXPECT_EQ(batch.labels[i], static_cast<std::int32_t>(drawn[i].sample % 3));
        }
      }
      EXPECT_EQ(feeder.counts().fetched, 24U);
    }
  }
  EXPECT_EQ(source_->reads, 24);  // once a type
}

}  // namespace
}  // namespace paceline
