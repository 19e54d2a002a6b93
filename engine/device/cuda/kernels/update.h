// The optimizer: one pass over a range of the flat arenas.
#pragma once

#include "engine/device/cuda/kernels/elementwise.h"
#include "engine/device/update.h"

namespace paceline::cuda {

// Loss scaling for fp16, on the device. Gradients are `scale` times too large. A step with
// gradients that are not finite changes nothing and halves the scale; `kGrowth` good steps in a row
// double it (Micikevicius et al., arXiv 1710.03740, section 3.2).
struct LossScale {
  static constexpr int kGrowth = 2000;
  float scale = 65536;
  int good_steps = 0;
  unsigned infinite = 0;  // in the current step
  unsigned skipped = 0;   // number of skipped steps
};

// Sets the rule of the following steps. The rule is a kernel argument, so no host memory must stay
// valid.
struct SetRule {
  UpdateRule rule;
  UpdateRule* to;

  template <typename Context>
  PACELINE_KERNEL void operator()(Context&) const {
    *to = rule;
  }
};

// A range of the gradient arena that belongs to one parameter.
struct GradientPiece {
  static constexpr unsigned kElements = 4096;
  enum Kind : std::uint32_t { narrow, zero };  // narrow: in the 16-bit arena; zero: no gradient
  std::uint32_t first, count;                  // elements
  Kind kind;
};

// Copies pieces from the 16-bit arena, or clears them. One block per piece.
template <typename T>
struct WidenGradients {
  const GradientPiece* pieces;
  const T* narrow;
  float* gradients;

  template <typename Context>
  PACELINE_KERNEL void operator()(Context& c) const {
    const GradientPiece piece = pieces[c.block()];
    for (unsigned i = c.thread(); i < piece.count; i += c.threads()) {
      gradients[piece.first + i] =
          piece.kind == GradientPiece::narrow ? to_float(narrow[piece.first + i]) : 0;
    }
  }
};

// Marks the step if any gradient is not finite.
struct FindInfinite {
  const float* gradients;
  std::size_t count;
  LossScale* scale;

  template <typename Context>
  PACELINE_KERNEL void operator()(Context& c) const {
    bool found = false;
    over(c, count, [&](std::size_t i) {
      const float g = gradients[i];
      found = found || !(g - g == 0);
    });
    if (found) scale->infinite = 1;
  }
};

// State of clipping by norm, on the device.
struct ClipState {
  double factor = 1;
};

// Sums of squares of the gradient arena, one block per part, in a fixed order.
struct SquareSums {
  static constexpr unsigned kElements = 8192, kThreads = 256;
  const float* gradients;
  double* sums;  // by block
  std::size_t count;

  static constexpr unsigned blocks(std::size_t count) {
    return static_cast<unsigned>((count + kElements - 1) / kElements);
  }
  static constexpr std::size_t shared_bytes() { return kThreads * sizeof(double); }

  template <typename Context>
  PACELINE_KERNEL void operator()(Context& c) const {
    const std::size_t begin = static_cast<std::size_t>(c.block()) * kElements;
    const std::size_t end = count - begin < kElements ? count : begin + kElements;
    double sum = 0;
    for (std::size_t i = begin + c.thread(); i < end; i += c.threads()) {
      const auto value = static_cast<double>(gradients[i]);
      sum += value * value;
    }
    const double total = total_of_block(c, sum);
    if (c.thread() == 0) sums[c.block()] = total;
  }

  template <typename Context>
  PACELINE_KERNEL static double total_of_block(Context& c, double mine) {
    double* shared = c.template shared<double>();
    shared[c.thread()] = mine;
    for (unsigned half = c.threads() / 2; half > 0; half /= 2) {
      c.sync();
      if (c.thread() < half) shared[c.thread()] += shared[c.thread() + half];
    }
    c.sync();
    return shared[0];
  }
};

// A single block: computes the factor from the sums of SquareSums, for gradients without loss
// scale.
struct FindClipFactor {
  const double* sums;
  unsigned count;
  const UpdateRule* rule;  // on the device
  const LossScale* scale;  // null: unscaled gradients
  ClipState* clip;

  template <typename Context>
  PACELINE_KERNEL void operator()(Context& c) const {
    double sum = 0;
    for (unsigned i = c.thread(); i < count; i += c.threads()) sum += sums[i];
    const double total = SquareSums::total_of_block(c, sum);
    if (c.thread() != 0) return;
    const double unscale = scale ? 1 / static_cast<double>(scale->scale) : 1;
    clip->factor = clip_factor(total * unscale * unscale, rule->clip_norm);
  }
};

// Runs after a step's updates, in one thread.
struct AdjustScale {
  LossScale* scale;

  template <typename Context>
  PACELINE_KERNEL void operator()(Context&) const {
    if (scale->infinite) {
      scale->scale = scale->scale > 1 ? scale->scale / 2 : scale->scale;
      scale->good_steps = 0;
      ++scale->skipped;
    } else if (++scale->good_steps == LossScale::kGrowth) {
      scale->scale *= 2;
      scale->good_steps = 0;
    }
    scale->infinite = 0;
  }
};

// Elements of the arena with common weight decay. Parameters start at multiples of this.
constexpr std::size_t kDecayGroup = 16;

// T is the type of the parameters' copy for products; float: there is no copy.
template <typename T>
struct Update {
  float *parameters, *first, *second;
  const float* gradients;
  T* narrow;
  const UpdateRule* rule;      // on the device
  const LossScale* scale;      // null: unscaled gradients
  const ClipState* clip;       // null: no clipping by norm
  const std::uint8_t* decays;  // by kDecayGroup elements; null: no decay
  std::size_t count;

  template <typename Context>
  PACELINE_KERNEL void operator()(Context& c) const {
    if (scale && scale->infinite) return;
    const float unscale = scale ? 1 / scale->scale : 1;
    UpdateRule r = *rule;
    if (clip) r.gradient_factor = clip->factor;
    if (!decays) return over(c, count, [&](std::size_t i) { update(i, r, unscale); });
    UpdateRule still = r;
    still.decay = still.l2 = 0;
    // Two calls, so that a rule's double values are rounded once, not for each element.
    over(c, count, [&](std::size_t i) {
      if (decays[i / kDecayGroup]) {
        update(i, r, unscale);
      } else {
        update(i, still, unscale);
      }
    });
  }

 private:
  PACELINE_KERNEL void update(std::size_t i, const UpdateRule& its, float unscale) const {
    const float g = gradients[i] * unscale;
    float w = parameters[i];
    apply_update(its, &w, &g, first ? first + i : nullptr, second ? second + i : nullptr, 1);
    parameters[i] = w;
    if (narrow) narrow[i] = from_float<T>(w);
  }
};

// Copies rows of `from` elements to rows of `to`: cut, or with zeros added.
template <typename To, typename From>
struct FitRows {
  const From* x;
  To* y;
  std::size_t rows;
  int from, to;

  template <typename Context>
  PACELINE_KERNEL void operator()(Context& c) const {
    over(c, rows * to, [&](std::size_t i) {
      const int column = static_cast<int>(i % to);
      y[i] = from_float<To>(column < from ? to_float(x[i / to * from + column]) : 0);
    });
  }
};

}  // namespace paceline::cuda
