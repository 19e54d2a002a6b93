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
// valid. The host's step counts those that were skipped, which only the device knows.
struct SetRule {
  UpdateRule rule;
  UpdateRule* to;
  const LossScale* scale;  // may be null

  template <typename Context>
  PACELINE_KERNEL void operator()(Context&) const {
    UpdateRule r = rule;
    const long taken = r.step - (scale ? static_cast<long>(scale->skipped) : 0);
    if (taken > 0 && taken < r.step)
      r.rate *= bias_correction(r, taken) / bias_correction(r, r.step);
    *to = r;
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
struct UpdateWork {
  float *parameters, *first, *second;
  const float* gradients;
  T* narrow;
  const UpdateRule* rule;      // on the device
  const LossScale* scale;      // null: unscaled gradients
  const ClipState* clip;       // null: no clipping by norm
  const std::uint8_t* decays;  // by kDecayGroup elements; null: no decay
  std::size_t count;
};

// kVectors: 8 elements at a time, of arenas that begin at a multiple of kDecayGroup elements.
template <typename T, bool kVectors>
struct Update {
  UpdateWork<T> k;

  template <typename Context>
  PACELINE_KERNEL void operator()(Context& c) const {
    if (k.scale && k.scale->infinite) return;
    const float unscale = k.scale ? 1 / k.scale->scale : 1;
    UpdateRule r = *k.rule;
    if (k.clip) r.gradient_factor = k.clip->factor;
    if (!k.decays) return over_all(c, [&](std::size_t i, int n) { update(i, n, r, unscale); });
    UpdateRule still = r;
    still.decay = still.l2 = 0;
    // Two calls, so that a rule's double values are rounded once, not for each element.
    over_all(c, [&](std::size_t i, int n) {
      if (k.decays[i / kDecayGroup]) {
        update(i, n, r, unscale);
      } else {
        update(i, n, still, unscale);
      }
    });
  }

 private:
  template <typename Context, typename Body>
  PACELINE_KERNEL void over_all(Context& c, Body body) const {
    if constexpr (kVectors) {
      over_vectors(c, k.count, body);
    } else {
      over(c, k.count, [&](std::size_t i) { body(i, 1); });
    }
  }
  PACELINE_KERNEL void update(std::size_t i, int n, const UpdateRule& its, float unscale) const {
    if constexpr (kVectors) {
      float w[kVector], g[kVector], a[kVector] = {}, b[kVector] = {};
      load_at(static_cast<const float*>(k.parameters), i, n, w);
      load_at(k.gradients, i, n, g);
      if (k.first) load_at(static_cast<const float*>(k.first), i, n, a);
      if (k.second) load_at(static_cast<const float*>(k.second), i, n, b);
      for (float& value : g) value *= unscale;
      apply_update(its, w, g, a, b, kVector);
      store_at(w, k.parameters, i, n);
      if (k.first) store_at(a, k.first, i, n);
      if (k.second) store_at(b, k.second, i, n);
      if (k.narrow) store_at(w, k.narrow, i, n);
    } else {
      const float g = k.gradients[i] * unscale;
      float w = k.parameters[i];
      apply_update(its, &w, &g, k.first ? k.first + i : nullptr, k.second ? k.second + i : nullptr,
                   1);
      k.parameters[i] = w;
      if (k.narrow) k.narrow[i] = from_float<T>(w);
    }
  }
};

// Weights of a convolution that reads the sample, as products read them: channels padded, and with
// `side` 2 for an input in blocks of 2 x 2 pixels (FoldInput), as those of a window of half the
// size.
struct WeightLayout {
  int kernel, channels;  // in the arena: out, row, column, channel
  int padded, side;

  PACELINE_KERNEL int window() const { return (kernel + side - 1) / side; }
  // Where a weight of the products lies in the arena; kNowhere: it is zero.
  static constexpr std::size_t kNowhere = ~std::size_t{0};
  PACELINE_KERNEL std::size_t find(std::size_t i) const {
    const int channel = static_cast<int>(i % padded), part = channel / channels;
    const std::size_t place = i / padded, out = place / (window() * window());
    const int in_window = static_cast<int>(place % (window() * window()));
    const int row = in_window / window() * side + part / side;
    const int column = in_window % window() * side + part % side;
    if (part >= side * side || row >= kernel || column >= kernel) return kNowhere;
    return ((out * kernel + row) * kernel + column) * channels + channel % channels;
  }
};

template <typename T>
struct ReorderWeights {
  const float* w;
  T* y;
  std::size_t count;  // of y
  WeightLayout layout;

  template <typename Context>
  PACELINE_KERNEL void operator()(Context& c) const {
    over(c, count, [&](std::size_t i) {
      const std::size_t from = layout.find(i);
      y[i] = from_float<T>(from == WeightLayout::kNowhere ? 0 : w[from]);
    });
  }
};

// The other way round, of gradients.
template <typename T>
struct RestoreGradients {
  const T* x;
  float* gradient;
  std::size_t count;  // of x
  WeightLayout layout;

  template <typename Context>
  PACELINE_KERNEL void operator()(Context& c) const {
    over(c, count, [&](std::size_t i) {
      const std::size_t to = layout.find(i);
      if (to != WeightLayout::kNowhere) gradient[to] = to_float(x[i]);
    });
  }
};

}  // namespace paceline::cuda
