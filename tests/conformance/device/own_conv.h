// What the tests of the cpu device's own convolutions share: shapes, values, and plain sums.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string_view>
#include <vector>

#include "engine/core/random.h"
#include "engine/device/cpu/kernels.h"
#include "engine/plan/plan.h"

namespace paceline::cpu {

// The instruction sets of this CPU whose kernels `has` finds.
template <typename Has>
std::vector<std::string_view> sets_with(Has has) {
  std::vector<std::string_view> sets = instruction_sets_here();
  std::erase_if(sets, [&](std::string_view isa) { return !has(kernels_for(isa)); });
  return sets;
}

struct Case {
  int channels, filters, height, width, kernel, stride, padding, batch;
};

inline Operation parse_operation(const Case& one) {
  Operation op{.kind = OpKind::conv, .name = "conv", .in = {}, .out = {}};
  op.in = {one.height, one.width, one.channels};
  op.out = {(one.height + 2 * one.padding - one.kernel) / one.stride + 1,
            (one.width + 2 * one.padding - one.kernel) / one.stride + 1, one.filters};
  op.kernel = one.kernel;
  op.stride = one.stride;
  op.padding = one.padding;
  return op;
}

inline std::vector<Bf16> random_values(std::size_t count, std::uint32_t seed) {
  RandomSequence random(seed, Stream::synthetic, 0);
  std::vector<Bf16> values(count);
  for (Bf16& value : values) {
    const auto number = static_cast<float>(random.normal());
    std::uint32_t bits = 0;
    std::memcpy(&bits, &number, sizeof bits);
    value.bits = static_cast<std::uint16_t>(bits >> 16);
  }
  return values;
}

inline double number(Bf16 value) {
  const std::uint32_t bits = std::uint32_t{value.bits} << 16;
  float result = 0;
  std::memcpy(&result, &bits, sizeof result);
  return static_cast<double>(result);
}

inline std::vector<double> plain_weight_gradient(const Operation& op, int batch,
                                                 const std::vector<double>& x,
                                                 const std::vector<double>& dy) {
  const int channels = op.in.channels, filters = op.out.channels;
  std::vector<double> dw(static_cast<std::size_t>(op.kernel * op.kernel * channels * filters));
  for (int n = 0; n < batch; ++n) {
    for (int i = 0; i < op.out.height; ++i) {
      for (int j = 0; j < op.out.width; ++j) {
        const double* g =
            &dy[static_cast<std::size_t>(((n * op.out.height + i) * op.out.width + j) * filters)];
        for (int u = 0; u < op.kernel; ++u) {
          for (int v = 0; v < op.kernel; ++v) {
            const int r = i * op.stride + u - op.padding, s = j * op.stride + v - op.padding;
            if (r < 0 || s < 0 || r >= op.in.height || s >= op.in.width) continue;
            for (int c = 0; c < channels; ++c) {
              const double value = x[static_cast<std::size_t>(
                  ((n * op.in.height + r) * op.in.width + s) * channels + c)];
              double* row =
                  &dw[static_cast<std::size_t>(((u * op.kernel + v) * channels + c) * filters)];
              for (int f = 0; f < filters; ++f) row[f] += value * g[f];
            }
          }
        }
      }
    }
  }
  return dw;
}

inline Bf16 rounded(double value) {
  const auto number = static_cast<float>(value);
  std::uint32_t bits = 0;
  std::memcpy(&bits, &number, sizeof bits);
  return {static_cast<std::uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16)};
}

inline std::vector<double> numbers(const std::vector<Bf16>& values) {
  std::vector<double> result(values.size());
  std::transform(values.begin(), values.end(), result.begin(), number);
  return result;
}

// Whole numbers from -2 to 2: everything that is computed from them is exact.
inline std::vector<Bf16> whole_values(std::size_t count, std::uint32_t seed) {
  RandomSequence random(seed, Stream::synthetic, 0);
  std::vector<Bf16> values(count);
  for (Bf16& value : values) value = rounded(static_cast<double>(random.below(5)) - 2);
  return values;
}

// |a - b| / |b|
template <typename A, typename B>
double distance(const std::vector<A>& a, const std::vector<B>& b) {
  double error = 0, norm = 0;
  for (std::size_t i = 0; i < b.size(); ++i) {
    error += std::pow(static_cast<double>(a[i]) - static_cast<double>(b[i]), 2);
    norm += std::pow(static_cast<double>(b[i]), 2);
  }
  return std::sqrt(error / norm);
}

// y = conv(x, w) + bias, w in canonical order.
inline std::vector<double> plain_forward(const Operation& op, int batch,
                                         const std::vector<double>& x, const std::vector<double>& w,
                                         const std::vector<float>& bias) {
  const int channels = op.in.channels, filters = op.out.channels;
  std::vector<double> y;
  for (int n = 0; n < batch; ++n) {
    for (int i = 0; i < op.out.height; ++i) {
      for (int j = 0; j < op.out.width; ++j) {
        std::vector<double> sums(bias.begin(), bias.end());
        for (int tap = 0; tap < 9; ++tap) {
          const int r = i + tap / 3 - 1, s = j + tap % 3 - 1;
          if (r < 0 || s < 0 || r >= op.in.height || s >= op.in.width) continue;
          for (int c = 0; c < channels; ++c) {
            const double value = x[static_cast<std::size_t>(
                ((n * op.in.height + r) * op.in.width + s) * channels + c)];
            const double* row = &w[static_cast<std::size_t>((tap * channels + c) * filters)];
            for (int f = 0; f < filters; ++f) sums[static_cast<std::size_t>(f)] += value * row[f];
          }
        }
        y.insert(y.end(), sums.begin(), sums.end());
      }
    }
  }
  return y;
}

// w[tap][c][f] as w[8 - tap][f][c].
inline std::vector<double> turned_round(const Operation& op, const std::vector<double>& w) {
  const auto channels = static_cast<std::size_t>(op.in.channels);
  const auto filters = static_cast<std::size_t>(op.out.channels);
  std::vector<double> turned(w.size());
  for (std::size_t tap = 0; tap < 9; ++tap) {
    for (std::size_t c = 0; c < channels; ++c) {
      for (std::size_t f = 0; f < filters; ++f) {
        turned[((8 - tap) * filters + f) * channels + c] = w[(tap * channels + c) * filters + f];
      }
    }
  }
  return turned;
}

}  // namespace paceline::cpu
