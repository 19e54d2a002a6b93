// Softmax cross-entropy with one block per row.
#pragma once

#include <cmath>

#include "engine/device/cuda/kernels/context.h"
#include "engine/device/update.h"

namespace paceline::cuda {

// The sum of all threads' numbers, in an order that depends only on their number. `shared` holds
// one of each thread.
template <typename Context, typename Number>
PACELINE_KERNEL inline Number block_total(Context& c, Number mine, Number* shared) {
  shared[c.thread()] = mine;
  for (unsigned half = c.threads() / 2; half > 0; half /= 2) {
    c.sync();
    if (c.thread() < half) shared[c.thread()] += shared[c.thread() + half];
  }
  c.sync();
  const Number total = shared[0];
  c.sync();
  return total;
}
template <typename Context>
PACELINE_KERNEL inline float block_largest(Context& c, float mine, float* shared) {
  shared[c.thread()] = mine;
  for (unsigned half = c.threads() / 2; half > 0; half /= 2) {
    c.sync();
    const float other = c.thread() < half ? shared[c.thread() + half] : 0;
    if (c.thread() < half && other > shared[c.thread()]) shared[c.thread()] = other;
  }
  c.sync();
  const float largest = shared[0];
  c.sync();
  return largest;
}

// Losses of rows with a block each. The last block to finish adds all rows, in an order that
// depends only on their number.
struct RowLosses {
  float* row_loss;            // by row
  std::uint8_t* row_correct;  // by row: kFirst, kAmongFive
  double* sums;               // loss, correct, among five: added to
  unsigned* finished;         // zero before and after
  int rows;
  static constexpr std::uint8_t kFirst = 1, kAmongFive = 2;

  // `before`: classes that rank above the label. `shared` holds a double of each thread.
  template <typename Context>
  PACELINE_KERNEL void add(Context& c, unsigned row, float loss, float before, int* shared) const {
    if (c.thread() == 0) {
      row_loss[row] = loss;
      row_correct[row] =
          static_cast<std::uint8_t>((before == 0 ? kFirst : 0) | (before < kTop ? kAmongFive : 0));
    }
    c.fence();
    c.sync();
    if (c.thread() == 0) shared[0] = c.add_one(finished) == static_cast<unsigned>(rows) - 1;
    c.sync();
    const bool last = shared[0] != 0;
    c.sync();
    if (!last) return;
    c.fence();
    double sum = 0;
    std::uint64_t counts = 0;  // correct; among five in the upper half
    for (int r = static_cast<int>(c.thread()); r < rows; r += static_cast<int>(c.threads())) {
      sum += static_cast<double>(row_loss[r]);
      counts += std::uint64_t{row_correct[r] & kFirst ? 1U : 0U} |
                std::uint64_t{row_correct[r] & kAmongFive ? 1U : 0U} << 32;
    }
    sum = block_total(c, sum, c.template shared<double>());
    counts = block_total(c, counts, c.template shared<std::uint64_t>());
    if (c.thread() != 0) return;
    *finished = 0;
    sums[0] += sum;
    sums[1] += static_cast<double>(counts & 0xFFFFFFFF);
    sums[2] += static_cast<double>(counts >> 32);
  }
};

// Computes probabilities, and adds the rows' loss and hits.
struct SoftmaxLoss {
  const float* x;
  const std::int32_t* labels;
  float* p;
  RowLosses losses;
  int classes;
  float smoothing;
  bool twice;  // uses the probabilities as logits; see LossConfig::double_softmax

  static constexpr std::size_t shared_bytes(unsigned threads) { return threads * sizeof(double); }

  template <typename Context>
  PACELINE_KERNEL void operator()(Context& c) const {
    const unsigned row = c.block();
    const float* values = x + static_cast<std::size_t>(row) * classes;
    float* out = p + static_cast<std::size_t>(row) * classes;
    float* shared = c.template shared<float>();
    const int step = static_cast<int>(c.threads()), thread = static_cast<int>(c.thread());
    const int label = labels[row];
    const float own = values[label];
    float top = own, sum = 0, before = 0, wanted = 0;
    for (int j = thread; j < classes; j += step) top = values[j] > top ? values[j] : top;
    top = block_largest(c, top, shared);
    for (int j = thread; j < classes; j += step) {
      const float e = expf(values[j] - top);
      out[j] = e;
      sum += e;
    }
    const float total = block_total(c, sum, shared);
    for (int j = thread; j < classes; j += step) {
      out[j] /= total;
      if (stands_before(values[j], j, own, label)) before += 1;
      wanted += values[j] - top;
    }
    before = block_total(c, before, shared);
    if (smoothing > 0) wanted = block_total(c, wanted, shared) * (smoothing / classes);
    float again = 0;
    if (twice) {
      for (int j = thread; j < classes; j += step) again += expf(out[j]);
      again = block_total(c, again, shared);
    }
    const float at_label = own - top;
    const float loss = twice           ? logf(again) - expf(at_label) / total
                       : smoothing > 0 ? logf(total) - (1 - smoothing) * at_label - wanted
                                       : logf(total) - at_label;
    losses.add(c, row, loss, own == own ? before : kTop, reinterpret_cast<int*>(shared));
  }
};

// dx = (p - target) x scale; zero for missing rows.
struct SoftmaxLossGradient {
  const float* p;
  const std::int32_t* labels;
  float* dx;
  std::size_t rows, missing;
  int classes;
  const float* loss_scale;    // on the device; null: 1
  float scale;                // 1 / global samples
  float at_label, elsewhere;  // targets
  bool twice;                 // see SoftmaxLoss

  template <typename Context>
  PACELINE_KERNEL void operator()(Context& c) const {
    const float factor = loss_scale ? *loss_scale * scale : scale;
    over(c, (rows + missing) * classes, [&](std::size_t i) {
      const std::size_t row = i / classes;
      if (row >= rows) {
        dx[i] = 0;
        return;
      }
      const float target = static_cast<int>(i % classes) == labels[row] ? at_label : elsewhere;
      dx[i] = (twice ? through_softmax(row, i, target) : p[i] - target) * factor;
    });
  }

 private:
  // p (g - sum g p) with g = softmax(p) - 1 at the label. Recomputes the row's sums for each
  // element: this loss is for demonstration, not for speed.
  PACELINE_KERNEL float through_softmax(std::size_t row, std::size_t i, float target) const {
    const float* values = p + row * classes;
    float total = 0, weighted = 0;
    for (int j = 0; j < classes; ++j) {
      const float e = expf(values[j]);
      total += e;
      weighted += e * values[j];
    }
    const float mean = weighted / total - values[labels[row]];
    return p[i] * (expf(p[i]) / total - target - mean);
  }
};

}  // namespace paceline::cuda
