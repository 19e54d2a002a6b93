#include "engine/core/bucket_cuts.h"

namespace paceline {

namespace {

// The first operation of the last bucket: the longest tail within the cap, at least the last one.
std::size_t first_of_tail(const std::vector<std::size_t>& ready, std::size_t last_cap) {
  std::size_t first = ready.size() - 1;
  while (first > 0) {
    const std::size_t before = first > 1 ? ready[first - 2] : 0;
    if (ready.back() - before > last_cap) break;
    --first;
  }
  return first;
}

}  // namespace

std::vector<std::size_t> bucket_cuts(const std::vector<std::size_t>& ready, std::size_t cap,
                                     std::size_t last_cap) {
  const std::size_t tail = first_of_tail(ready, last_cap);
  std::vector<std::size_t> cuts;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < ready.size(); ++i) {
    const bool last = i + 1 == ready.size();
    const bool full = !last && ready[i + 1] - begin > cap && i + 1 < tail;
    if (!last && !full && i + 1 != tail) continue;
    cuts.push_back(i);
    begin = ready[i];
  }
  return cuts;
}

}  // namespace paceline
