#include "engine/train/evaluation.h"

#include <algorithm>
#include <array>

#include "engine/input/order.h"

namespace paceline {

Evaluation evaluate(Program& program, int batch_size, const Dataset& dataset,
                    Communicator& communicator) {
  program.take_sums();
  const Slice slice = slice_of(dataset.samples, communicator.rank(), communicator.size());
  const auto step = static_cast<std::size_t>(batch_size);
  for (std::size_t at = 0; at < slice.count; at += step) {
    const std::size_t first = slice.begin + at;
    Batch batch;
    batch.images = dataset.images.data() + first * dataset.sample_bytes();
    batch.labels = dataset.labels.data() + first;
    batch.samples = static_cast<int>(std::min(step, slice.count - at));
    batch.global_samples = batch.samples;
    program.forward(batch, Mode::evaluate);
  }
  const LossSums sums = program.take_sums();
  std::array<double, 3> totals = {sums.loss, sums.correct, sums.samples};
  sum_over_ranks(communicator, totals);
  return {totals[0] / totals[2], totals[1] / totals[2]};
}

}  // namespace paceline
