#include <cmath>

#include "engine/device/reference/operations.h"

namespace paceline::reference {

namespace {

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

}  // namespace

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

}  // namespace paceline::reference
