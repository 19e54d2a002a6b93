// Where a flat arena of gradients is cut into buckets: the trainer's rule, which predictions share.
#pragma once

#include <cstddef>
#include <vector>

namespace paceline {

// `ready`: how much of the arena is final after each operation with parameters, growing, not empty.
// Returns the indices of the last such operation of each bucket. A bucket is filled up to `cap`
// without splitting what an operation adds. What is ready last is a separate bucket of at most
// `last_cap`, as far as one operation's part is not larger.
std::vector<std::size_t> bucket_cuts(const std::vector<std::size_t>& ready, std::size_t cap,
                                     std::size_t last_cap);

}  // namespace paceline
