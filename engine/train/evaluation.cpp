#include "engine/train/evaluation.h"

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "engine/input/order.h"

namespace paceline {

namespace {

// Samples that lie in memory, where they are.
void forward_in_memory(Program& program, const Dataset& dataset, std::size_t first, Batch batch) {
  batch.images = dataset.images.data() + first * dataset.sample_bytes();
  batch.labels = dataset.labels.data() + first;
  program.forward(batch, Mode::evaluate);
}

// Two slots: one is filled while the program computes on the other.
class Staging {
 public:
  Staging(const Dataset& dataset, std::size_t batch) : dataset_(dataset), fetcher_(dataset) {
    for (Slot& slot : slots_) {
      slot.images.resize(batch * dataset.sample_bytes());
      slot.labels.resize(batch);
    }
  }

  void forward(Program& program, std::size_t first, Batch batch, LossSums& sums) {
    Slot& slot = slots_[next_++ % 2];
    for (std::size_t i = 0; i < static_cast<std::size_t>(batch.samples); ++i) {
      slot.labels[i] = fetcher_.fetch(first + i, slot.images.data() + i * dataset_.sample_bytes());
    }
    sums += program.take_sums();  // the batch before is done: its slot is free
    batch.images = slot.images.data();
    batch.labels = slot.labels.data();
    program.forward(batch, Mode::evaluate);
  }

 private:
  struct Slot {
    std::vector<std::uint8_t> images;
    std::vector<std::int32_t> labels;
  };
  const Dataset& dataset_;
  SampleFetcher fetcher_;
  Slot slots_[2];
  std::size_t next_ = 0;
};

}  // namespace

Evaluation evaluate(Program& program, int batch_size, const Dataset& dataset,
                    Communicator& communicator) {
  program.take_sums();
  LossSums sums;
  const Slice slice = slice_of(dataset.samples, communicator.rank(), communicator.size());
  const auto step = static_cast<std::size_t>(batch_size);
  std::optional<Staging> staging;
  if (dataset.store || !dataset.has_all_in_memory()) staging.emplace(dataset, step);
  for (std::size_t at = 0; at < slice.count; at += step) {
    const std::size_t first = slice.begin + at;
    Batch batch;
    batch.image_type = dataset.image_type;
    batch.samples = static_cast<int>(std::min(step, slice.count - at));
    batch.global_samples = batch.samples;
    if (staging) {
      staging->forward(program, first, batch, sums);
    } else {
      forward_in_memory(program, dataset, first, batch);
    }
  }
  sums += program.take_sums();
  std::array<double, 3> totals = {sums.loss, sums.correct, sums.samples};
  sum_over_ranks(communicator, totals);
  return {totals[0] / totals[2], totals[1] / totals[2]};
}

}  // namespace paceline
