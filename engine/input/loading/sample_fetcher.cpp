#include <cstring>

#include "engine/input/loading/dataset.h"

namespace paceline {

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
