#include "engine/device/cpu/tiles.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <cstdint>

namespace paceline::cpu {

namespace {

constexpr std::size_t kTiles = 8, kRows = 16, kRowBytes = 64;

// As LDTILECFG reads it.
struct alignas(64) TileShapes {
  std::uint8_t palette = 1, start_row = 0;
  std::uint8_t reserved[14] = {};
  std::uint16_t row_bytes[16] = {};
  std::uint8_t rows[16] = {};
};

}  // namespace

__attribute__((target("amx-tile,amx-bf16"))) double multiply_add_tiles(std::size_t rounds) {
  constexpr std::size_t kSums = 4;  // enough to hide the latency
  constexpr std::size_t kMultiplyAdds = kRows * kRows * kRowBytes / 2;
  // A round of the probe's vectors takes about a sixteenth of the time.
  rounds = rounds / 16 + 1;
  TileShapes shapes;
  for (std::size_t i = 0; i < kTiles; ++i) {
    shapes.row_bytes[i] = kRowBytes;
    shapes.rows[i] = kRows;
  }
  // GCC 12 takes the intrinsic for one that reads only the first bytes.
  asm volatile("" : : "r"(&shapes) : "memory");
  _tile_loadconfig(&shapes);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  _tile_zero(4);
  _tile_zero(5);
  _tile_zero(6);
  _tile_zero(7);
  for (std::size_t i = 0; i < rounds; ++i) {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_release();
  return 2.0 * kSums * kMultiplyAdds * static_cast<double>(rounds);
}

}  // namespace paceline::cpu

#endif
