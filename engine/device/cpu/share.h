// Alignment to cache lines, and division into parts.
#pragma once

#include <cstddef>

namespace paceline::cpu {

constexpr std::size_t kLineBytes = 64;

constexpr std::size_t whole_lines(std::size_t bytes) {
  return (bytes + kLineBytes - 1) / kLineBytes * kLineBytes;
}

// Start of part `index` when `count` is divided into `parts` nearly equal parts.
constexpr std::size_t part_begin(std::size_t count, std::size_t parts, std::size_t index) {
  return count * index / parts;
}

}  // namespace paceline::cpu
