// What TensorBoard shows for one step, and its wire format: TensorFlow's Event, with values as
// TensorFlow 2 writes them (tensors for the plugins "scalars" and "histograms").
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
    double value = 0;  // stored as 32 bits, as in Keras
  };
  struct Distribution {
    std::string tag;
    Histogram histogram;
  };

  double wall_time = 0;  // seconds since 1970
  std::int64_t step = 0;
  std::string file_version;  // in a file's first event only
  std::vector<Scalar> scalars;
  std::vector<Distribution> histograms;
};

std::string encode(const Event& event);

// Skips other kinds of values. Throws input for bytes that are not an event, or tensors of the
// wrong shape.
Event decode_event(std::string_view bytes, const std::string& where);

}  // namespace paceline
