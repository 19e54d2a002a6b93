#include "workloads/amdahl/timed_source.h"

#include <chrono>
#include <thread>

#include "engine/core/hash.h"

namespace paceline {

TimedSource::TimedSource(std::size_t samples, int classes, bool naps)
    : samples_(samples), classes_(classes), naps_(naps) {}

void TimedSource::read(std::size_t i, EncodedSample& sample) const {
  const int naps = i % kSamplesOfGroup == 0 ? kNapsOfSlowSample : 1;
  for (int nap = 0; naps_ && nap < naps; ++nap) {
    std::this_thread::sleep_for(std::chrono::duration<double>(kNapSeconds));
  }
  sample.height = sample.width = kSide;
  sample.bytes.assign(std::size_t{kSide} * kSide * 3, static_cast<char>(i % 251));
  sample.image = sample.bytes;
  sample.label = label(i);
}

std::string TimedSource::where(std::size_t i) const {
  return "sample " + std::to_string(i) + " of amdahl";
}

std::int32_t TimedSource::label(std::size_t i) const {
  return static_cast<std::int32_t>(i % static_cast<std::size_t>(classes_));
}

std::string TimedSource::hash() const {
  Hash hash;
  hash.add("amdahl 1 " + std::to_string(samples_) + (naps_ ? " naps" : ""));
  return hash.hex();
}

}  // namespace paceline
