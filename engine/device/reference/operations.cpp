#include "engine/device/reference/operations.h"

#include <algorithm>
#include <cmath>

#include "engine/device/update.h"

namespace paceline::reference {

void cast_input(const Batch& batch, double* y, std::size_t elements) {
  const std::size_t count = static_cast<std::size_t>(batch.samples) * elements;
  if (batch.image_type == DType::f32) {
    const auto* x = reinterpret_cast<const float*>(batch.images);
    for (std::size_t i = 0; i < count; ++i) y[i] = static_cast<double>(x[i]) / 255;
  } else {
    for (std::size_t i = 0; i < count; ++i) y[i] = batch.images[i] / 255.0;
  }
}

void dense_forward(const double* x, const double* w, const double* b, double* y,
                   std::size_t samples, std::size_t in, std::size_t out) {
  for (std::size_t n = 0; n < samples; ++n) {
    double* row = y + n * out;
    std::copy_n(b, out, row);
    for (std::size_t k = 0; k < in; ++k) {
      const double factor = x[n * in + k];
      for (std::size_t j = 0; j < out; ++j) row[j] += factor * w[k * out + j];
    }
  }
}

void dense_backward(const double* x, const double* w, const double* dy, double* dx, double* dw,
                    double* db, std::size_t samples, std::size_t in, std::size_t out) {
  std::fill_n(dw, in * out, 0.0);
  std::fill_n(db, out, 0.0);
  for (std::size_t n = 0; n < samples; ++n) {
    const double* row = dy + n * out;
    for (std::size_t j = 0; j < out; ++j) db[j] += row[j];
    for (std::size_t k = 0; k < in; ++k) {
      const double factor = x[n * in + k];
      for (std::size_t j = 0; j < out; ++j) dw[k * out + j] += factor * row[j];
      if (!dx) continue;
      double sum = 0;
      for (std::size_t j = 0; j < out; ++j) sum += row[j] * w[k * out + j];
      dx[n * in + k] = sum;
    }
  }
}

namespace {

// Calls visit(x index, weight index, y index) for every product of the convolution of one sample
// and one window position, for each input channel; weight index is that of output channel 0.
template <typename Visit>
void for_each_tap(const Geometry& g, Visit visit) {
  for (int oh = 0; oh < g.out.height; ++oh) {
    for (int ow = 0; ow < g.out.width; ++ow) {
      for (int kh = 0; kh < g.kernel; ++kh) {
        const int ih = oh * g.stride + kh - g.padding;
        if (ih < 0 || ih >= g.in.height) continue;
        for (int kw = 0; kw < g.kernel; ++kw) {
          const int iw = ow * g.stride + kw - g.padding;
          if (iw < 0 || iw >= g.in.width) continue;
          const int x = (ih * g.in.width + iw) * g.in.channels;
          const int w = (kh * g.kernel + kw) * g.in.channels * g.out.channels;
          const int y = (oh * g.out.width + ow) * g.out.channels;
          for (int c = 0; c < g.in.channels; ++c) {
            visit(static_cast<std::size_t>(x + c), static_cast<std::size_t>(w + c * g.out.channels),
                  static_cast<std::size_t>(y));
          }
        }
      }
    }
  }
}

// Mean and variance of one channel, around the mean.
struct Moments {
  double mean = 0, variance = 0;
};

template <typename Value>
double mean_over_places(const NormShape& shape, std::size_t channel, Value value) {
  double sum = 0;
  for (std::size_t p = 0; p < shape.places; ++p) sum += value(p * shape.channels + channel);
  return sum / static_cast<double>(shape.places);
}

Moments compute_moments(const NormShape& shape, std::size_t channel, const double* x) {
  Moments moments;
  moments.mean = mean_over_places(shape, channel, [&](std::size_t i) { return x[i]; });
  moments.variance = mean_over_places(
      shape, channel, [&](std::size_t i) { return (x[i] - moments.mean) * (x[i] - moments.mean); });
  return moments;
}

void normalise(const NormShape& shape, std::size_t channel, const Moments& moments, double gamma,
               double beta, const double* x, double* y) {
  const double deviation = std::sqrt(moments.variance + shape.epsilon);
  for (std::size_t p = 0; p < shape.places; ++p) {
    const std::size_t i = p * shape.channels + channel;
    y[i] = gamma * (x[i] - moments.mean) / deviation + beta;
  }
}

constexpr int kOutside = -1;

// Index within a sample of element `place` of the window of output (oh, ow), channel c; kOutside
// in the padding.
int window_element(const Geometry& g, int oh, int ow, int c, int place) {
  const int ih = oh * g.stride + place / g.kernel - g.padding;
  const int iw = ow * g.stride + place % g.kernel - g.padding;
  if (ih < 0 || ih >= g.in.height || iw < 0 || iw >= g.in.width) return kOutside;
  return (ih * g.in.width + iw) * g.in.channels + c;
}

// Calls visit(output index, oh, ow, c) for every output element of a sample.
template <typename Visit>
void for_each_output(const Geometry& g, Visit visit) {
  std::size_t index = 0;
  for (int oh = 0; oh < g.out.height; ++oh) {
    for (int ow = 0; ow < g.out.width; ++ow) {
      for (int c = 0; c < g.out.channels; ++c) visit(index++, oh, ow, c);
    }
  }
}

}  // namespace

void conv_forward(const Geometry& g, const double* x, const double* w, const double* b, double* y,
                  std::size_t samples) {
  const auto channels = static_cast<std::size_t>(g.out.channels);
  for (std::size_t n = 0; n < samples; ++n) {
    const double* xn = x + n * g.in.elements();
    double* yn = y + n * g.out.elements();
    for (std::size_t i = 0; i < g.out.elements(); ++i) yn[i] = b[i % channels];
    for_each_tap(g, [&](std::size_t xi, std::size_t wi, std::size_t yi) {
      for (std::size_t c = 0; c < channels; ++c) yn[yi + c] += xn[xi] * w[wi + c];
    });
  }
}

void conv_backward(const Geometry& g, const double* x, const double* w, const double* dy,
                   double* dx, double* dw, double* db, std::size_t samples) {
  const auto channels = static_cast<std::size_t>(g.out.channels);
  std::fill_n(dw, static_cast<std::size_t>(g.kernel * g.kernel * g.in.channels) * channels, 0.0);
  std::fill_n(db, channels, 0.0);
  if (dx) std::fill_n(dx, samples * g.in.elements(), 0.0);
  for (std::size_t n = 0; n < samples; ++n) {
    const double* xn = x + n * g.in.elements();
    const double* dyn = dy + n * g.out.elements();
    double* dxn = dx ? dx + n * g.in.elements() : nullptr;
    for (std::size_t i = 0; i < g.out.elements(); ++i) db[i % channels] += dyn[i];
    for_each_tap(g, [&](std::size_t xi, std::size_t wi, std::size_t yi) {
      for (std::size_t c = 0; c < channels; ++c) dw[wi + c] += xn[xi] * dyn[yi + c];
      if (!dxn) return;
      double sum = 0;
      for (std::size_t c = 0; c < channels; ++c) sum += dyn[yi + c] * w[wi + c];
      dxn[xi] += sum;
    });
  }
}

void add_forward(const double* x, const double* x2, double* y, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) y[i] = x[i] + x2[i];
}

