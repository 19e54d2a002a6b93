// The oracle: every operation implemented by its definition, in double, one sample at a time. Other
// devices are tested against it; it is tested against finite differences.
#pragma once

#include <cstdint>

#include "engine/core/random.h"
#include "engine/device/device.h"

namespace paceline::reference {

// x, y and their gradients hold `samples` samples in NHWC. Weights are in canonical order. Backward
// *sets* dx (unless null), dw and db; it never adds.

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
// Uses the statistics of x, with n in the denominator of the variance. Updates the running
// averages, with n - 1. Does nothing for zero places.
void batch_norm_train(const NormShape& shape, const NormArrays& arrays, const double* x, double* y);
// Uses the running averages.
void batch_norm_evaluate(const NormShape& shape, const NormArrays& arrays, const double* x,
                         double* y);
// Recomputes the statistics of x.
void batch_norm_backward(const NormShape& shape, const double* gamma, const double* x,
                         const double* dy, double* dx, double* dgamma, double* dbeta);

void add_forward(const double* x, const double* x2, double* y, std::size_t count);

void relu_forward(const double* x, double* y, std::size_t count);
void relu_backward(const double* y, const double* dy, double* dx, std::size_t count);

// `chosen` is the position of the largest element in its window, row by row; ties go to the first.
// Padding is never chosen.
void max_pool_forward(const Geometry& geometry, const double* x, double* y, std::uint8_t* chosen,
                      std::size_t samples);
void max_pool_backward(const Geometry& geometry, const double* dy, const std::uint8_t* chosen,
                       double* dx, std::size_t samples);

// The mean of each channel over its plane.
void average_pool_forward(const Shape& in, const double* x, double* y, std::size_t samples);
void average_pool_backward(const Shape& in, const double* dy, double* dx, std::size_t samples);

// `kept` is 1 if the element passes, which scales it by 1 / (1 - rate).
void dropout_forward(const double* x, double* y, std::uint8_t* kept, const Batch& batch,
                     std::uint32_t layer, PhiloxKey key, double rate, std::size_t elements);
void dropout_backward(const double* dy, const std::uint8_t* kept, double* dx, double rate,
                      std::size_t count);

// Writes the probabilities to p. Returns the summed cross-entropy and number of hits.
LossSums softmax_cross_entropy_forward(const double* x, const std::int32_t* labels, double* p,
                                       std::size_t samples, std::size_t classes, double smoothing);
// (p - targets) / global samples.
void softmax_cross_entropy_backward(const double* p, const std::int32_t* labels, double* dx,
                                    std::size_t samples, std::size_t classes, double smoothing,
                                    double global_samples);

// The same with the probabilities used as logits, so that they go through a second softmax. p is
// the first softmax; the loss is log(sum exp(p)) - p[label].
LossSums softmax_twice_forward(const double* x, const std::int32_t* labels, double* p,
                               std::size_t samples, std::size_t classes);
// With q = softmax(p): p (g - sum g p) / global samples; g = q, minus 1 at the label.
void softmax_twice_backward(const double* p, const std::int32_t* labels, double* dx,
                            std::size_t samples, std::size_t classes, double global_samples);

// Networks of tokens. A batch's images are its tokens (token_sample()); x, y and gradients hold
// `places` rows of each sample.

// tokens[token] + positions[place]. Backward *adds* to dtokens and sets dpositions.
void embedding_forward(const Batch& batch, const double* tokens, const double* positions, double* y,
                       std::size_t places, std::size_t width);
void embedding_backward(const Batch& batch, const double* dy, double* dtokens, double* dpositions,
                        std::size_t places, std::size_t width);

// `sums`: mean and 1 / sqrt(variance + epsilon) of each row; the variance has n in the denominator.
void layer_norm_forward(const double* x, const double* gamma, const double* beta, double* y,
                        double* sums, std::size_t rows, std::size_t channels, double epsilon);
void layer_norm_backward(const double* x, const double* gamma, const double* sums, const double* dy,
                         double* dx, double* dgamma, double* dbeta, std::size_t rows,
                         std::size_t channels);

void gelu_forward(const double* x, double* y, std::size_t count);
void gelu_backward(const double* x, const double* dy, double* dx, std::size_t count);

// Causal, scores divided by sqrt(channels / heads). Rows of x: queries, keys, values, `channels`
// each. `sums`: the logarithm of each row's sum of exponentials, by head.
struct AttentionShape {
  std::size_t places, channels, heads;
};
void attention_forward(const AttentionShape& shape, const double* x, double* y, double* sums,
                       std::size_t samples);
void attention_backward(const AttentionShape& shape, const double* x, const double* y,
                        const double* sums, const double* dy, double* dx, std::size_t samples);

// Logits are products of rows with the `classes` rows of `tokens`. Unless dx is null, sets it and
// dtokens to the gradients of the mean loss over all tokens of the global batch.
LossSums token_cross_entropy(const Batch& batch, const double* x, const double* tokens,
                             std::size_t places, std::size_t width, std::size_t classes, double* dx,
                             double* dtokens);

// Multiply-adds for the probe. Returns the number of operations.
double multiply_add_rounds(std::size_t rounds);

}  // namespace paceline::reference
