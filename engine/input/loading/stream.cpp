#include "engine/input/loading/stream.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/core/error.h"

namespace paceline {

SampleStream::SampleStream(const StreamSpec& spec) : spec_(spec) {
  const auto steps_for = [&](std::size_t samples) {
    const bool rest = samples % spec.global_batch != 0 && !spec.drop_last;
    return samples / spec.global_batch + (rest ? 1 : 0);
  };
  if (spec.steps_per_epoch) {
    steps_ = spec.steps_per_epoch;
    const std::size_t done = (spec.start_in_epoch + spec.global_batch / 2) / spec.global_batch;
    first_steps_ = steps_ - std::min(steps_, done);
  } else {
    steps_ = steps_for(spec.samples);
    first_steps_ = steps_for(spec.samples - std::min(spec.samples, spec.start_in_epoch));
  }
  if (spec.steps_per_epoch && spec.global_batch > spec.samples) {
    throw Error(ErrorKind::usage,
                fmt::format("a global batch of {} is larger than the {} training samples",
                            spec.global_batch, spec.samples),
                "steps_per_epoch", "use a smaller batch");
  }
  if (steps_ == 0) {
    throw Error(ErrorKind::usage,
                fmt::format("a global batch of {} is larger than the {} training samples",
                            spec.global_batch, spec.samples),
                "last_batch=drop", "use a smaller batch or --last-batch keep");
  }
}

std::size_t SampleStream::position_of_step(std::size_t step) const {
  if (spec_.steps_per_epoch || step < first_steps_) return spec_.start + step * spec_.global_batch;
  const std::size_t second_epoch = spec_.start - spec_.start_in_epoch + spec_.samples;
  const std::size_t later = step - first_steps_;
  return second_epoch + later / steps_ * spec_.samples + later % steps_ * spec_.global_batch;
}

std::size_t SampleStream::samples_of_step(std::size_t step) const {
  if (spec_.steps_per_epoch) return spec_.global_batch;
  const std::size_t begin = step < first_steps_
                                ? spec_.start_in_epoch + step * spec_.global_batch
                                : (step - first_steps_) % steps_ * spec_.global_batch;
  return std::min(spec_.global_batch, spec_.samples - begin);
}

std::uint32_t SampleStream::pass_of_step(std::size_t step) const {
  return static_cast<std::uint32_t>(position_of_step(step) / spec_.samples);
}

const std::vector<std::uint32_t>& SampleStream::order_of_pass(std::uint32_t pass) {
  const std::size_t place = pass % 2;  // a batch straddles two passes at most
  if (pass_[place] != pass) {
    order_[place] = epoch_order(spec_.seed, pass, spec_.samples, spec_.shuffle_buffer);
    pass_[place] = pass;
  }
  return order_[place];
}

std::uint32_t SampleStream::sample_at(std::size_t at) {
  const std::size_t position = at % spec_.samples;
  if (spec_.in_order) return static_cast<std::uint32_t>(spec_.first + position);
  return order_of_pass(static_cast<std::uint32_t>(at / spec_.samples))[position];
}

void SampleStream::draw(std::size_t step, int rank, int ranks, std::vector<Drawn>& drawn, int part,
                        int parts) {
  drawn.clear();
  const Slice block = take_slice(samples_of_step(step), rank, ranks);
  const Slice slice = take_slice(block.count, part, parts);
  const std::size_t first = position_of_step(step) + block.begin + slice.begin;
  for (std::size_t i = 0; i < slice.count; ++i) {
    const std::size_t at = first + i;
    drawn.push_back({sample_at(at), static_cast<std::uint32_t>(at % spec_.samples),
                     static_cast<std::uint32_t>(at / spec_.samples)});
  }
}

}  // namespace paceline
