// Whole cache lines, and parts of a whole.
#pragma once

#include <cstddef>

namespace paceline::cpu {

constexpr std::size_t kLineBytes = 64;

constexpr std::size_t whole_lines(std::size_t bytes) {
  return (bytes + kLineBytes - 1) / kLineBytes * kLineBytes;
}

// Where part `index` of `parts` nearly equal ones begins.
constexpr std::size_t part_begin(std::size_t count, std::size_t parts, std::size_t index) {
  return count * index / parts;
}

}  // namespace paceline::cpu
