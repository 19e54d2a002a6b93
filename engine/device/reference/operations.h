// The oracle: every operation as its definition says, in double, one sample after another. Other
// devices are tested against these; these against finite differences.
#pragma once

#include <cstdint>

#include "engine/core/random.h"
#include "engine/device/device.h"

namespace paceline::reference {

// x, y and their gradients hold `samples` samples in NHWC; weights are in canonical order.
// Backward *adds* nothing: it sets dx (unless null), dw and db.

struct Geometry {
  Shape in, out;
  int kernel = 0, stride = 1, padding = 0;
};

// Pixel values / 255.
void cast_input(const Batch& batch, double* y, std::size_t elements);

void dense_forward(const double* x, const double* w, const double* b, double* y,
                   std::size_t samples, std::size_t in, std::size_t out);
void dense_backward(const double* x, const double* w, const double* dy, double* dx, double* dw,
                    double* db, std::size_t samples, std::size_t in, std::size_t out);

void conv_forward(const Geometry& geometry, const double* x, const double* w, const double* b,
                  double* y, std::size_t samples);
void conv_backward(const Geometry& geometry, const double* x, const double* w, const double* dy,
                   double* dx, double* dw, double* db, std::size_t samples);

// One normalisation, by channel.
struct NormArrays {
  const double *gamma, *beta;
  double *mean, *variance;  // running averages
};
struct NormShape {
  std::size_t places, channels;  // places: samples x height x width
  double epsilon, momentum;
};
// With the statistics of x, the variance with n in the denominator; the running averages, with
// n - 1, are moved on. Without places nothing is done.
void batch_norm_train(const NormShape& shape, const NormArrays& arrays, const double* x, double* y);
// With the running averages.
void batch_norm_evaluate(const NormShape& shape, const NormArrays& arrays, const double* x,
                         double* y);
// Takes the statistics of x again.
void batch_norm_backward(const NormShape& shape, const double* gamma, const double* x,
                         const double* dy, double* dx, double* dgamma, double* dbeta);

void add_forward(const double* x, const double* x2, double* y, std::size_t count);

void relu_forward(const double* x, double* y, std::size_t count);
void relu_backward(const double* y, const double* dy, double* dx, std::size_t count);

// `chosen` is the place of the largest element in its window, row by row; the first of equals.
// Padding is never chosen.
void max_pool_forward(const Geometry& geometry, const double* x, double* y, std::uint8_t* chosen,
                      std::size_t samples);
void max_pool_backward(const Geometry& geometry, const double* dy, const std::uint8_t* chosen,
                       double* dx, std::size_t samples);

// The mean of each channel over its plane.
void average_pool_forward(const Shape& in, const double* x, double* y, std::size_t samples);
void average_pool_backward(const Shape& in, const double* dy, double* dx, std::size_t samples);

// `kept` is 1 where the element passes, scaled by 1 / (1 - rate).
void dropout_forward(const double* x, double* y, std::uint8_t* kept, const Batch& batch,
                     std::uint32_t layer, PhiloxKey key, double rate, std::size_t elements);
void dropout_backward(const double* dy, const std::uint8_t* kept, double* dx, double rate,
                      std::size_t count);

// Probabilities to p; returns the cross-entropy and the number of hits, summed.
LossSums softmax_cross_entropy_forward(const double* x, const std::int32_t* labels, double* p,
                                       std::size_t samples, std::size_t classes, double smoothing);
// (p - targets) / global samples.
void softmax_cross_entropy_backward(const double* p, const std::int32_t* labels, double* dx,
                                    std::size_t samples, std::size_t classes, double smoothing,
                                    double global_samples);

// The same where the probabilities are taken for logits, and so go through a softmax again: p is
// that of the first one, the loss log(sum exp(p)) - p[label].
LossSums softmax_twice_forward(const double* x, const std::int32_t* labels, double* p,
                               std::size_t samples, std::size_t classes);
// With q = softmax(p): p (g - sum g p) / global samples, where g = q - 1 at the label.
void softmax_twice_backward(const double* p, const std::int32_t* labels, double* dx,
                            std::size_t samples, std::size_t classes, double global_samples);

// Multiplies and adds for the probe; returns how many operations it did.
double multiply_add_rounds(std::size_t rounds);

}  // namespace paceline::reference
