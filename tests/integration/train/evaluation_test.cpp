// Evaluation on images that are read as they are needed: whatever reads them, the same result.
#include "engine/train/evaluation.h"

#include <gtest/gtest.h>

#include <mutex>
#include <set>
#include <thread>

#include "tests/integration/train/training.h"
#include "tests/support/scratch.h"
#include "tests/unit/input/made.h"

namespace paceline {
namespace {

constexpr std::size_t kImages = 175, kTest = 35;  // a fifth is the test set

class EvaluationTest : public ::testing::Test {
 protected:
  EvaluationTest() {
    for (std::size_t i = 0; i < kImages; ++i) {
      write_file(scratch_ / std::to_string(i % 5) / (std::to_string(1000 + i) + ".png"),
                 make_png(28, 28, 1, static_cast<int>(i)));
    }
    for (int label = 5; label < 10; ++label) {  // the network has ten classes
      write_file(scratch_ / std::to_string(label) / "1.png", make_png(28, 28, 1, label));
    }
    run_.config.epochs = 2;
    run_.config.batch_per_replica = 8;
    run_.config.evaluate = Evaluate::epoch;
  }

  training::Result train(int replicas, int threads, const InputOptions& options) {
    run_.config.replicas = replicas;
    run_.input_threads = threads;
    return training::train(
        run_, load_images(open_image_set(scratch_.path()), "train", "test", {28, 28, 1}, options));
  }

  Scratch scratch_;
  training::Run run_;
};

TEST_F(EvaluationTest, DoesNotDependOnThreadsOrTheCache) {
  const InputOptions kept{.cache = CacheKind::decoded, .cache_bytes = 1 << 20};
  for (const int replicas : {1, 3}) {  // three have unequal shares
    const training::Result plain = train(replicas, 0, {});
    ASSERT_EQ(plain.outcome.quality.epochs.size(), 2U);
    EXPECT_EQ(plain.outcome.input.evaluation->fetched, 2 * kTest);
    EXPECT_EQ(plain.outcome.input.evaluation->decoded, 2 * kTest);
    for (const int threads : {0, 1, 3}) {
      const training::Result result = train(replicas, threads, kept);
      SCOPED_TRACE(std::to_string(replicas) + " replicas, " + std::to_string(threads) + " threads");
      for (std::size_t epoch = 0; epoch < 2; ++epoch) {
        EXPECT_EQ(result.outcome.quality.epochs[epoch].test_accuracy.value(),
                  plain.outcome.quality.epochs[epoch].test_accuracy.value());
        EXPECT_EQ(result.outcome.quality.epochs[epoch].test_loss.value(),
                  plain.outcome.quality.epochs[epoch].test_loss.value());
      }
      EXPECT_EQ(result.outcome.input.evaluation->decoded, kTest);  // in the first epoch only
      EXPECT_EQ(result.outcome.input.evaluation->from_cache, kTest);
    }
  }
}

TEST_F(EvaluationTest, TakesWholeBatchesWhereStepsHaveSeveral) {
  const training::Result plain = train(2, 1, {});
  run_.config.accumulate = 3;
  run_.config.batch_per_replica = 8;
  run_.config.update = false;
  const training::Result parted = train(2, 1, {});
  EXPECT_EQ(parted.outcome.input.evaluation->fetched, plain.outcome.input.evaluation->fetched);
  run_.config.accumulate = 1;
  EXPECT_EQ(train(2, 1, {}).outcome.quality.epochs[0].test_loss.value(),
            parted.outcome.quality.epochs[0].test_loss.value());
}

// Tells which threads read.
class WatchedSource final : public SampleSource {
 public:
  explicit WatchedSource(std::shared_ptr<const SampleSource> inner) : inner_(std::move(inner)) {}
  std::size_t samples() const override { return inner_->samples(); }
  void read(std::size_t i, EncodedSample& sample) const override {
    {
      const std::lock_guard lock(mutex_);
      readers_.insert(std::this_thread::get_id());
    }
    inner_->read(i, sample);
  }
  std::string where(std::size_t i) const override { return inner_->where(i); }
  std::string hash() const override { return inner_->hash(); }
  std::vector<std::filesystem::path> files() const override { return inner_->files(); }
  std::set<std::thread::id> readers() const { return readers_; }

 private:
  std::shared_ptr<const SampleSource> inner_;
  mutable std::mutex mutex_;
  mutable std::set<std::thread::id> readers_;
};

TEST_F(EvaluationTest, TheTrainingThreadReadsOnlyWithoutInputThreads) {
  const ImageSet set = open_image_set(scratch_.path());
  run_.config.replicas = 1;
  for (const int threads : {0, 1, 3}) {
    DatasetPair data = load_images(set, "train", "test", {28, 28, 1}, {});
    const auto source = std::make_shared<WatchedSource>(set.split("test"));
    data.test.store =
        std::make_shared<ImageStore>(source, ImageStore::Size{28, 28, 1}, InputOptions{});
    run_.input_threads = threads;
    training::train(run_, data);
    const bool mine = source->readers().count(std::this_thread::get_id()) != 0;
    EXPECT_EQ(mine, threads == 0) << threads << " input threads";
    EXPECT_GE(source->readers().size(), 1U);
  }
}

// The samples that lie in memory take the other way.
TEST_F(EvaluationTest, EqualsThatOnSamplesInMemory) {
  const ImageSet set = open_image_set(scratch_.path());
  DatasetPair read = load_images(set, "train", "test", {28, 28, 1}, {}), held = read;
  for (Dataset* data : {&held.train, &held.test}) {
    data->images.resize(data->samples * data->sample_bytes());
    ImageStore::Worker worker;
    for (std::size_t i = 0; i < data->samples; ++i) {
      data->labels.push_back(
          data->store->fetch(i, data->images.data() + i * data->sample_bytes(), worker));
    }
    data->store.reset();
  }
  run_.config.replicas = 2;
  run_.input_threads = 1;
  const training::Result a = training::train(run_, read), b = training::train(run_, held);
  EXPECT_EQ(a.outcome.quality.epochs[1].test_accuracy.value(),
            b.outcome.quality.epochs[1].test_accuracy.value());
  EXPECT_NEAR(a.outcome.quality.epochs[1].test_loss.value(),
              b.outcome.quality.epochs[1].test_loss.value(), 1e-9);
}

// Replicas without a test sample of their own still take part.
TEST_F(EvaluationTest, MoreReplicasThanSamples) {
  DatasetPair few = load_images(open_image_set(scratch_.path()), "train", "test", {28, 28, 1}, {});
  limit_samples(few.test, 2);
  run_.config.replicas = 3;
  run_.input_threads = 1;
  const training::Result three = training::train(run_, few);
  EXPECT_EQ(three.outcome.input.evaluation->fetched, 2 * 2U);
  EXPECT_GE(three.outcome.quality.epochs[0].test_accuracy.value(), 0);
}

}  // namespace
}  // namespace paceline
