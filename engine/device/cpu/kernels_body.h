// Included once for each instruction set with PACELINE_ISA defined; intentionally without include
// guard. Uses only builtins and code of this file: the linker might keep the AVX-512 copy of a
// shared inline function for all callers.
#include <cstddef>
#include <cstdint>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "engine/device/cpu/kernels.h"
//
#include "engine/device/cpu/lanes_body.h"
#include "engine/device/cpu/norm_body.h"
#include "engine/device/cpu/plane_body.h"
#include "engine/device/cpu/product_body.h"
#include "engine/device/cpu/tokens_body.h"
#include "engine/device/cpu/winograd_body.h"
#include "engine/device/cpu/winograd_fp32_body.h"
//
#include "engine/device/cpu/pointwise_body.h"

namespace paceline::cpu::PACELINE_ISA {

namespace {

// As loops: GCC 12 compiles __builtin_convertvector of these types to scalar moves.
PACELINE_INLINE void widen(const std::uint8_t* bytes, IntVec& v) {
  std::int32_t lanes[kLanes];
  for (std::size_t l = 0; l < kLanes; ++l) lanes[l] = bytes[l];
  __builtin_memcpy(&v, lanes, sizeof v);
}
PACELINE_INLINE void narrow(const IntVec& v, std::uint8_t* bytes) {
  std::int32_t lanes[kLanes];
  __builtin_memcpy(lanes, &v, sizeof v);
  for (std::size_t l = 0; l < kLanes; ++l) bytes[l] = static_cast<std::uint8_t>(lanes[l]);
}

void cast(const std::uint8_t* x, float* y, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) y[i] = static_cast<float>(x[i]) * (1.0F / 255.0F);
}

void bias(float* y, const float* b, std::size_t rows, std::size_t columns) {
  for (std::size_t r = 0; r < rows; ++r) {
    float* row = y + r * columns;
    for (std::size_t j = 0; j < columns; ++j) row[j] += b[j];
  }
}

void bias_relu(float* y, const float* b, std::size_t rows, std::size_t columns) {
  for (std::size_t r = 0; r < rows; ++r) {
    float* row = y + r * columns;
    for (std::size_t j = 0; j < columns; ++j) {
      const float z = row[j] + b[j];
      row[j] = z <= 0 ? 0 : z;
    }
  }
}

// Eight elements share a Philox block of four words, low half first; see core/random.h.
constexpr std::size_t kSpan = 8 * kLanes;
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "halves of words lie low half first");

// The bits of elements [8 first, 8 first + kSpan) of one row, in order.
PACELINE_INLINE void philox_halves(const DropoutBits& bits, std::uint32_t position,
                                   std::uint32_t first, std::uint16_t (&halves)[kSpan]) {
  std::uint32_t c0[kLanes], c1[kLanes], c2[kLanes], c3[kLanes];
  for (std::size_t l = 0; l < kLanes; ++l) {
    c0[l] = first + static_cast<std::uint32_t>(l);
    c1[l] = position;
    c2[l] = bits.epoch;
    c3[l] = bits.layer;
  }
  std::uint32_t low = bits.key.low, high = bits.key.high;
  for (int round = 0; round < 10; ++round) {
    // Not unrolled: GCC 12 would split the lanes before vectorizing.
#pragma GCC unroll 1
    for (std::size_t l = 0; l < kLanes; ++l) {
      const std::uint64_t a = std::uint64_t{0xD2511F53} * c0[l];
      const std::uint64_t b = std::uint64_t{0xCD9E8D57} * c2[l];
      c0[l] = static_cast<std::uint32_t>(b >> 32) ^ c1[l] ^ low;
      c1[l] = static_cast<std::uint32_t>(b);
      c2[l] = static_cast<std::uint32_t>(a >> 32) ^ c3[l] ^ high;
      c3[l] = static_cast<std::uint32_t>(a);
    }
    low += 0x9E3779B9;
    high += 0xBB67AE85;
  }
  std::uint32_t words[4 * kLanes];
#pragma GCC unroll 1
  for (std::size_t l = 0; l < kLanes; ++l) {
    words[4 * l] = c0[l];
    words[4 * l + 1] = c1[l];
    words[4 * l + 2] = c2[l];
    words[4 * l + 3] = c3[l];
  }
  __builtin_memcpy(halves, words, sizeof halves);
}

