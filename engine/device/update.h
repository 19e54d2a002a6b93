// The optimizers' arithmetic, as Keras defines it. g is the gradient, w the parameter, a and b the
// two state arenas (initially zero unless stated).
//
//   sgd       w -= r g
//   momentum  a = m a - r g;  w += a
//   adagrad   a += g g;  w -= r g / sqrt(a + e)               (a starts at 0.1; e = 1e-7)
//   adam      a += (1 - b1)(g - a);  b += (1 - b2)(g g - b)   (b1 = 0.9, b2 = 0.999 or as given; e
//   = 1e-7)
//             w -= r sqrt(1 - b2^t)/(1 - b1^t) a / (sqrt(b) + e)
//
// Optional steps before that: clip g, then apply weight decay to w (decoupled) or add it to g (l2).
// Only for parameters that decay (decays()):
//
//   by norm    g *= c / max(n, c), n the norm of the whole gradient  (tf.clip_by_global_norm)
//   decoupled  w -= r d w                       (Keras' weight_decay, PyTorch's AdamW)
//   l2         g += d w                         (PyTorch's weight_decay of SGD and Adam)
//
// Sources: Kingma and Ba, arXiv 1412.6980 (the form before section 2.1's end, "epsilon hat");
// Duchi, Hazan and Singer, JMLR 12 (2011); Pascanu, Mikolov and Bengio, arXiv 1211.5063 (clipping);
// Loshchilov and Hutter, arXiv 1711.05101 (decay; their rate is r, without Adam's correction).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string_view>
#include <vector>

#include "engine/plan/plan.h"

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
  long step = 0;               // adam: from 1 on
  double decay = 0, l2 = 0;    // r d for decoupled decay, d for l2; 0: none
  double clip_norm = 0;        // c; 0: none; its factor comes from Program::measure_gradients
  double gradient_factor = 1;  // of clipping by norm
  PACELINE_EVERYWHERE bool decays() const { return decay != 0 || l2 != 0; }
  PACELINE_EVERYWHERE bool shapes_gradients() const { return decays() || gradient_factor != 1; }
  friend bool operator==(const UpdateRule&, const UpdateRule&) = default;
};

PACELINE_EVERYWHERE inline double power(double base, long exponent) {
  double result = 1;
  for (; exponent > 0; exponent /= 2, base *= base) {
    if (exponent % 2 != 0) result *= base;
  }
  return result;
}

// Of Adam's rate, in its `step`th update.
PACELINE_EVERYWHERE inline double bias_correction(const UpdateRule& rule, long step) {
  return std::sqrt(1 - power(rule.beta2, step)) / (1 - power(rule.beta1, step));
}

// The rule of step `step` (from 1) at learning rate `rate`.
UpdateRule update_rule(Optimizer optimizer, double rate, double momentum, long step,
                       double beta2 = 0.999);

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
  T factor, decay, l2;
  PACELINE_EVERYWHERE inline __attribute__((always_inline)) T operator()(std::size_t i,
                                                                         T& w) const {
    const T value = g[i] * factor + l2 * w;
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
  optimize(rule, w,
           ShapedGradient<T>{g, static_cast<T>(rule.gradient_factor), static_cast<T>(rule.decay),
                             static_cast<T>(rule.l2)},
           a, b, count);
}

// The loss of one sample: softmax cross-entropy with smoothed labels,
//
//   -sum_j t_j log p_j,  t_j = s / C + (1 - s) [j is the label],  C classes
//
// The gradient with respect to the outputs is p - t.

// Targets of the classes, with label smoothing.
struct Targets {
  double at_label = 1, elsewhere = 0;
};
inline Targets make_targets(double smoothing, std::size_t classes) {
  const double each = smoothing / static_cast<double>(classes);
  return {1 - smoothing + each, each};
}

constexpr int kTop = 5;

// Whether `other` at column `j` ranks above `own` at `label`: larger, or equal and earlier.
template <typename T>
PACELINE_EVERYWHERE inline bool stands_before(T other, int j, T own, int label) {
  return other > own || (other == own && j < label);
}

// Whether fewer than five outputs rank above the label. False if the label's output is NaN.
template <typename T>
bool is_in_top(const T* row, std::size_t classes, std::size_t label) {
  int before = 0;
  for (std::size_t j = 0; j < classes; ++j) {
    before += stands_before(row[j], static_cast<int>(j), row[label], static_cast<int>(label));
  }
  return row[label] == row[label] && before < kTop;
}

// log(total), total being the sum of exp(x - largest), minus the targets' share of x - largest.
template <typename T>
double smoothed_loss(const T* row, std::size_t classes, std::size_t label, T largest,
                     double log_total, double smoothing) {
  const double at_label = static_cast<double>(row[label] - largest);
  if (smoothing == 0) return log_total - at_label;
  double sum = 0;
  for (std::size_t j = 0; j < classes; ++j) sum += static_cast<double>(row[j] - largest);
  return log_total - (1 - smoothing) * at_label - smoothing / static_cast<double>(classes) * sum;
}

// Which elements of the parameter arena have weight decay: kernels of dense layers and
// convolutions, and tables of embeddings. Biases, gamma and beta have none (He et al., arXiv
// 1812.01187, section 3.1: "no bias decay").

inline bool decays(const ParameterInfo& parameter) {
  return parameter.is_matrix();
}

// The arena as stretches with or without decay. Adjacent stretches of the same kind are merged.
class Stretches {
 public:
  explicit Stretches(const Plan& plan) {
    for (const ParameterInfo& parameter : plan.parameters) {
      if (!ends_.empty() && ends_.back().decays == decays(parameter)) continue;
      if (!ends_.empty()) ends_.back().end = parameter.offset;
      ends_.push_back({plan.arena_elements, decays(parameter)});
    }
  }

  // Calls body(begin, end, decays) for the parts of [begin, end), in order. Parts start at
  // parameter boundaries.
  template <typename Body>
  void over(std::size_t begin, std::size_t end, Body body) const {
    auto at = std::upper_bound(ends_.begin(), ends_.end(), begin,
                               [](std::size_t place, const End& one) { return place < one.end; });
    for (; begin < end; ++at) {
      const std::size_t stop = std::min(end, at->end);
      body(begin, stop, at->decays);
      begin = stop;
    }
  }

 private:
  struct End {
    std::size_t end;
    bool decays;
  };
  std::vector<End> ends_;
};

}  // namespace paceline
