// Threads of a test.
#pragma once

#include <thread>
#include <vector>

namespace paceline {

// `body(i)` for each i below `count`, on a thread of its own. Returns when all have ended.
template <typename Number, typename Body>
void on_threads(Number count, const Body& body) {
  std::vector<std::jthread> threads;
  for (Number i = 0; i < count; ++i) threads.emplace_back([&body, i] { body(i); });
}

}  // namespace paceline
