#include "engine/input/loading/feeder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <iterator>

namespace paceline {
namespace {

// Sample i holds the byte i everywhere and has label i % 10.
Dataset numbered(std::size_t samples) {
  Dataset set;
  set.name = "numbered";
  set.height = 2;
  set.width = 3;
  set.channels = 1;
  set.classes = 10;
  set.samples = samples;
  for (std::size_t i = 0; i < samples; ++i) {
    set.images.insert(set.images.end(), set.sample_bytes(), static_cast<std::uint8_t>(i));
    set.labels.push_back(static_cast<std::int32_t>(i % 10));
  }
  return set;
}

constexpr std::size_t kSteps = 40;

Feeder::Setup setup(int rank, int ranks, int threads) {
  Feeder::Setup setup;
  setup.rank = rank;
  setup.ranks = ranks;
  setup.batch = 4;
  setup.steps = kSteps;
  setup.threads = threads;
  return setup;
}

TEST(Feeder, BatchesHoldTheStreamsSamplesForEveryNumberOfThreads) {
  const Dataset set = numbered(101);
  const StreamSpec spec{.seed = 3, .samples = 101, .global_batch = 8};
  for (const int threads : {0, 1, 2, 3}) {
    for (const int rank : {0, 1}) {
      SampleStream stream(spec);
      Feeder feeder(set, spec, setup(rank, 2, threads));
      std::vector<Drawn> drawn;
      for (std::size_t step = 0; step < kSteps; ++step) {
        stream.draw(step, rank, 2, drawn);
        const StagedBatch& batch = feeder.next();
        ASSERT_EQ(batch.samples, drawn.size()) << "step " << step << ", threads " << threads;
        EXPECT_EQ(batch.global_samples, stream.samples_of_step(step));
        EXPECT_EQ(batch.pass, stream.pass_of_step(step));
        for (std::size_t i = 0; i < drawn.size(); ++i) {
          EXPECT_EQ(batch.images[i * 6], drawn[i].sample);
          EXPECT_EQ(batch.images[i * 6 + 5], drawn[i].sample);
          EXPECT_EQ(batch.labels[i], static_cast<std::int32_t>(drawn[i].sample % 10));
          EXPECT_EQ(batch.positions[i], drawn[i].position);
        }
      }
    }
  }
}

// The parts of a rank's samples, in order, are what it takes at once; also of an incomplete batch.
TEST(Feeder, PartsOfAStepAreItsSamplesInOrder) {
  const Dataset set = numbered(101);
  const StreamSpec spec{.seed = 3, .samples = 101, .global_batch = 24};
  for (const int threads : {0, 2}) {
    for (const int rank : {0, 1}) {
      Feeder::Setup parted = setup(rank, 2, threads);
      parted.parts = 3;
      parted.steps = 12;
      Feeder feeder(set, spec, parted);
      SampleStream stream(spec);
      std::vector<Drawn> drawn;
      for (std::size_t step = 0; step < parted.steps; ++step) {
        stream.draw(step, rank, 2, drawn);
        std::size_t at = 0;
        for (int part = 0; part < parted.parts; ++part) {
          const StagedBatch& batch = feeder.next();
          EXPECT_EQ(batch.global_samples, stream.samples_of_step(step));
          ASSERT_LE(batch.samples, parted.batch);
          ASSERT_LE(at + batch.samples, drawn.size());
          for (std::size_t i = 0; i < batch.samples; ++i, ++at) {
            EXPECT_EQ(batch.images[i * 6], drawn[at].sample);
            EXPECT_EQ(batch.positions[i], drawn[at].position);
          }
        }
        EXPECT_EQ(at, drawn.size());
      }
    }
  }
}

// Whoever stages a sample, and wherever a run goes on, it is changed as the order of the pass says.
TEST(Feeder, AugmentsAlikeForEveryNumberOfThreadsAndRanks) {
  Dataset set = numbered(101);
  for (std::size_t i = 0; i < set.images.size(); ++i) set.images[i] = static_cast<std::uint8_t>(i);
  set.height = 3, set.width = 2;
  const StreamSpec spec{.seed = 3, .samples = 101, .global_batch = 8, .steps_per_epoch = 5};
  const Augmentation augment = parse_augmentation("hflip+vflip+crop1");
  const PhiloxKey key = philox_key(spec.seed, Stream::augment);
  std::size_t changed = 0;
  for (const int threads : {0, 2}) {
    for (const int rank : {0, 1}) {
      for (const std::size_t gone : {0U, 13U}) {  // steps before this run
        StreamSpec later = spec;
        later.start = 8 * gone;
        Feeder::Setup augmented = setup(rank, 2, threads);
        augmented.augment = augment;
        Feeder feeder(set, later, augmented);
        SampleStream stream(spec);
        std::vector<Drawn> drawn;
        std::vector<std::uint8_t> expected(6);
        for (std::size_t step = gone; step < kSteps; ++step) {
          stream.draw(step, rank, 2, drawn);
          const StagedBatch& batch = feeder.next();
          ASSERT_EQ(batch.samples, drawn.size());
          for (std::size_t i = 0; i < drawn.size(); ++i) {
            const std::size_t at = (step * 8 + static_cast<std::size_t>(rank) * 4 + i);
            const std::uint8_t* original = set.images.data() + drawn[i].sample * 6;
            apply(draw_change(augment, key, static_cast<std::uint32_t>(at / 101),
                              static_cast<std::uint32_t>(at % 101)),
                  original, 3, 2, 1, expected.data());
            const auto staged = batch.images.subspan(i * 6, 6);
            EXPECT_TRUE(std::ranges::equal(staged, expected)) << "step " << step << " " << i;
            EXPECT_EQ(batch.labels[i], static_cast<std::int32_t>(drawn[i].sample % 10));
            changed += std::equal(staged.begin(), staged.end(), original) ? 0 : 1;
          }
        }
      }
    }
  }
  EXPECT_GT(changed, std::size_t{700});  // of 1072
}

TEST(Feeder, InOrderEverySampleOfAShareComesOnce) {
  const Dataset set = numbered(101);
  const StreamSpec spec{.samples = 50, .global_batch = 4, .in_order = true, .first = 51};
  for (const int threads : {0, 1, 3}) {
    Feeder::Setup share = setup(0, 1, threads);
    share.steps = 13;
    Feeder feeder(set, spec, share);
    std::size_t next = 51;
    for (std::size_t step = 0; step < share.steps; ++step) {
      const StagedBatch& batch = feeder.next();
      ASSERT_EQ(batch.samples, step == 12 ? 2U : 4U);
      for (std::size_t i = 0; i < batch.samples; ++i) EXPECT_EQ(batch.images[i * 6], next++);
    }
    EXPECT_EQ(next, 101U);
  }
}

long threads_of_process() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return std::distance(begin(tasks), end(tasks));
}

TEST(Feeder, DroppedInTheMiddleEndsItsThreads) {
  const Dataset set = numbered(101);
  const long before = threads_of_process();
  {
    Feeder feeder(set, {.seed = 3, .samples = 101, .global_batch = 4}, setup(0, 1, 2));
    EXPECT_EQ(feeder.next().samples, 4U);
    EXPECT_EQ(threads_of_process(), before + 2);
  }
  EXPECT_EQ(threads_of_process(), before);
}

TEST(Feeder, AnErrorInAThreadReachesNext) {
  Dataset set = numbered(101);
  const StreamSpec spec{.seed = 3, .samples = 101, .global_batch = 4};
  // A batch larger than a vector can be: drawing it throws in the thread.
  Feeder::Setup wrong = setup(0, 1, 1);
  StreamSpec huge = spec;
  huge.samples = ~std::size_t{0} / 2;
  huge.global_batch = 4;
  Feeder feeder(set, huge, wrong);
  EXPECT_THROW(feeder.next(), std::exception);
}

TEST(Feeder, SyntheticBatchesAreStagedOnceASlot) {
  const DatasetPair pair = synthetic_images(2, 3, 1, 10, 100, 10, 1);
  Feeder feeder(pair.train, {.seed = 3, .samples = 100, .global_batch = 4}, setup(0, 1, 0));
  const auto images_at = [](Feeder& from) {
    const std::span<const std::uint8_t> images = from.next().images;
    return std::vector<std::uint8_t>(images.begin(), images.end());
  };
  const std::vector<std::uint8_t> first = images_at(feeder);
  for (std::size_t step = 1; step < 5; ++step) {
    const StagedBatch& batch = feeder.next();
    EXPECT_TRUE(std::ranges::equal(batch.images, first));
    EXPECT_EQ(batch.samples, 4U);
  }
  Feeder::Setup once = setup(0, 1, 0);
  once.repeat_synthetic = false;
  Feeder fresh(pair.train, {.seed = 3, .samples = 100, .global_batch = 4}, once);
  EXPECT_EQ(images_at(fresh), first);
  EXPECT_NE(images_at(fresh), first);
  Dataset real = pair.train;
  real.synthetic = false;
  Feeder other(real, {.seed = 3, .samples = 100, .global_batch = 4}, setup(0, 1, 0));
  EXPECT_EQ(images_at(other), first);
  EXPECT_NE(images_at(other), first);
}

// Whatever the CPUs: pinning memory takes time, and what is staged once needs little of it.
TEST(Feeder, SyntheticSetsTakeFewSlots) {
  const DatasetPair pair = synthetic_images(2, 3, 1, 10, 100, 10, 1);
  const auto list_slots = [&](const Dataset& set, int threads) {
    std::size_t slots = 0;
    Feeder::Setup counted = setup(0, 1, threads);
    counted.allocate = [&slots](std::size_t bytes) {
      ++slots;
      return host_memory(bytes);
    };
    Feeder feeder(set, {.seed = 3, .samples = 100, .global_batch = 4}, counted);
    for (int step = 0; step < 10; ++step) EXPECT_EQ(feeder.next().samples, 4U);
    return slots;
  };
  EXPECT_EQ(list_slots(pair.train, 8), list_slots(pair.train, 1));
  Dataset real = pair.train;
  real.synthetic = false;
  EXPECT_EQ(list_slots(real, 8), 8 * list_slots(real, 1));
}

TEST(Feeder, CountsBatchesThatStoodReady) {
  const Dataset set = numbered(101);
  const StreamSpec spec{.seed = 3, .samples = 101, .global_batch = 4};
  Feeder inline_feeder(set, spec, setup(0, 1, 0));
  inline_feeder.next();
  EXPECT_EQ(inline_feeder.ready_batches(), 0);
  Feeder feeder(set, spec, setup(0, 1, 1));
  for (std::size_t step = 0; step < 10; ++step) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    feeder.next();
  }
  EXPECT_GT(feeder.ready_batches(), 5);
  EXPECT_LE(feeder.ready_batches(), 30);
}

}  // namespace
}  // namespace paceline
