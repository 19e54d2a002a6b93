// How much longer a study takes: medians of finished runs of the same point, else of all.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace paceline {

class Eta {
 public:
  void add(std::size_t point, double seconds);
  // The time of one run of each of these points; nothing while no run has finished.
  std::optional<double> remaining(const std::vector<std::size_t>& points) const;

 private:
  std::map<std::size_t, std::vector<double>> seconds_;
};

// "about 18 s", "about 1 min 10 s": a guess has no fractions.
std::string about(double seconds);

}  // namespace paceline
