#include "engine/input/loading/stream.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tests/support/expect_error.h"

namespace paceline {
namespace {

std::vector<std::uint32_t> step_samples(SampleStream& stream, std::size_t step, int ranks) {
  std::vector<std::uint32_t> samples;
  std::vector<Drawn> drawn;
  for (int rank = 0; rank < ranks; ++rank) {
    stream.draw(step, rank, ranks, drawn);
    for (const Drawn& one : drawn) samples.push_back(one.sample);
  }
  return samples;
}

TEST(SampleStream, KeepAndDropTheLastBatch) {
  StreamSpec spec{.seed = 1, .samples = 100, .global_batch = 32};
  SampleStream keep(spec);
  EXPECT_EQ(keep.steps_per_epoch(), 4U);
  EXPECT_EQ(keep.samples_of_step(3), 4U);
  EXPECT_EQ(keep.samples_of_step(4), 32U);
  EXPECT_EQ(keep.pass_of_step(3), 0U);
  EXPECT_EQ(keep.pass_of_step(4), 1U);
  spec.drop_last = true;
  SampleStream drop(spec);
  EXPECT_EQ(drop.steps_per_epoch(), 3U);
  EXPECT_EQ(drop.pass_of_step(2), 0U);
  EXPECT_EQ(drop.pass_of_step(3), 1U);
  spec.samples = 96;
  EXPECT_EQ(SampleStream(spec).steps_per_epoch(), 3U);
}

TEST(SampleStream, AnEpochTakesEverySampleOnce) {
  for (const std::size_t batch : {1UL, 7UL, 32UL, 97UL, 200UL}) {
    SampleStream stream({.seed = 1, .samples = 97, .global_batch = batch});
    std::multiset<std::uint32_t> seen;
    for (std::size_t step = 0; step < stream.steps_per_epoch(); ++step) {
      for (const std::uint32_t sample : step_samples(stream, step, 3)) seen.insert(sample);
    }
    EXPECT_EQ(seen.size(), 97U);
    EXPECT_EQ(std::set(seen.begin(), seen.end()).size(), 97U) << "batch " << batch;
  }
}

// Ranks 1 to 4 together take the same samples in the same order, in every kind of stream.
TEST(SampleStream, StepsDoNotDependOnTheNumberOfRanks) {
  for (const std::size_t steps_per_epoch : {0UL, 5UL}) {
    for (const bool drop : {false, true}) {
      const StreamSpec spec{.seed = 5,
                            .samples = 101,
                            .global_batch = 12,
                            .shuffle_buffer = 30,
                            .drop_last = drop,
                            .steps_per_epoch = steps_per_epoch};
      SampleStream one(spec), many(spec);
      for (std::size_t step = 0; step < 3 * one.steps_per_epoch(); ++step) {
        const auto expected = step_samples(one, step, 1);
        EXPECT_EQ(expected.size(), one.samples_of_step(step));
        for (int ranks = 2; ranks <= 4; ++ranks) {
          EXPECT_EQ(step_samples(many, step, ranks), expected) << "step " << step;
        }
      }
    }
  }
}

// The whole sequence is the orders of passes 0, 1, 2 one behind the other, and positions tell the
// place in each.
TEST(SampleStream, EndlessStreamStraddlesPasses) {
  const StreamSpec spec{.seed = 2, .samples = 10, .global_batch = 4, .steps_per_epoch = 3};
  SampleStream stream(spec);
  EXPECT_EQ(stream.steps_per_epoch(), 3U);
  std::vector<Drawn> drawn;
  std::size_t at = 0;
  for (std::size_t step = 0; step < 10; ++step) {
    EXPECT_EQ(stream.samples_of_step(step), 4U);
    stream.draw(step, 0, 1, drawn);
    for (const Drawn& one : drawn) {
      const auto pass = static_cast<std::uint32_t>(at / 10);
      EXPECT_EQ(one.position, at % 10);
      EXPECT_EQ(one.sample, epoch_order(2, pass, 10, 0)[at % 10]);
      ++at;
    }
  }
}

// Where a script shuffles behind its repeat, a buffer holds samples of two passes, and some come
// twice before others come at all.
TEST(SampleStream, NoSampleComesTwiceBeforeAllCameOnce) {
  for (const std::size_t buffer : {0UL, 1UL, 16UL, 1000UL}) {
    SampleStream stream({.seed = 3,
                         .samples = 60,
                         .global_batch = 12,
                         .shuffle_buffer = buffer,
                         .steps_per_epoch = 4});
    std::vector<int> counts(60);
    for (std::size_t step = 0; step < 15; ++step) {
      for (const std::uint32_t sample : step_samples(stream, step, 3)) ++counts[sample];
      const auto [least, most] = std::minmax_element(counts.begin(), counts.end());
      EXPECT_LE(*most - *least, 1) << "buffer " << buffer << ", step " << step;
    }
    EXPECT_EQ(counts, std::vector<int>(60, 3)) << "buffer " << buffer;
  }
}

TEST(SampleStream, GoingBackGivesTheSame) {
  SampleStream stream({.seed = 2, .samples = 10, .global_batch = 4});
  const auto first = step_samples(stream, 1, 1);
  step_samples(stream, 20, 1);
  EXPECT_EQ(step_samples(stream, 1, 1), first);
}

TEST(SampleStream, AnEpochWithoutStepsIsRefused) {
  StreamSpec spec{.seed = 1, .samples = 10, .global_batch = 16, .drop_last = true};
  expect_error(ErrorKind::usage, {"global batch of 16", "10 training samples", "last_batch=drop"},
               [&] { SampleStream stream(spec); });
  spec.drop_last = false;
  EXPECT_EQ(SampleStream(spec).steps_per_epoch(), 1U);
  spec.steps_per_epoch = 2;
  expect_error(ErrorKind::usage, {"global batch of 16", "steps_per_epoch"},
               [&] { SampleStream stream(spec); });
}

// What is left of a run in another world takes the samples that were not taken, each once.
TEST(SampleStream, GoesOnWithinAnEpochAtAnotherGlobalBatch) {
  const StreamSpec whole{.seed = 3, .samples = 100, .global_batch = 10};
  SampleStream before(whole);
  StreamSpec rest = whole;
  rest.global_batch = 24;
  rest.start = 100 + 3 * 10;  // three steps of the second epoch
  rest.start_in_epoch = 30;
  SampleStream after(rest);
  EXPECT_EQ(after.steps_per_epoch(), 5U);
  EXPECT_EQ(after.steps_of_first_epoch(), 3U);  // 70 samples: 24, 24, 22
  EXPECT_EQ(after.samples_of_step(2), 22U);
  EXPECT_EQ(after.pass_of_step(2), 1U);
  EXPECT_EQ(after.pass_of_step(3), 2U);
  EXPECT_EQ(after.position_of_step(3), 200U);
  EXPECT_EQ(after.samples_of_step(3), 24U);
  EXPECT_EQ(after.samples_of_step(7), 4U);
  std::vector<std::uint32_t> expected, taken;
  for (std::size_t step = 13; step < 20; ++step) {
    for (const auto sample : step_samples(before, step, 1)) expected.push_back(sample);
  }
  for (std::size_t step = 0; step < 3; ++step) {
    for (const auto sample : step_samples(after, step, 4)) taken.push_back(sample);
  }
  EXPECT_EQ(taken, expected);
}

TEST(SampleStream, GoesOnAsTheUninterruptedOneAtTheSameGlobalBatch) {
  for (const bool drop : {false, true}) {
    for (const std::size_t of_epoch : {std::size_t{0}, std::size_t{7}}) {
      const StreamSpec whole{.seed = 5,
                             .samples = 101,
                             .global_batch = 16,
                             .drop_last = drop,
                             .steps_per_epoch = of_epoch};
      SampleStream uninterrupted(whole);
      const std::size_t per_epoch = uninterrupted.steps_per_epoch();
      for (std::size_t stop = 1; stop < 3 * per_epoch; ++stop) {
        StreamSpec rest = whole;
        rest.start = uninterrupted.position_of_step(stop);
        rest.start_in_epoch = stop % per_epoch * whole.global_batch;
        SampleStream resumed(rest);
        ASSERT_EQ(resumed.steps_of_first_epoch(), per_epoch - stop % per_epoch);
        for (std::size_t step = 0; step < 2 * per_epoch; ++step) {
          ASSERT_EQ(resumed.samples_of_step(step), uninterrupted.samples_of_step(stop + step));
          ASSERT_EQ(resumed.pass_of_step(step), uninterrupted.pass_of_step(stop + step));
          ASSERT_EQ(step_samples(resumed, step, 2), step_samples(uninterrupted, stop + step, 2));
        }
      }
    }
  }
}

TEST(SampleStream, AnEpochOfStepsGoesOnForItsShareAtAnotherGlobalBatch) {
  StreamSpec rest{.seed = 1, .samples = 100, .global_batch = 20, .steps_per_epoch = 10};
  rest.start =
      460;  // 6 of 10 steps of 10 in the fourth epoch, whose batches are now twice as large
  rest.start_in_epoch = 60;
  SampleStream stream(rest);
  EXPECT_EQ(stream.steps_of_first_epoch(), 7U);
  EXPECT_EQ(stream.position_of_step(1), 480U);
  EXPECT_EQ(stream.pass_of_step(0), 4U);
}

}  // namespace
}  // namespace paceline
