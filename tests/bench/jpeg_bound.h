// libjpeg-turbo without us.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/bench/bound.h"

namespace paceline::bench {

// Quality 90, colours at half the resolution, as cameras write.
std::string encoded_jpeg(const std::vector<std::uint8_t>& rgb, int height, int width);

// One image decoded to RGB, again and again, by one object.
class JpegBound final : public Bound {
 public:
  explicit JpegBound(std::string jpeg);
  ~JpegBound() override;
  double run() override;  // 1: images

 private:
  struct State;
  std::string jpeg_;
  std::unique_ptr<State> state_;
};

}  // namespace paceline::bench