// Calls visit(element, keeps) for the elements of a row. Generates bits in blocks.
template <typename Visit>
PACELINE_INLINE void for_each_bit(const DropoutBits& bits, std::uint32_t position,
                                  std::size_t columns, Visit visit) {
  const std::uint32_t threshold = static_cast<std::uint32_t>(bits.rate * 65536.0 + 0.5);
  const auto least = static_cast<std::uint16_t>(threshold < 65535 ? threshold : 65535);
  const bool any = threshold < 65536;
  for (std::size_t at = 0; at < columns; at += kSpan) {
    std::uint16_t halves[kSpan];
    philox_halves(bits, position, static_cast<std::uint32_t>(at / 8), halves);
    std::uint8_t keep[kSpan];
    for (std::size_t i = 0; i < kSpan; ++i) keep[i] = (halves[i] >= least) & any;
    const std::size_t n = columns - at < kSpan ? columns - at : kSpan;
    for (std::size_t i = 0; i < n; ++i) visit(at + i, keep[i]);
  }
}

void bias_relu_dropout(float* y, const float* b, std::size_t rows, std::size_t columns,
                       const DropoutBits& bits, std::size_t first_row) {
  const float scale = static_cast<float>(1 / (1 - bits.rate));
  for (std::size_t r = 0; r < rows; ++r) {
    float* row = y + r * columns;
    for_each_bit(bits, bits.positions[first_row + r], columns,
                 [&](std::size_t j, std::uint8_t keep) {
                   const float z = row[j] + b[j];
                   row[j] = (!(z <= 0)) & keep ? z * scale : 0;
                 });
  }
}

void dropout(const float* x, float* y, std::uint8_t* kept, std::size_t rows, std::size_t columns,
             const DropoutBits& bits) {
  const float scale = static_cast<float>(1 / (1 - bits.rate));
  for (std::size_t r = 0; r < rows; ++r) {
    const std::size_t base = r * columns;
    for_each_bit(bits, bits.positions[r], columns, [&](std::size_t j, std::uint8_t keep) {
      kept[base + j] = keep;
      y[base + j] = keep ? x[base + j] * scale : 0;
    });
  }
}

void dropout_backward(const float* dy, const std::uint8_t* kept, float* dx, float scale,
                      std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) dx[i] = kept[i] ? dy[i] * scale : 0;
}

void relu_backward(const float* y, float* dy, float scale, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) dy[i] = y[i] <= 0 ? 0 : dy[i] * scale;
}

void column_sums(const float* x, float* sums, std::size_t rows, std::size_t columns,
                 std::size_t begin, std::size_t end) {
  for (std::size_t j = begin; j < end; ++j) sums[j] = 0;
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t j = begin; j < end; ++j) sums[j] += x[r * columns + j];
  }
}

// Output (r, s) of the pooling covers the 4x4 image patch at (2r, 2s): four convolutions (positions
// 0 to 3, row by row) that share its 16 values.
PACELINE_INLINE void stem_point(const float* patch, int width, const Vec (&w)[9], const Vec& b,
                                Vec& best, IntVec& place) {
  Vec sum[4] = {b, b, b, b};
  for (int u = 0; u < 4; ++u) {
    for (int v = 0; v < 4; ++v) {
      const float value = patch[u * width + v];
      for (int d = 0; d < 4; ++d) {
        const int kr = u - (d >> 1), kc = v - (d & 1);
        if (kr >= 0 && kr < 3 && kc >= 0 && kc < 3) sum[d] += value * w[kr * 3 + kc];
      }
    }
  }
  best = sum[0];
  place = IntVec{};
  for (int d = 1; d < 4; ++d) {
    const IntVec greater = sum[d] > best;
    best = greater ? sum[d] : best;
    place = greater ? IntVec{} + d : place;
  }
  // Propagates NaN, and infinities of both signs, which comparisons would ignore.
  const Vec all = (sum[0] + sum[1]) + (sum[2] + sum[3]);
  best = all != all ? all : best;
  const IntVec zero = best <= 0;
  best = zero ? Vec{} : best;
  place = zero ? IntVec{} + 255 : place;
}

