// Softmax cross-entropy with one block per row.
#pragma once

#include <cmath>

#include "engine/device/cuda/kernels/context.h"
#include "engine/device/update.h"

namespace paceline::cuda {

// Computes probabilities, and adds the rows' loss and hits. The last block to finish adds all rows,
// in an order that depends only on their number.
struct SoftmaxLoss {
  const float* x;
  const std::int32_t* labels;
  float* p;
  float* row_loss;            // by row
  std::uint8_t* row_correct;  // by row: kFirst, kAmongFive
  double* sums;               // loss, correct, among five: added to
  unsigned* finished;         // zero before and after
  int rows, classes;
  float smoothing;
  bool twice;  // uses the probabilities as logits; see LossConfig::double_softmax
  static constexpr std::uint8_t kFirst = 1, kAmongFive = 2;

  // The threads' maxima with their columns, or their sums.
  static constexpr std::size_t shared_bytes(unsigned threads) {
    static_assert(sizeof(double) == sizeof(float) + sizeof(int));
    return threads * (sizeof(float) + sizeof(int));
  }

  template <typename Context>
  PACELINE_KERNEL void operator()(Context& c) const {
    const unsigned row = c.block();
    const float* values = x + static_cast<std::size_t>(row) * classes;
    float* out = p + static_cast<std::size_t>(row) * classes;
    float* shared = c.template shared<float>();
    int* columns = reinterpret_cast<int*>(shared + c.threads());
    const int place = largest(c, values, shared, columns);
    const float top = values[place];
    float sum = 0;
    for (int j = static_cast<int>(c.thread()); j < classes; j += static_cast<int>(c.threads())) {
      const float e = expf(values[j] - top);
      out[j] = e;
      sum += e;
    }
    const float total = compute_total(c, sum, shared);
    for (int j = static_cast<int>(c.thread()); j < classes; j += static_cast<int>(c.threads())) {
      out[j] /= total;
    }
    const int label = labels[row];
    const float own = values[label];
    float before = 0, wanted = 0;
    for (int j = static_cast<int>(c.thread()); j < classes; j += static_cast<int>(c.threads())) {
      if (stands_before(values[j], j, own, label)) before += 1;
      wanted += values[j] - top;
    }
    before = compute_total(c, before, shared);
    if (smoothing > 0) wanted = compute_total(c, wanted, shared) * (smoothing / classes);
    const float again = twice ? compute_total(c, exponentials(c, out), shared) : 0;
    if (c.thread() == 0) {
      const float at_label = own - top;
      row_loss[row] = twice           ? logf(again) - expf(at_label) / total
                      : smoothing > 0 ? logf(total) - (1 - smoothing) * at_label - wanted
                                      : logf(total) - at_label;
      const bool among_five = own == own && before < kTop;
      row_correct[row] =
          static_cast<std::uint8_t>((place == label ? kFirst : 0) | (among_five ? kAmongFive : 0));
    }
    add_rows(c, columns);
  }

 private:
  // The first column with the largest value.
  template <typename Context>
  PACELINE_KERNEL int largest(Context& c, const float* values, float* shared, int* columns) const {
    int best = static_cast<int>(c.thread()) < classes ? static_cast<int>(c.thread()) : 0;
    for (int j = best; j < classes; j += static_cast<int>(c.threads())) {
      if (values[j] > values[best]) best = j;
    }
    shared[c.thread()] = values[best];
    columns[c.thread()] = best;
    for (unsigned half = c.threads() / 2; half > 0; half /= 2) {
      c.sync();
      if (c.thread() < half) {
        const float other = shared[c.thread() + half];
        const int column = columns[c.thread() + half];
        const bool better = other > shared[c.thread()] ||
                            (other == shared[c.thread()] && column < columns[c.thread()]);
        if (better) {
          shared[c.thread()] = other;
          columns[c.thread()] = column;
        }
      }
    }
    c.sync();
    const int place = columns[0];
    c.sync();
    return place;
  }

  // For the columns that this thread wrote.
  template <typename Context>
  PACELINE_KERNEL float exponentials(Context& c, const float* out) const {
    float sum = 0;
    for (int j = static_cast<int>(c.thread()); j < classes; j += static_cast<int>(c.threads())) {
      sum += expf(out[j]);
    }
    return sum;
  }

  template <typename Context, typename Number>
  PACELINE_KERNEL Number compute_total(Context& c, Number mine, Number* shared) const {
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
  PACELINE_KERNEL void add_rows(Context& c, int* shared) const {
    c.fence();
    c.sync();
    if (c.thread() == 0) shared[0] = c.add_one(finished) == static_cast<unsigned>(rows) - 1;
    c.sync();
    const bool last = shared[0] != 0;
    c.sync();
    if (!last) return;
    c.fence();
    double loss = 0;
    std::uint64_t counts = 0;  // correct; among five in the upper half
    for (int r = static_cast<int>(c.thread()); r < rows; r += static_cast<int>(c.threads())) {
      loss += static_cast<double>(row_loss[r]);
      counts += std::uint64_t{row_correct[r] & kFirst ? 1U : 0U} |
                std::uint64_t{row_correct[r] & kAmongFive ? 1U : 0U} << 32;
    }
    loss = compute_total(c, loss, c.template shared<double>());
    counts = compute_total(c, counts, c.template shared<std::uint64_t>());
    if (c.thread() != 0) return;
    *finished = 0;
    sums[0] += loss;
    sums[1] += static_cast<double>(counts & 0xFFFFFFFF);
    sums[2] += static_cast<double>(counts >> 32);
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
