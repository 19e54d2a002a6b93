#include "engine/input/loading/stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "engine/core/error.h"
#include "engine/core/random.h"
#include "engine/input/loading/dataset.h"

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
    throw usage_error(fmt::format("a global batch of {} is larger than the {} training samples",
                                  spec.global_batch, spec.samples),
                      "steps_per_epoch", "use a smaller batch");
  }
  if (steps_ == 0) {
    throw usage_error(fmt::format("a global batch of {} is larger than the {} training samples",
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

namespace {

void shuffle_all(std::vector<std::uint32_t>& order, RandomSequence& random) {
  for (std::size_t i = order.size(); i > 1; --i) {
    std::swap(order[i - 1], order[random.below(static_cast<std::uint32_t>(i))]);
  }
}

}  // namespace

std::vector<std::uint32_t> epoch_order(std::uint64_t seed, std::uint32_t epoch, std::size_t samples,
                                       std::size_t buffer) {
  std::vector<std::uint32_t> order(samples);
  std::iota(order.begin(), order.end(), 0U);
  RandomSequence random(seed, Stream::order, epoch);
  if (buffer == 0 || buffer >= samples) {
    shuffle_all(order, random);
    return order;
  }
  std::vector<std::uint32_t> held(order.begin(),
                                  order.begin() + static_cast<std::ptrdiff_t>(buffer));
  std::size_t next = buffer;
  for (std::uint32_t& taken : order) {
    const std::size_t place = random.below(static_cast<std::uint32_t>(held.size()));
    taken = held[place];
    if (next < samples) {
      held[place] = static_cast<std::uint32_t>(next++);
    } else {
      held[place] = held.back();
      held.pop_back();
    }
  }
  return order;
}

Slice take_slice(std::size_t count, int rank, int ranks) {
  const auto r = static_cast<std::size_t>(rank), n = static_cast<std::size_t>(ranks);
  const std::size_t begin = count * r / n;
  return {begin, count * (r + 1) / n - begin};
}

SampleFetcher::SampleFetcher(const Dataset& dataset)
    : dataset_(dataset),
      worker_(dataset.store ? std::make_unique<ImageStore::Worker>() : nullptr) {}

std::int32_t SampleFetcher::fetch(std::size_t i, std::uint8_t* out) {
  if (worker_) return dataset_.store->fetch(i, out, *worker_);
  const std::size_t bytes = dataset_.sample_bytes();
  const std::size_t place = dataset_.stored_index(i);
  std::memcpy(out, dataset_.images.data() + place * bytes, bytes);
  return dataset_.labels[place];
}

void SampleFetcher::expect(std::size_t i) const {
  if (worker_) return;
  const std::size_t bytes = dataset_.sample_bytes();
  const std::uint8_t* sample = dataset_.images.data() + dataset_.stored_index(i) * bytes;
  for (std::size_t line = 0; line < bytes; line += 64) __builtin_prefetch(sample + line);
}

}  // namespace paceline