void relu_forward(const double* x, double* y, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) y[i] = x[i] <= 0 ? 0 : x[i];
}

void relu_backward(const double* y, const double* dy, double* dx, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) dx[i] = y[i] <= 0 ? 0 : dy[i];
}

void dropout_forward(const double* x, double* y, std::uint8_t* kept, const Batch& batch,
                     std::uint32_t layer, PhiloxKey key, double rate, std::size_t elements) {
  const std::uint32_t threshold = dropout_threshold(rate);
  for (std::size_t n = 0; n < static_cast<std::size_t>(batch.samples); ++n) {
    for (std::size_t e = 0; e < elements; ++e) {
      const PhiloxCounter block =
          philox({static_cast<std::uint32_t>(e / 8), batch.positions[n], batch.epoch, layer}, key);
      const std::uint32_t bits = (block[e % 8 / 2] >> (16 * (e % 2))) & 0xffff;
      const std::size_t i = n * elements + e;
      kept[i] = bits >= threshold;
      y[i] = kept[i] ? x[i] / (1 - rate) : 0;
    }
  }
}

void dropout_backward(const double* dy, const std::uint8_t* kept, double* dx, double rate,
                      std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) dx[i] = kept[i] ? dy[i] / (1 - rate) : 0;
}

LossSums softmax_cross_entropy_forward(const double* x, const std::int32_t* labels, double* p,
                                       std::size_t samples, std::size_t classes, double smoothing) {
  LossSums sums;
  for (std::size_t n = 0; n < samples; ++n) {
    const double* row = x + n * classes;
    double* out = p + n * classes;
    const double* largest = std::max_element(row, row + classes);
    const auto label = static_cast<std::size_t>(labels[n]);
    double total = 0;
    for (std::size_t j = 0; j < classes; ++j) total += out[j] = std::exp(row[j] - *largest);
    for (std::size_t j = 0; j < classes; ++j) out[j] /= total;
    sums.loss += smoothed_loss(row, classes, label, *largest, std::log(total), smoothing);
    sums.correct += static_cast<std::size_t>(largest - row) == label;
    sums.top5 += is_in_top(row, classes, label);
  }
  return sums;
}

