// What a gate looks at, and by how much it may get worse.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace paceline {

enum class Quantity {
  time,             // fit seconds, or seconds a sample where a record has only a rate
  serial_fraction,  // Karp and Flatt's, against the run of one replica of the same round
  communication,    // share of the step that ranks waited for others
  loss,             // training loss, geometric mean over epochs: the whole trajectory
  accuracy,         // on the test set, at the end
};

struct QuantityInfo {
  Quantity quantity = Quantity::time;
  std::string_view key;      // of options, JSON and JUnit
  std::string_view heading;  // for people
  bool is_factor = false;    // compared by its logarithm; its change is a share of the baseline
  bool more_is_worse = true;
  bool is_of_machine = true;  // what a session's machine was like shows in it; not so in learning
  double threshold = 0;       // a change for the worse of at least this: a share, or a difference
};

// In the order of tables. Thresholds: 2.5 % of time, 0.05 of serial fraction, 0.05 of the step for
// communication, 5 % of loss, 0.005 of accuracy (half a point).
const std::vector<QuantityInfo>& quantities();
const QuantityInfo& info_of(Quantity quantity);

using Thresholds = std::map<Quantity, double>;
Thresholds default_thresholds();

// "2.5%" or "0.025" as 0.025. Throws usage naming `option` unless it lies between 0 and 1; 5 may be
// meant as 5 % or as five times.
double parse_threshold(const std::string& text, const std::string& option);

}  // namespace paceline
