// A tf.train.Example from an untrusted record.
#include <cstdlib>

#include "engine/core/error.h"
#include "engine/input/formats/tfrecord.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kClasses = 5;
  paceline::EncodedSample sample;
  sample.bytes.assign(reinterpret_cast<const char*>(data), size);
  try {
    paceline::take_example(sample, {}, kClasses, [] { return "fuzz"; });
    if (sample.label < 0 || sample.label >= static_cast<int>(kClasses)) std::abort();
    if (sample.image.size() > size) std::abort();
  } catch (const paceline::Error&) {
  }
  return 0;
}
