// The values of a quantity on one side, by rounds and sessions.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "analysis/gate/side.h"

namespace paceline {

using Samples = std::vector<Sample>;
using RoundKey = std::pair<std::string, int>;  // session, round

// On the scale on which values are compared, more being worse: logarithms of factors.
double scaled(double value, const QuantityInfo& info);

bool is_in_round(const Sample& sample);
RoundKey round_key(const Sample& sample);
std::set<RoundKey> list_rounds(const Samples& samples);
Samples samples_in(const Samples& samples, const std::set<RoundKey>& rounds);

// The rounds that both sides have; fewer than decide count only where these are all of the smaller
// side.
std::set<RoundKey> shared_rounds(const Samples& baseline, const Samples& current);

std::size_t count_sessions(const Samples& samples);

// Means of scaled values.
std::map<RoundKey, double> means_of_rounds(const Samples& samples, const QuantityInfo& info);
std::map<std::string, double> means_of_sessions(const Samples& samples, const QuantityInfo& info);

}  // namespace paceline
