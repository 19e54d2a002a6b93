// The optimizers' arithmetic, in the form that Keras gives them. g is the gradient, w the
// parameter, a and b the two state arenas (zero at first unless said).
//
//   sgd       w -= r g
//   momentum  a = m a - r g;  w += a
//   adagrad   a += g g;  w -= r g / sqrt(a + e)               (a starts at 0.1; e = 1e-7)
//   adam      a += (1 - b1)(g - a);  b += (1 - b2)(g g - b)   (b1 = 0.9, b2 = 0.999; e = 1e-7)
//             w -= r sqrt(1 - b2^t)/(1 - b1^t) a / (sqrt(b) + e)
//
// Sources: Kingma and Ba, arXiv 1412.6980 (the form before section 2.1's end, "epsilon hat");
// Duchi, Hazan and Singer, JMLR 12 (2011).
#pragma once

#include <cmath>
#include <cstddef>
#include <string_view>

#ifdef __CUDACC__
#define PACELINE_EVERYWHERE __host__ __device__
#else
#define PACELINE_EVERYWHERE
#endif

namespace paceline {

enum class Optimizer { sgd, momentum, adagrad, adam };

Optimizer optimizer_of(std::string_view name);  // throws usage
const char* name_of(Optimizer optimizer);
int state_arenas(Optimizer optimizer);      // 0, 1 or 2
double initial_state(Optimizer optimizer);  // of the first arena

// One step's constants.
struct UpdateRule {
  Optimizer optimizer = Optimizer::adam;
  double rate = 0.001;  // for adam with the bias correction of its step folded in
  double momentum = 0.9;
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-7;
  friend bool operator==(const UpdateRule&, const UpdateRule&) = default;
};

// The rule of step `step` (from 1) at learning rate `rate`.
UpdateRule update_rule(Optimizer optimizer, double rate, double momentum, long step);

// `w`, `a`, `b` are updated in place; unused arenas may be null.
// Always inlined: each instruction set compiles its own copy.
template <typename T>
PACELINE_EVERYWHERE inline __attribute__((always_inline)) void apply_update(
    const UpdateRule& rule, T* __restrict w, const T* __restrict g, T* __restrict a,
    T* __restrict b, std::size_t count) {
  const T rate = static_cast<T>(rule.rate), epsilon = static_cast<T>(rule.epsilon);
  switch (rule.optimizer) {
    case Optimizer::sgd:
      for (std::size_t i = 0; i < count; ++i) w[i] -= rate * g[i];
      return;
    case Optimizer::momentum: {
      const T momentum = static_cast<T>(rule.momentum);
      for (std::size_t i = 0; i < count; ++i) {
        a[i] = momentum * a[i] - rate * g[i];
        w[i] += a[i];
      }
      return;
    }
    case Optimizer::adagrad:
      for (std::size_t i = 0; i < count; ++i) {
        a[i] += g[i] * g[i];
        w[i] -= rate * g[i] / std::sqrt(a[i] + epsilon);
      }
      return;
    case Optimizer::adam: {
      const T c1 = static_cast<T>(1 - rule.beta1), c2 = static_cast<T>(1 - rule.beta2);
      for (std::size_t i = 0; i < count; ++i) {
        a[i] += c1 * (g[i] - a[i]);
        b[i] += c2 * (g[i] * g[i] - b[i]);
        w[i] -= rate * a[i] / (std::sqrt(b[i]) + epsilon);
      }
      return;
    }
  }
}

}  // namespace paceline
