// The optimizers' arithmetic, as Keras defines it. g is the gradient, w the parameter, a and b the
// two state arenas (initially zero unless stated).
//
//   sgd       w -= r g
//   momentum  a = m a - r g;  w += a
//   adagrad   a += g g;  w -= r g / sqrt(a + e)               (a starts at 0.1; e = 1e-7)
//   adam      a += (1 - b1)(g - a);  b += (1 - b2)(g g - b)   (b1 = 0.9, b2 = 0.999; e = 1e-7)
//             w -= r sqrt(1 - b2^t)/(1 - b1^t) a / (sqrt(b) + e)
//
// Optional steps before that: clip g, then apply weight decay to w (decoupled) or add it to g (l2).
// Only for parameters that decay; see stretches.h:
//
//   by norm    g *= c / max(n, c), n the norm of the whole gradient  (tf.clip_by_global_norm)
//   by value   g = min(max(g, -v), v)
//   decoupled  w -= r d w                       (Keras' weight_decay, PyTorch's AdamW)
//   l2         g += d w                         (PyTorch's weight_decay of SGD and Adam)
//
// Sources: Kingma and Ba, arXiv 1412.6980 (the form before section 2.1's end, "epsilon hat");
// Duchi, Hazan and Singer, JMLR 12 (2011); Pascanu, Mikolov and Bengio, arXiv 1211.5063 (clipping);
// Loshchilov and Hutter, arXiv 1711.05101 (decay; their rate is r, without Adam's correction).
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

Optimizer parse_optimizer(std::string_view name);  // throws usage
const char* to_string(Optimizer optimizer);
int state_arenas(Optimizer optimizer);      // 0, 1 or 2
double initial_state(Optimizer optimizer);  // initial value of the first arena

// The constants of one step.
struct UpdateRule {
  Optimizer optimizer = Optimizer::adam;
  double rate = 0.001;  // for adam, includes the bias correction of the step
  double momentum = 0.9;
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-7;
  double decay = 0, l2 = 0;    // r d for decoupled decay, d for l2; 0: none
  double clip_norm = 0;        // c; 0: none; its factor comes from Program::measure_gradients
  double clip_value = 0;       // v; 0: none
  double gradient_factor = 1;  // of clipping by norm
  PACELINE_EVERYWHERE bool decays() const { return decay != 0 || l2 != 0; }
  PACELINE_EVERYWHERE bool shapes_gradients() const {
    return decays() || clip_value != 0 || gradient_factor != 1;
  }
  friend bool operator==(const UpdateRule&, const UpdateRule&) = default;
};

// The rule of step `step` (from 1) at learning rate `rate`.
UpdateRule update_rule(Optimizer optimizer, double rate, double momentum, long step);

// The factor of clipping by norm, from the sum of squares. A gradient that is not finite gives NaN,
// as in TensorFlow. Then every parameter becomes NaN and the run ends with an error, instead of
// continuing with one rank's overflow.
PACELINE_EVERYWHERE inline double clip_factor(double square_sum, double clip_norm) {
  const double norm = std::sqrt(square_sum);
  if (norm <= clip_norm) return 1;
  return norm - norm == 0 ? clip_norm / norm : norm - norm;
}

// The unmodified gradient of element i.
template <typename T>
struct PlainGradient {
  const T* g;
  PACELINE_EVERYWHERE inline __attribute__((always_inline)) T operator()(std::size_t i, T&) const {
    return g[i];
  }
};

// The gradient after clipping and decay; decay may change w.
template <typename T>
struct ShapedGradient {
  const T* g;
  T factor, limit, decay, l2;
  PACELINE_EVERYWHERE inline __attribute__((always_inline)) T operator()(std::size_t i,
                                                                         T& w) const {
    T value = g[i] * factor;
    value = value > limit ? limit : value;
    value = value < -limit ? -limit : value;
    value += l2 * w;
    w -= decay * w;
    return value;
  }
};

template <typename T, typename Gradient>
PACELINE_EVERYWHERE inline __attribute__((always_inline)) void optimize(
    const UpdateRule& rule, T* __restrict w, const Gradient& gradient, T* __restrict a,
    T* __restrict b, std::size_t count) {
  const T rate = static_cast<T>(rule.rate), epsilon = static_cast<T>(rule.epsilon);
  switch (rule.optimizer) {
    case Optimizer::sgd:
      for (std::size_t i = 0; i < count; ++i) {
        const T g = gradient(i, w[i]);
        w[i] -= rate * g;
      }
      return;
    case Optimizer::momentum: {
      const T momentum = static_cast<T>(rule.momentum);
      for (std::size_t i = 0; i < count; ++i) {
        const T g = gradient(i, w[i]);
        a[i] = momentum * a[i] - rate * g;
        w[i] += a[i];
      }
      return;
    }
    case Optimizer::adagrad:
      for (std::size_t i = 0; i < count; ++i) {
        const T g = gradient(i, w[i]);
        a[i] += g * g;
        w[i] -= rate * g / std::sqrt(a[i] + epsilon);
      }
      return;
    case Optimizer::adam: {
      const T c1 = static_cast<T>(1 - rule.beta1), c2 = static_cast<T>(1 - rule.beta2);
      for (std::size_t i = 0; i < count; ++i) {
        const T g = gradient(i, w[i]);
        a[i] += c1 * (g - a[i]);
        b[i] += c2 * (g * g - b[i]);
        w[i] -= rate * a[i] / (std::sqrt(b[i]) + epsilon);
      }
      return;
    }
  }
}

// Updates `w`, `a` and `b` in place; unused arenas may be null. Always inlined, so that each
// instruction set compiles its own copy.
template <typename T>
PACELINE_EVERYWHERE inline __attribute__((always_inline)) void apply_update(
    const UpdateRule& rule, T* __restrict w, const T* __restrict g, T* __restrict a,
    T* __restrict b, std::size_t count) {
  if (!rule.shapes_gradients()) return optimize(rule, w, PlainGradient<T>{g}, a, b, count);
  const T limit = rule.clip_value > 0 ? static_cast<T>(rule.clip_value) : static_cast<T>(HUGE_VAL);
  optimize(rule, w,
           ShapedGradient<T>{g, static_cast<T>(rule.gradient_factor), limit,
                             static_cast<T>(rule.decay), static_cast<T>(rule.l2)},
           a, b, count);
}

}  // namespace paceline
