// The quantities that a gate checks, and their thresholds.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace paceline {

enum class Quantity {
  time,             // fit seconds, or seconds per sample if a record has only a rate
  serial_fraction,  // Karp and Flatt's, against the one-replica run of the same round
  communication,    // share of the step in which ranks waited for others
  loss,             // training loss, geometric mean over epochs: covers the whole trajectory
  accuracy,         // on the test set, at the end
};

struct QuantityInfo {
  Quantity quantity = Quantity::time;
  std::string_view key;      // of options, JSON and JUnit
  std::string_view heading;  // for people
  bool is_factor = false;    // compared by logarithm; its change is a share of the baseline
  bool more_is_worse = true;
  // Depends on the state of the machine in a session; false for learning results.
  bool is_of_machine = true;
  double threshold = 0;  // smallest change for the worse that matters: a share, or a difference
};

// In table order. Thresholds: 2.5 % of time, 0.05 of serial fraction, 0.05 of the step for
// communication, 5 % of loss, 0.005 of accuracy (half a point).
const std::vector<QuantityInfo>& quantities();
const QuantityInfo& quantity_info(Quantity quantity);
Quantity parse_quantity(const std::string& key, const std::string& option);  // throws usage

using Thresholds = std::map<Quantity, double>;
Thresholds default_thresholds();

struct ShareBounds {
  double most = 1;
  bool zero = false;  // whether 0 is one
};

// Parses "2.5%" or "0.025" as 0.025, of every option that takes a percentage. Throws usage naming
// `option` for a value out of the bounds, and for a plain 5, which is ambiguous (5 % or five
// times).
double parse_threshold(const std::string& text, const std::string& option,
                       const char* noun = "threshold", ShareBounds bounds = {});

// Formats a gate's numbers.

std::string change_text(double change, const QuantityInfo& info);  // "7.8 %", "0.031"; no sign
std::string signed_change_text(double change, const QuantityInfo& info);
std::string value_text(double value, const QuantityInfo& info);  // "10.2 s", "0.173", "98.40 %"
std::string p_text(double p);                                    // "0.021", "< 0.0001"
std::string p_phrase(double p);                                  // "p = 0.021", "p < 0.0001"
const char* worse_word(const QuantityInfo& info);                // "slower", "higher", "lower"

}  // namespace paceline