void softmax_cross_entropy_backward(const double* p, const std::int32_t* labels, double* dx,
                                    std::size_t samples, std::size_t classes, double smoothing,
                                    double global_samples) {
  const Targets targets = make_targets(smoothing, classes);
  for (std::size_t n = 0; n < samples; ++n) {
    for (std::size_t j = 0; j < classes; ++j) {
      const bool is_label = static_cast<std::size_t>(labels[n]) == j;
      const double target = is_label ? targets.at_label : targets.elsewhere;
      dx[n * classes + j] = (p[n * classes + j] - target) / global_samples;
    }
  }
}

LossSums softmax_twice_forward(const double* x, const std::int32_t* labels, double* p,
                               std::size_t samples, std::size_t classes) {
  LossSums sums = softmax_cross_entropy_forward(x, labels, p, samples, classes, 0);
  std::vector<double> again(classes);
  sums.loss = 0;
  for (std::size_t n = 0; n < samples; ++n) {
    sums.loss +=
        softmax_cross_entropy_forward(p + n * classes, labels + n, again.data(), 1, classes, 0)
            .loss;
  }
  return sums;
}

void softmax_twice_backward(const double* p, const std::int32_t* labels, double* dx,
                            std::size_t samples, std::size_t classes, double global_samples) {
  std::vector<double> q(classes), g(classes);
  for (std::size_t n = 0; n < samples; ++n) {
    const double* row = p + n * classes;
    softmax_cross_entropy_forward(row, labels + n, q.data(), 1, classes, 0);
    softmax_cross_entropy_backward(q.data(), labels + n, g.data(), 1, classes, 0, global_samples);
    double mean = 0;
    for (std::size_t j = 0; j < classes; ++j) mean += g[j] * row[j];
    for (std::size_t j = 0; j < classes; ++j) dx[n * classes + j] = row[j] * (g[j] - mean);
  }
}

