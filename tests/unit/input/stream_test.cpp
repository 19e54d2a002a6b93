#include "engine/input/stream.h"

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

}  // namespace
}  // namespace paceline
