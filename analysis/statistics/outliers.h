// Values that stand out of the others: runs that something else held up.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace paceline {

// Indices of the values that are further from the median than `least`, and than six times the
// usual deviation (1.4826 times the median one, Hampel's). None of fewer than 4 values. None if
// they are more than a third (or, of 4 or 5 values, more than one): then they are no outliers, but
// another mode.
std::vector<std::size_t> outlying(std::span<const double> values, double least);

// Of so many values.
std::size_t most_outlying(std::size_t count);

}  // namespace paceline
