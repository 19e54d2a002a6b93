// Convolutions and their epilogues from their definition, in double, and numbers as a card stores
// them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "engine/core/dtype.h"
#include "engine/device/cuda/products.h"

namespace paceline::cuda {

inline std::vector<std::byte> stored(const std::vector<float>& values, DType type) {
  std::vector<std::byte> bytes(values.size() * size_of(type));
  if (type == DType::f32) {
    std::memcpy(bytes.data(), values.data(), bytes.size());
    return bytes;
  }
  std::vector<std::uint16_t> narrow(values.size());
  (type == DType::bf16 ? to_bf16 : to_f16)(values.data(), narrow.data(), values.size());
  std::memcpy(bytes.data(), narrow.data(), bytes.size());
  return bytes;
}

inline std::vector<float> loaded(const std::vector<std::byte>& bytes, DType type) {
  std::vector<float> values(bytes.size() / size_of(type));
  if (type == DType::f32) {
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }
  std::vector<std::uint16_t> narrow(values.size());
  std::memcpy(narrow.data(), bytes.data(), bytes.size());
  (type == DType::bf16 ? from_bf16 : from_f16)(narrow.data(), values.data(), values.size());
  return values;
}

// A result, and for each element the sum of the magnitudes that went into it: what rounding errors
// are proportional to.
struct Reference {
  std::vector<double> values, magnitudes;
};

// `out` is what stands in the result before.
inline Reference convolve(const ConvRequest& request, const std::vector<float>& x,
                          const std::vector<float>& w, const std::vector<float>& y,
                          const std::vector<float>& out) {
  const ConvShape& shape = request.shape;
  Reference result{std::vector<double>(out.size(), 0), std::vector<double>(out.size(), 0)};
  for (std::size_t i = 0; request.accumulates && i < out.size(); ++i) {
    result.values[i] = out[i];
    result.magnitudes[i] = std::abs(out[i]);
  }
  const auto add = [&](std::size_t at, double product) {
    result.values[at] += product;
    result.magnitudes[at] += std::abs(product);
  };
  const auto place = [](int a, int rows, int row, int columns, int column, int depth) {
    return static_cast<std::size_t>(((a * rows + row) * columns + column) * depth);
  };
  for (int n = 0; n < shape.batch; ++n) {
    for (int row = 0; row < shape.out_height(); ++row) {
      for (int column = 0; column < shape.out_width(); ++column) {
        for (int r = 0; r < shape.kernel; ++r) {
          for (int s = 0; s < shape.kernel; ++s) {
            const int h = row * shape.stride - shape.padding + r;
            const int v = column * shape.stride - shape.padding + s;
            if (h < 0 || v < 0 || h >= shape.height || v >= shape.width) continue;
            const std::size_t at_x = place(n, shape.height, h, shape.width, v, shape.in);
            const std::size_t at_y =
                place(n, shape.out_height(), row, shape.out_width(), column, shape.out);
            for (int o = 0; o < shape.out; ++o) {
              const std::size_t at_w = place(o, shape.kernel, r, shape.kernel, s, shape.in);
              const std::size_t this_y = at_y + static_cast<std::size_t>(o);
              for (std::size_t i = 0; i < static_cast<std::size_t>(shape.in); ++i) {
                switch (request.pass) {
                  case ConvPass::forward:
                    add(this_y, double{x[at_x + i]} * w[at_w + i]);
                    break;
                  case ConvPass::backward_data:
                    add(at_x + i, double{y[this_y]} * w[at_w + i]);
                    break;
                  case ConvPass::backward_weights:
                    add(at_w + i, double{y[this_y]} * x[at_x + i]);
                    break;
                }
              }
            }
          }
        }
      }
    }
  }
  return result;
}

// GELU in its tanh form, and its slope.
inline double gelu(double x) {
  return 0.5 * x * (1 + std::tanh(0.7978845608 * (x + 0.044715 * x * x * x)));
}
inline double gelu_slope(double x) {
  constexpr double kStep = 1e-5;
  return (gelu(x + kStep) - gelu(x - kStep)) / (2 * kStep);
}

// An epilogue of a convolution's request. What bias_gelu leaves in `before` is appended, and so are
// the sums of `before` by channel that left_gradient writes.
inline void finish(Reference& result, Epilogue epilogue, const std::vector<float>& bias,
                   const std::vector<float>& before) {
  if (writes_vector(epilogue)) {
    const std::size_t results = result.values.size();
    result.values.resize(results + bias.size());
    result.magnitudes.resize(results + bias.size());
    for (std::size_t i = 0; i < before.size(); ++i) {
      const auto value = static_cast<double>(before[i]);
      result.values[results + i % bias.size()] += value;
      result.magnitudes[results + i % bias.size()] += std::abs(value);
    }
    return;
  }
  if (has_vector(epilogue)) {
    for (std::size_t i = 0; i < result.values.size(); ++i) {
      const double added = static_cast<double>(bias[i % bias.size()]);
      result.values[i] += added;
      result.magnitudes[i] += std::abs(added);
    }
  }
  if (epilogue == Epilogue::bias_add) {
    for (std::size_t i = 0; i < result.values.size(); ++i) {
      result.values[i] += static_cast<double>(before[i]);
      result.magnitudes[i] += std::abs(static_cast<double>(before[i]));
    }
  }
  if (!has_gelu(epilogue)) return;
  const Reference sums = result;
  for (std::size_t i = 0; i < result.values.size(); ++i) {
    double& value = result.values[i];
    value = epilogue == Epilogue::bias_gelu ? gelu(value)
                                            : value * gelu_slope(static_cast<double>(before[i]));
  }
  if (epilogue != Epilogue::bias_gelu) return;
  result.values.insert(result.values.end(), sums.values.begin(), sums.values.end());
  result.magnitudes.insert(result.magnitudes.end(), sums.magnitudes.begin(), sums.magnitudes.end());
}

// Of the norm of the result; and of an element, times the magnitudes summed into it. Rounding of
// a result and of tf32's factors dominates; fp32 has room for a Winograd transform.
struct Tolerance {
  double norm, element;
};

inline Tolerance find_tolerance(Math math) {
  switch (math) {
    case Math::fp32:
      return {1e-5, 1e-5};
    case Math::tf32:
      return {1e-3, 2e-3};
    case Math::bf16:  // 4.4e-3 where cuDNN keeps partial sums of a weight gradient in 16 bits
      return {5e-3, 1e-2};
    case Math::fp16:
      return {1e-3, 2e-3};
  }
  return {0, 0};
}

// Empty where a result is within the tolerance. `roundings`: how many times the way to it rounds.
inline std::string difference(const std::vector<float>& found, const Reference& wanted, Math math,
                              int roundings = 1) {
  Tolerance tolerance = find_tolerance(math);
  tolerance.norm *= roundings;
  tolerance.element *= roundings;
  double error = 0, norm = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const double off = found[i] - wanted.values[i];
    // Written so that NaN fails.
    if (!(std::abs(off) <= tolerance.element * wanted.magnitudes[i])) {
      return "element " + std::to_string(i) + " is " + std::to_string(found[i]) + ", not " +
             std::to_string(wanted.values[i]);
    }
    error += off * off;
    norm += wanted.values[i] * wanted.values[i];
  }
  const double relative = std::sqrt(error / norm);
  return relative <= tolerance.norm ? "" : "relative error " + std::to_string(relative);
}

inline std::vector<float> random_values(std::size_t count, unsigned seed, DType type) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> uniform(-0.75F, 1.0F);
  std::vector<float> values(count);
  std::generate(values.begin(), values.end(), [&] { return uniform(generator); });
  return loaded(stored(values, type), type);
}

}  // namespace paceline::cuda