void stem_forward(const StemShape& shape, const float* x, const float* w, const float* b, float* y,
                  std::uint8_t* chosen, std::size_t samples) {
  const int rows = (shape.height - 2) / 2, columns = (shape.width - 2) / 2;
  const auto filters = static_cast<std::size_t>(shape.filters);
  for (std::size_t n = 0; n < samples; ++n) {
    const float* image = x + n * static_cast<std::size_t>(shape.height * shape.width);
    const std::size_t base = n * static_cast<std::size_t>(rows * columns) * filters;
    for (std::size_t f = 0; f < filters; f += kLanes) {
      Vec weights[9], offset;
      for (std::size_t k = 0; k < 9; ++k) load(w + k * filters + f, weights[k]);
      load(b + f, offset);
      for (int r = 0; r < rows; ++r) {
        for (int s = 0; s < columns; ++s) {
          Vec best;
          IntVec place;
          stem_point(image + 2 * r * shape.width + 2 * s, shape.width, weights, offset, best,
                     place);
          const std::size_t at = base + static_cast<std::size_t>(r * columns + s) * filters + f;
          store(y + at, best);
          narrow(place, chosen + at);
        }
      }
    }
  }
}

void stem_backward(const StemShape& shape, const float* x, const float* dy,
                   const std::uint8_t* chosen, float* dw, float* db, std::size_t samples) {
  const int rows = (shape.height - 2) / 2, columns = (shape.width - 2) / 2;
  const auto filters = static_cast<std::size_t>(shape.filters);
  for (std::size_t f = 0; f < filters; f += kLanes) {
    Vec sums[9] = {}, offset = {};
    for (std::size_t n = 0; n < samples; ++n) {
      const float* image = x + n * static_cast<std::size_t>(shape.height * shape.width);
      const std::size_t base = n * static_cast<std::size_t>(rows * columns) * filters;
      for (int r = 0; r < rows; ++r) {
        for (int s = 0; s < columns; ++s) {
          const std::size_t at = base + static_cast<std::size_t>(r * columns + s) * filters + f;
          Vec gradient, parts[4];
          load(dy + at, gradient);
          IntVec place;
          widen(chosen + at, place);
          for (int d = 0; d < 4; ++d) parts[d] = place == d ? gradient : Vec{};
          offset += (parts[0] + parts[1]) + (parts[2] + parts[3]);
          const float* patch = image + 2 * r * shape.width + 2 * s;
          // Unrolled: otherwise the nine sums would be kept in memory.
#pragma GCC unroll 4
          for (int u = 0; u < 4; ++u) {
#pragma GCC unroll 4
            for (int v = 0; v < 4; ++v) {
              const float value = patch[u * shape.width + v];
#pragma GCC unroll 4
              for (int d = 0; d < 4; ++d) {
                const int kr = u - (d >> 1), kc = v - (d & 1);
                if (kr >= 0 && kr < 3 && kc >= 0 && kc < 3) sums[kr * 3 + kc] += value * parts[d];
              }
            }
          }
        }
      }
    }
    for (std::size_t k = 0; k < 9; ++k) store(dw + k * filters + f, sums[k]);
    store(db + f, offset);
  }
}

void update(const UpdateRule& rule, float* w, const float* g, float* a, float* b,
            std::size_t count) {
  apply_update(rule, w, g, a, b, count);
}

double multiply_add(std::size_t rounds) {
  constexpr std::size_t kSums = 10;  // enough to hide the latency of two units
  Vec sums[kSums];
  for (std::size_t k = 0; k < kSums; ++k) sums[k] = Vec{} + static_cast<float>(k);
  const Vec factor = Vec{} + 0.999F, term = Vec{} + 0.002F;
  for (std::size_t i = 0; i < rounds; ++i) {
    for (Vec& sum : sums) sum = sum * factor + term;
  }
  float keep[kLanes];
  for (const Vec& sum : sums) {
    store(keep, sum);
    asm volatile("" : : "r"(keep) : "memory");  // keeps the sums from being optimized away
  }
  return 2.0 * kSums * kLanes * static_cast<double>(rounds);
}

}  // namespace

extern const Kernels kKernels;
const Kernels kKernels = {PACELINE_ISA_NAME,
                          kBf16Products,
                          cast,
                          bias,
                          bias_relu,
                          bias_relu_dropout,
                          dropout,
                          dropout_backward,
                          relu_backward,
                          column_sums,
                          stem_forward,
                          stem_backward,
                          update,
                          multiply_add,
                          kNorm<float>,
                          kNorm<Bf16>,
                          kPlane<float>,
                          kPlane<Bf16>,
                          kTokens<float>,
                          kTokens<Bf16>,
                          token_loss,
                          kProduct,
                          kWinograd,
                          kWinogradFp32,
                          kPointwise};

}  // namespace paceline::cpu::PACELINE_ISA
