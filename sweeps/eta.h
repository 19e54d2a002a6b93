// Estimates the remaining time of a study: medians of finished runs of the same point, else of all.
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
  // The total for one run of each of these points. Empty until a run has finished.
  std::optional<double> remaining(const std::vector<std::size_t>& points) const;

 private:
  std::map<std::size_t, std::vector<double>> seconds_;
};

// "about 18 s", "about 1 min 10 s", without fractions.
std::string about(double seconds);

}  // namespace paceline
