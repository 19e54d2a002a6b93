// Says why repeats of a point are not done: a reason once, whatever number of repeats have it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace paceline {

struct RepeatReason {
  int repeat = 1;
  std::string why;
  std::string element = {};  // its own number within `why` ("12_3"), which makes no other reason
};

// "repeats 1 to 4: steps was 200, is 300; repeat 6: rank 1 was killed", in the order of repeats,
// with `colon` behind the numbers.
std::string to_text(std::vector<RepeatReason> reasons, std::string_view colon = ": ");

}  // namespace paceline
