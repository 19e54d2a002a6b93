// What TensorBoard shows of one step, and its wire form: TensorFlow's Event, with the values as
// TensorFlow 2 writes them (tensors marked for the plugins "scalars" and "histograms").
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/train/events/histogram.h"

namespace paceline {

struct Event {
  struct Scalar {
    std::string tag;
    double value = 0;  // written in 32 bits, as Keras does
  };
  struct Distribution {
    std::string tag;
    Histogram histogram;
  };

  double wall_time = 0;  // seconds since 1970
  std::int64_t step = 0;
  std::string file_version;  // of a file's first event only
  std::vector<Scalar> scalars;
  std::vector<Distribution> histograms;
};

std::string encode(const Event& event);

// Values of other kinds than these two are left out. Throws input for bytes that are no event or
// whose tensors are not of the shape that they say.
Event decode_event(std::string_view bytes, const std::string& where);

}  // namespace paceline
