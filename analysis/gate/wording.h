// Formats a gate's numbers.
#pragma once

#include <string>

#include "analysis/gate/quantity.h"

namespace paceline {

std::string change_text(double change, const QuantityInfo& info);  // "7.8 %", "0.031"; no sign
std::string signed_change_text(double change, const QuantityInfo& info);
std::string value_text(double value, const QuantityInfo& info);  // "10.2 s", "0.173", "98.40 %"
std::string p_text(double p);                                    // "0.021", "< 0.0001"
std::string p_phrase(double p);                                  // "p = 0.021", "p < 0.0001"
const char* worse_word(const QuantityInfo& info);                // "slower", "higher", "lower"

}  // namespace paceline
