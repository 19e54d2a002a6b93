#include "engine/train/evaluation.h"

#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "engine/input/loading/stream.h"
#include "engine/train/trainer.h"

namespace paceline {

namespace {

// Samples that lie in memory, where they are.
LossSums forward_in_memory(Program& program, const Dataset& dataset, const Slice& slice,
                           std::size_t step) {
  for (std::size_t at = 0; at < slice.count; at += step) {
    const std::size_t first = slice.begin + at;
    Batch batch;
    batch.images = dataset.images.data() + first * dataset.sample_bytes();
    batch.image_type = dataset.image_type;
    batch.labels = dataset.labels.data() + first;
    batch.samples = batch.global_samples = static_cast<int>(std::min(step, slice.count - at));
    program.forward(batch, Mode::evaluate);
  }
  return program.take_sums();
}

// The samples of `slice` from the feeder, in batches.
LossSums forward_fed(Program& program, const Dataset& dataset, const Slice& slice,
                     Feeder::Setup setup, Communicator& communicator, InputCounts& counts) {
  LossSums sums;
  if (slice.count == 0) return sums;
  StreamSpec stream{
      .samples = slice.count, .global_batch = setup.batch, .in_order = true, .first = slice.begin};
  setup.rank = 0;  // the stream is this rank's alone
  setup.ranks = 1;
  setup.parts = 1;
  setup.first_step = 0;
  setup.steps = SampleStream(stream).steps_per_epoch();
  setup.repeat_synthetic = false;
  Feeder feeder(dataset, stream, setup);
  const BatchInUse in_use(program, communicator);
  for (std::size_t step = 0; step < setup.steps; ++step) {
    sums += program.take_sums();  // the batch before is done: its slot is free
    const StagedBatch& staged = next_batch(feeder, communicator);
    Batch batch;
    batch.images = staged.images.data();
    batch.image_type = staged.image_type;
    batch.labels = staged.labels.data();
    batch.samples = batch.global_samples = static_cast<int>(staged.samples);
    program.forward(batch, Mode::evaluate);
  }
  sums += program.take_sums();
  counts = feeder.counts();
  return sums;
}

std::vector<double> read_all(const Program& program, const Plan& plan) {
  std::vector<double> all;
  for (std::size_t i = 0; i < plan.statistics.size(); ++i) {
    const std::vector<double> values = program.read_statistic(static_cast<int>(i));
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

void write_all(Program& program, const Plan& plan, std::span<const double> all) {
  std::size_t at = 0;
  for (std::size_t i = 0; i < plan.statistics.size(); ++i) {
    const std::size_t count = plan.statistics[i].elements;
    program.write_statistic(static_cast<int>(i), all.subspan(at, count));
    at += count;
  }
}

}  // namespace

Evaluation evaluate(Program& program, const Dataset& dataset, Communicator& communicator,
                    Feeder::Setup input) {
  program.take_sums();
  const Slice slice = take_slice(dataset.samples, input.rank, input.ranks);
  Evaluation result;
  const LossSums sums =
      dataset.store || !dataset.has_all_in_memory()
          ? forward_fed(program, dataset, slice, input, communicator, result.input)
          : forward_in_memory(program, dataset, slice, input.batch);
  std::array<double, 4> totals = sums.values();
  sum_over_ranks(communicator, totals);
  const LossSums all = LossSums::of(totals);
  result.loss = all.loss / all.samples;
  result.accuracy = all.correct / all.samples;
  result.top5 = all.top5 / all.samples;
  return result;
}

void with_averaged_statistics(Program& program, const Plan& plan, Communicator& communicator,
                              const std::function<void()>& body) {
  if (plan.statistics.empty() || communicator.size() == 1) return body();
  const std::vector<double> own = read_all(program, plan);
  std::vector<double> mean = own;
  sum_over_ranks(communicator, mean);
  for (double& value : mean) value /= communicator.size();
  write_all(program, plan, mean);
  body();
  write_all(program, plan, own);
}

}  // namespace paceline