double multiply_add_rounds(std::size_t rounds) {
  double sums[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  for (std::size_t i = 0; i < rounds; ++i) {
    for (double& sum : sums) sum = sum * 0.999 + 0.001;
  }
  [[maybe_unused]] volatile double keep =
      sums[0] + sums[1] + sums[2] + sums[3] + sums[4] + sums[5] + sums[6] + sums[7];
  return 2.0 * 8 * static_cast<double>(rounds);
}

void batch_norm_train(const NormShape& shape, const NormArrays& arrays, const double* x,
                      double* y) {
  if (shape.places == 0) return;
  const auto n = static_cast<double>(shape.places);
  const double keep = shape.momentum;
  for (std::size_t c = 0; c < shape.channels; ++c) {
    const Moments moments = compute_moments(shape, c, x);
    normalise(shape, c, moments, arrays.gamma[c], arrays.beta[c], x, y);
    const double unbiased = n > 1 ? moments.variance * n / (n - 1) : moments.variance;
    arrays.mean[c] = keep * arrays.mean[c] + (1 - keep) * moments.mean;
    arrays.variance[c] = keep * arrays.variance[c] + (1 - keep) * unbiased;
  }
}

void batch_norm_evaluate(const NormShape& shape, const NormArrays& arrays, const double* x,
                         double* y) {
  for (std::size_t c = 0; c < shape.channels; ++c) {
    normalise(shape, c, {arrays.mean[c], arrays.variance[c]}, arrays.gamma[c], arrays.beta[c], x,
              y);
  }
}

// With z = (x - mean) / deviation: dbeta = sum dy, dgamma = sum dy z,
// dx = gamma / deviation (dy - mean of dy - z times mean of dy z); Ioffe and Szegedy, arXiv
// 1502.03167, section 3.
void batch_norm_backward(const NormShape& shape, const double* gamma, const double* x,
                         const double* dy, double* dx, double* dgamma, double* dbeta) {
  const auto n = static_cast<double>(shape.places);
  for (std::size_t c = 0; c < shape.channels; ++c) {
    dgamma[c] = dbeta[c] = 0;
    if (shape.places == 0) continue;
    const Moments moments = compute_moments(shape, c, x);
    const double deviation = std::sqrt(moments.variance + shape.epsilon);
    const auto z = [&](std::size_t i) { return (x[i] - moments.mean) / deviation; };
    const double mean_dy = mean_over_places(shape, c, [&](std::size_t i) { return dy[i]; });
    const double mean_dyz = mean_over_places(shape, c, [&](std::size_t i) { return dy[i] * z(i); });
    dbeta[c] = n * mean_dy;
    dgamma[c] = n * mean_dyz;
    if (!dx) continue;
    for (std::size_t p = 0; p < shape.places; ++p) {
      const std::size_t i = p * shape.channels + c;
      dx[i] = gamma[c] / deviation * (dy[i] - mean_dy - z(i) * mean_dyz);
    }
  }
}

void max_pool_forward(const Geometry& g, const double* x, double* y, std::uint8_t* chosen,
                      std::size_t samples) {
  for (std::size_t n = 0; n < samples; ++n) {
    const double* xn = x + n * g.in.elements();
    const std::size_t base = n * g.out.elements();
    for_each_output(g, [&](std::size_t i, int oh, int ow, int c) {
      int best = kOutside;
      for (int place = 0; place < g.kernel * g.kernel; ++place) {
        const int at = window_element(g, oh, ow, c, place);
        if (at == kOutside) continue;
        const bool wins = best == kOutside || xn[at] > y[base + i] || std::isnan(xn[at]);
        if (!wins) continue;
        best = place;
        y[base + i] = xn[at];
      }
      chosen[base + i] = static_cast<std::uint8_t>(best);
    });
  }
}

void max_pool_backward(const Geometry& g, const double* dy, const std::uint8_t* chosen, double* dx,
                       std::size_t samples) {
  std::fill_n(dx, samples * g.in.elements(), 0.0);
  for (std::size_t n = 0; n < samples; ++n) {
    const std::size_t base = n * g.out.elements();
    double* dxn = dx + n * g.in.elements();
    for_each_output(g, [&](std::size_t i, int oh, int ow, int c) {
      dxn[window_element(g, oh, ow, c, chosen[base + i])] += dy[base + i];
    });
  }
}

void average_pool_forward(const Shape& in, const double* x, double* y, std::size_t samples) {
  const auto channels = static_cast<std::size_t>(in.channels);
  const std::size_t elements = in.elements(), places = elements / channels;
  std::fill_n(y, samples * channels, 0.0);
  for (std::size_t i = 0; i < samples * elements; ++i) {
    y[i / elements * channels + i % channels] += x[i] / static_cast<double>(places);
  }
}

void average_pool_backward(const Shape& in, const double* dy, double* dx, std::size_t samples) {
  const auto channels = static_cast<std::size_t>(in.channels);
  const std::size_t elements = in.elements(), places = elements / channels;
  for (std::size_t i = 0; i < samples * elements; ++i) {
    dx[i] = dy[i / elements * channels + i % channels] / static_cast<double>(places);
  }
}

}  // namespace paceline::reference
