// Operations of networks of tokens.
#include <algorithm>
#include <cmath>
#include <vector>

#include "engine/device/reference/operations.h"
#include "engine/device/update.h"

namespace paceline::reference {

namespace {

// Calls visit(row, token) for each place of each sample.
template <typename Visit>
void for_each_token(const Batch& batch, std::size_t places, Visit visit) {
  const std::size_t bytes = 2 * (places + 1);
  for (std::size_t row = 0; row < static_cast<std::size_t>(batch.samples) * places; ++row) {
    visit(row, token_at(batch.images + row / places * bytes, row % places));
  }
}

double dot(const double* a, const double* b, std::size_t count) {
  double sum = 0;
  for (std::size_t i = 0; i < count; ++i) sum += a[i] * b[i];
  return sum;
}

void add_scaled(double factor, const double* x, double* y, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) y[i] += factor * x[i];
}

// tanh form: y = 0.5 x (1 + tanh(u)), u = k (x + c x^3).
constexpr double kGeluCube = 0.044715;
const double kGeluScale = std::sqrt(2 / std::acos(-1.0));

// One head of one sample. Rows of queries, keys and values are `stride` apart, those of the output
// `out_stride`.
struct Head {
  std::size_t places, width, stride, out_stride;
  double scale() const { return 1 / std::sqrt(static_cast<double>(width)); }
};

template <typename Visit>
void for_each_head(const AttentionShape& shape, std::size_t samples, Visit visit) {
  const std::size_t width = shape.channels / shape.heads;
  const Head head{shape.places, width, 3 * shape.channels, shape.channels};
  for (std::size_t n = 0; n < samples; ++n) {
    for (std::size_t h = 0; h < shape.heads; ++h) {
      const std::size_t row = n * shape.places;
      visit(head, row * head.stride + h * width, row * head.out_stride + h * width,
            row * shape.heads + h);
    }
  }
}

}  // namespace

void embedding_forward(const Batch& batch, const double* tokens, const double* positions, double* y,
                       std::size_t places, std::size_t width) {
  for_each_token(batch, places, [&](std::size_t row, std::size_t token) {
    std::copy_n(positions + row % places * width, width, y + row * width);
    add_scaled(1, tokens + token * width, y + row * width, width);
  });
}

void embedding_backward(const Batch& batch, const double* dy, double* dtokens, double* dpositions,
                        std::size_t places, std::size_t width) {
  std::fill_n(dpositions, places * width, 0.0);
  for_each_token(batch, places, [&](std::size_t row, std::size_t token) {
    add_scaled(1, dy + row * width, dpositions + row % places * width, width);
    add_scaled(1, dy + row * width, dtokens + token * width, width);
  });
}

void layer_norm_forward(const double* x, const double* gamma, const double* beta, double* y,
                        double* sums, std::size_t rows, std::size_t channels, double epsilon) {
  const auto n = static_cast<double>(channels);
  for (std::size_t r = 0; r < rows; ++r) {
    const double* from = x + r * channels;
    double mean = 0, variance = 0;
    for (std::size_t c = 0; c < channels; ++c) mean += from[c] / n;
    for (std::size_t c = 0; c < channels; ++c) {
      variance += (from[c] - mean) * (from[c] - mean) / n;
    }
    const double scale = 1 / std::sqrt(variance + epsilon);
    for (std::size_t c = 0; c < channels; ++c) {
      y[r * channels + c] = (from[c] - mean) * scale * gamma[c] + beta[c];
    }
    sums[2 * r] = mean;
    sums[2 * r + 1] = scale;
  }
}

void layer_norm_backward(const double* x, const double* gamma, const double* sums, const double* dy,
                         double* dx, double* dgamma, double* dbeta, std::size_t rows,
                         std::size_t channels) {
  const auto n = static_cast<double>(channels);
  std::fill_n(dgamma, channels, 0.0);
  std::fill_n(dbeta, channels, 0.0);
  for (std::size_t r = 0; r < rows; ++r) {
    const double mean = sums[2 * r], scale = sums[2 * r + 1];
    const double *from = x + r * channels, *g = dy + r * channels;
    double sum = 0, projection = 0;
    for (std::size_t c = 0; c < channels; ++c) {
      const double normal = (from[c] - mean) * scale;
      dbeta[c] += g[c];
      dgamma[c] += g[c] * normal;
      sum += g[c] * gamma[c] / n;
      projection += g[c] * gamma[c] * normal / n;
    }
    for (std::size_t c = 0; dx && c < channels; ++c) {
      const double normal = (from[c] - mean) * scale;
      dx[r * channels + c] = scale * (g[c] * gamma[c] - sum - normal * projection);
    }
  }
}

void gelu_forward(const double* x, double* y, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const double u = kGeluScale * (x[i] + kGeluCube * x[i] * x[i] * x[i]);
    y[i] = 0.5 * x[i] * (1 + std::tanh(u));
  }
}

void gelu_backward(const double* x, const double* dy, double* dx, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const double t = std::tanh(kGeluScale * (x[i] + kGeluCube * x[i] * x[i] * x[i]));
    const double slope = kGeluScale * (1 + 3 * kGeluCube * x[i] * x[i]);
    dx[i] = dy[i] * 0.5 * (1 + t + x[i] * (1 - t * t) * slope);
  }
}

void attention_forward(const AttentionShape& shape, const double* x, double* y, double* sums,
                       std::size_t samples) {
  std::vector<double> scores(shape.places);
  for_each_head(
      shape, samples, [&](const Head& head, std::size_t in, std::size_t out, std::size_t s) {
        const double *q = x + in, *k = q + shape.channels, *v = k + shape.channels;
        for (std::size_t i = 0; i < head.places; ++i) {
          double largest = -HUGE_VAL, total = 0;
          for (std::size_t j = 0; j <= i; ++j) {
            scores[j] = head.scale() * dot(q + i * head.stride, k + j * head.stride, head.width);
            largest = std::max(largest, scores[j]);
          }
          for (std::size_t j = 0; j <= i; ++j) total += std::exp(scores[j] - largest);
          const double sum = sums[s + i * shape.heads] = largest + std::log(total);
          double* to = y + out + i * head.out_stride;
          std::fill_n(to, head.width, 0.0);
          for (std::size_t j = 0; j <= i; ++j) {
            add_scaled(std::exp(scores[j] - sum), v + j * head.stride, to, head.width);
          }
        }
      });
}

// With p = exp(score - sum): dv_j = sum_i p dy_i; dscore = p (dy_i v_j - dy_i y_i).
void attention_backward(const AttentionShape& shape, const double* x, const double* y,
                        const double* sums, const double* dy, double* dx, std::size_t samples) {
  std::fill_n(dx, samples * shape.places * 3 * shape.channels, 0.0);
  for_each_head(
      shape, samples, [&](const Head& head, std::size_t in, std::size_t out, std::size_t s) {
        const double *q = x + in, *k = q + shape.channels, *v = k + shape.channels;
        double *dq = dx + in, *dk = dq + shape.channels, *dv = dk + shape.channels;
        for (std::size_t i = 0; i < head.places; ++i) {
          const std::size_t own = i * head.stride, at = out + i * head.out_stride;
          const double common = dot(dy + at, y + at, head.width);
          for (std::size_t j = 0; j <= i; ++j) {
            const std::size_t other = j * head.stride;
            const double p = std::exp(head.scale() * dot(q + own, k + other, head.width) -
                                      sums[s + i * shape.heads]);
            const double slope = head.scale() * p * (dot(dy + at, v + other, head.width) - common);
            add_scaled(p, dy + at, dv + other, head.width);
            add_scaled(slope, k + other, dq + own, head.width);
            add_scaled(slope, q + own, dk + other, head.width);
          }
        }
      });
}

LossSums token_cross_entropy(const Batch& batch, const double* x, const double* tokens,
                             std::size_t places, std::size_t width, std::size_t classes, double* dx,
                             double* dtokens) {
  LossSums sums;
  std::vector<double> logits(classes);
  const double divisor = static_cast<double>(batch.global_samples) * static_cast<double>(places);
  if (dx) std::fill_n(dtokens, classes * width, 0.0);
  for_each_token(batch, places, [&](std::size_t row, std::size_t) {
    const double* from = x + row * width;
    const std::size_t label =
        token_at(batch.images + row / places * 2 * (places + 1), row % places + 1);
    for (std::size_t c = 0; c < classes; ++c) logits[c] = dot(from, tokens + c * width, width);
    const auto largest = std::max_element(logits.begin(), logits.end());
    double total = 0;
    for (const double logit : logits) total += std::exp(logit - *largest);
    const double sum = *largest + std::log(total);
    sums.loss += sum - logits[label];
    sums.correct += static_cast<std::size_t>(largest - logits.begin()) == label;
    sums.top5 += is_in_top(logits.data(), classes, label);
    if (!dx) return;
    std::fill_n(dx + row * width, width, 0.0);
    for (std::size_t c = 0; c < classes; ++c) {
      const double slope = (std::exp(logits[c] - sum) - (c == label ? 1 : 0)) / divisor;
      add_scaled(slope, tokens + c * width, dx + row * width, width);
      add_scaled(slope, from, dtokens + c * width, width);
    }
  });
  return sums;
}

}  // namespace paceline::reference
