// Networks of tokens: tables, GELU and the loss of each token. Rows are places of samples.
#pragma once

#include <cmath>

#include "engine/device/cuda/kernels/channel_sums.h"
#include "engine/device/cuda/kernels/loss.h"

namespace paceline::cuda {

// Samples of context + 1 tokens of 16 bits; see token_sample().
struct TokenRows {
  const std::uint16_t* tokens;
  std::size_t rows;  // of all samples
  std::size_t context;

  PACELINE_KERNEL unsigned at(std::size_t row) const { return tokens[row + row / context]; }
  PACELINE_KERNEL unsigned label(std::size_t row) const { return tokens[row + row / context + 1]; }
};

// y = tokens[token] + positions[place]; zero for missing samples.
template <typename T>
struct Embed {
  TokenRows batch;
  const float *tokens, *positions;
  T* y;
  std::size_t missing_rows, width;

  template <typename Context>
  PACELINE_KERNEL void operator()(Context& c) const {
    over(c, (batch.rows + missing_rows) * width, [&](std::size_t i) {
      const std::size_t row = i / width, channel = i % width;
      y[i] = from_float<T>(row < batch.rows ? tokens[batch.at(row) * width + channel] +
                                                  positions[row % batch.context * width + channel]
                                            : 0);
    });
  }
};

// The gradient of the places: the sum over samples.
template <typename T>
struct PositionGradient {
  const T* dy;
  float* gradient;
  std::size_t samples, elements;  // of a sample

  template <typename Context>
  PACELINE_KERNEL void operator()(Context& c) const {
    over(c, elements, [&](std::size_t i) {
      float sum = 0;
      for (std::size_t n = 0; n < samples; ++n) sum += to_float(dy[n * elements + i]);
      gradient[i] = sum;
    });
  }
};

// A row and its token.
struct TokenRow {
  unsigned token, row;
};

// All rows in the order of their tokens, rows of one token in order. Each thread has a row, and
// counts the rows before it in that order: work grows with their square.
struct TokenOrder {
  static constexpr unsigned kThreads = 256;

  TokenRows batch;
  TokenRow* order;

  static constexpr std::size_t shared_bytes() { return kThreads * sizeof(unsigned); }

  template <typename Context>
  PACELINE_KERNEL void operator()(Context& c) const {
    unsigned* tokens = c.template shared<unsigned>();
    const unsigned mine = c.block() * kThreads + c.thread();
    const unsigned own = mine < batch.rows ? batch.at(mine) : 0;
    unsigned place = 0;
    for (unsigned tile = 0; tile * std::size_t{kThreads} < batch.rows; ++tile) {
      const std::size_t other = tile * std::size_t{kThreads} + c.thread();
      tokens[c.thread()] = other < batch.rows ? batch.at(other) : kNoToken;
      c.sync();
      const bool here = tile == c.block();
      const unsigned earlier = here ? c.thread() : 0;  // of this tile, of the same token
      const unsigned limit = tile < c.block() ? own + 1 : own;
      PACELINE_UNROLL
      for (unsigned k = 0; k < kThreads; ++k) place += tokens[k] < limit;
      for (unsigned k = 0; k < earlier; ++k) place += tokens[k] == own;
      c.sync();
    }
    if (mine < batch.rows) order[place] = {own, mine};
  }

 private:
  static constexpr unsigned kNoToken = 0xFFFFFFFF;  // above all tokens
};

// The same order for many rows, in work that grows with them: sorted by the low 8 bits of the
// token, then by the high ones, each time by TokenCounts, TokenPlaces and TokenSort. A block has a
// tile.
struct TokenDigits {
  static constexpr unsigned kThreads = 256, kTile = 8 * kThreads;

  TokenRows batch;
  const TokenRow* sorted;  // by the bits before; null: rows as they are
  unsigned shift;

  PACELINE_KERNEL TokenRow at(std::size_t row) const {
    return sorted != nullptr ? sorted[row] : TokenRow{batch.at(row), static_cast<unsigned>(row)};
  }
  // Of the tile's rows, in shared memory.
  template <typename Context>
  PACELINE_KERNEL const unsigned* load(Context& c) const {
    unsigned* digits = c.template shared<unsigned>();
    for (unsigned i = c.thread(); i < kTile; i += kThreads) {
      const std::size_t row = c.block() * std::size_t{kTile} + i;
      digits[i] = row < batch.rows ? at(row).token >> shift & (kThreads - 1) : kThreads;
    }
    c.sync();
    return digits;
  }
  static constexpr std::size_t shared_bytes() { return kTile * sizeof(unsigned); }
};

// Of each tile, how many rows have each digit.
struct TokenCounts {
  TokenDigits from;
  unsigned* counts;  // [tile][digit]

  template <typename Context>
  PACELINE_KERNEL void operator()(Context& c) const {
    const unsigned* digits = from.load(c);
    unsigned count = 0;
    for (unsigned i = 0; i < TokenDigits::kTile; ++i) count += digits[i] == c.thread();
    counts[c.block() * TokenDigits::kThreads + c.thread()] = count;
  }
};

// One block: counts become the place of a tile's first row of each digit.
struct TokenPlaces {
  unsigned* counts;
  unsigned tiles;

  template <typename Context>
  PACELINE_KERNEL void operator()(Context& c) const {
    unsigned* totals = c.template shared<unsigned>();
    unsigned* const mine = counts + c.thread();
    unsigned total = 0, place = 0;
    for (unsigned tile = 0; tile < tiles; ++tile) total += mine[tile * TokenDigits::kThreads];
    totals[c.thread()] = total;
    c.sync();
    for (unsigned digit = 0; digit < c.thread(); ++digit) place += totals[digit];
    for (unsigned tile = 0; tile < tiles; ++tile) {
      const unsigned count = mine[tile * TokenDigits::kThreads];
      mine[tile * TokenDigits::kThreads] = place;
      place += count;
    }
  }
};

struct TokenSort {
  TokenDigits from;
  const unsigned* places;
  TokenRow* to;

  template <typename Context>
  PACELINE_KERNEL void operator()(Context& c) const {
    const unsigned* digits = from.load(c);
    for (unsigned i = c.thread(); i < TokenDigits::kTile; i += TokenDigits::kThreads) {
      const std::size_t row = c.block() * std::size_t{TokenDigits::kTile} + i;
      if (row >= from.batch.rows) return;
      const unsigned own = digits[i];
      unsigned place = places[c.block() * TokenDigits::kThreads + own];
      for (unsigned k = 0; k < i; ++k) place += digits[k] == own;
      to[place] = from.at(row);
    }
  }
};

// Adds to the gradient of the tokens. The block of a token's first place in the order adds all of
// its rows; blocks of other places do nothing.
template <typename T>
struct TokenGradient {
  const TokenRow* order;
  const T* dy;
  float* gradient;
  std::size_t rows;
  int width;

  template <typename Context>
  PACELINE_KERNEL void operator()(Context& c) const {
    for (std::size_t place = c.block(); place < rows; place += c.blocks()) {
      const unsigned token = order[place].token;
      if (place > 0 && order[place - 1].token == token) continue;
      over_row(c, width, [&](int channel, int count) {
        float* to = gradient + token * static_cast<std::size_t>(width) + channel;
        float sum[kVector];
        load_row(to, width, count, sum);
        add_rows(place, token, channel, count, sum);
        store_row(sum, width, count, to);
      });
    }
  }

 private:
  // Several rows are fetched before the first is added: frequent tokens have thousands.
  PACELINE_KERNEL void add_rows(std::size_t place, unsigned token, int channel, int count,
                                float (&sum)[kVector]) const {
    constexpr int kAhead = 2 * kRowsAhead<T>;
    bool more = true;
    for (; more; place += kAhead) {
      Packed<T> fetched[kAhead];
      bool mine[kAhead];
      PACELINE_UNROLL
      for (int k = 0; k < kAhead; ++k) {
        more = more && place + k < rows && order[place + k].token == token;
        mine[k] = more;
        if (!more) continue;
        const T* from = dy + order[place + k].row * static_cast<std::size_t>(width) + channel;
        fetched[k] = width % kVector == 0 ? packed_at(from) : packed_some(from, count);
      }
      PACELINE_UNROLL
      for (int k = 0; k < kAhead; ++k) {
        if (!mine[k]) continue;
        float v[kVector];
        unpack(fetched[k], v);
        for (int i = 0; i < kVector; ++i) sum[i] += v[i];
      }
    }
  }
};

// tanh form: y = 0.5 x (1 + tanh(u)) = x s, s = 1 / (1 + exp(-2 u)), u = sqrt(2 / pi) (x + 0.044715
// x^3); its slope is s + 2 x s (1 - s) du/dx.
struct GeluAt {
  float x;

  PACELINE_KERNEL float value() const { return x * share(); }
  PACELINE_KERNEL float slope() const {
    const float s = share();
    return s + 2 * x * s * (1 - s) * kScale * (1 + 3 * kCube * x * x);
  }

 private:
  static constexpr float kScale = 0.7978845608F, kCube = 0.044715F;

  PACELINE_KERNEL float share() const {
    return fast_inverse(1 + fast_exp(-2 * kScale * (x + kCube * x * x * x)));
  }
};

// With dy, out = (out +) dy times the slope at x.
template <typename T>
struct Gelu {
  const T *x, *dy;  // dy null: forward
  T* out;
  std::size_t count;
  bool adds = false;

  template <typename Context>
  PACELINE_KERNEL void operator()(Context& c) const {
    over_vectors(c, count, [&](std::size_t first, int n) {
      float v[kVector], g[kVector], before[kVector];
      load_at(x, first, n, v);
      if (dy) load_at(dy, first, n, g);
      if (adds) load_at(static_cast<const T*>(out), first, n, before);
      for (int i = 0; i < kVector; ++i) {
        const GeluAt gelu{v[i]};
        v[i] = dy ? g[i] * gelu.slope() : gelu.value();
        if (adds) v[i] += before[i];
      }
      store_at(v, out, first, n);
    });
  }
};

// x += bias of the channel, and y = GELU of that.
template <typename T>
struct BiasGelu {
  T* x;
  const T* bias;
  T* y;
  std::size_t count;
  int channels;

  template <typename Context>
  PACELINE_KERNEL void operator()(Context& c) const {
    over_vectors(c, count, [&](std::size_t first, int n) {
      float v[kVector], b[kVector];
      load_at(static_cast<const T*>(x), first, n, v);
      load_channels(bias, static_cast<int>(first % channels), channels, b);
      for (int i = 0; i < kVector; ++i) v[i] += b[i];
      store_at(v, x, first, n);
      for (int i = 0; i < kVector; ++i) v[i] = GeluAt{v[i]}.value();
      store_at(v, y, first, n);
    });
  }
};

// The losses of rows of logits, one block each, which become their gradient with respect to the
// mean loss in training; that of missing rows is zero.
template <typename T>
struct TokenLoss {
  T* logits;
  TokenRows batch;
  std::size_t first;  // row
  RowLosses losses;
  int classes;
  const float* loss_scale;  // on the device; null: 1
  float scale;              // 1 / tokens of the global batch
  bool trains;

  static constexpr std::size_t shared_bytes(unsigned threads) { return threads * sizeof(double); }

  template <typename Context>
  PACELINE_KERNEL void operator()(Context& c) const {
    run(c, static_cast<Packed<T>*>(nullptr));
  }
  // `kept`: shared memory for a row, behind the rest; null: the row is read again.
  template <typename Context>
  PACELINE_KERNEL void run(Context& c, Packed<T>* kept) const {
    T* row = logits + static_cast<std::size_t>(c.block()) * classes;
    float v[kVector] = {};
    if (first + c.block() >= batch.rows) {
      return over_row(c, classes,
                      [&](int begin, int count) { store_row(v, classes, count, row + begin); });
    }
    float* shared = c.template shared<float>();
    const int label = static_cast<int>(batch.label(first + c.block()));
    const float own = to_float(row[label]);
    // The sum is of exponentials relative to the largest so far.
    float mine = own, sum = 0;
    int before = 0;
    over_row(c, classes, [&](int begin, int count) {
      load_row(static_cast<const T*>(row + begin), classes, count, v);
      if (kept) kept[begin / kVector] = pack<T>(v);  // exact
      float top = mine;
      for (int i = 0; i < kVector; ++i) {
        if (i >= count) v[i] = -INFINITY;
        top = v[i] > top ? v[i] : top;
        before += i < count && stands_before(v[i], begin + i, own, label);
      }
      if (top > mine) sum *= fast_exp(mine - top);
      mine = top;
      for (int i = 0; i < kVector && top > -INFINITY; ++i) sum += fast_exp(v[i] - mine);
    });
    const float largest = block_largest(c, mine, shared);
    const float total = block_total(c, sum * expf(mine - largest), shared);
    const float ranked = block_total(c, static_cast<float>(before), shared);
    if (trains) {
      const float factor = loss_scale ? *loss_scale * scale : scale, share = factor / total;
      over_row(c, classes, [&](int begin, int count) {
        if (kept) {
          unpack(kept[begin / kVector], v);
        } else {
          load_row(static_cast<const T*>(row + begin), classes, count, v);
        }
        for (int i = 0; i < kVector; ++i) {
          v[i] = fast_exp(v[i] - largest) * share - (begin + i == label ? factor : 0);
        }
        store_row(v, classes, count, row + begin);
      });
    }
    losses.add(c, c.block(), logf(total) + largest - own, own == own ? ranked : kTop,
               reinterpret_cast<int*>(shared));
  }
};

// The same, for which a block keeps its row in shared memory instead of reading it twice.
template <typename T>
struct TokenLossKept {
  TokenLoss<T> loss;

  std::size_t shared_bytes(unsigned threads) const {
    const auto vectors = static_cast<std::size_t>((loss.classes + kVector - 1) / kVector);
    return loss.shared_bytes(threads) + vectors * sizeof(Packed<T>);
  }

  template <typename Context>
  PACELINE_KERNEL void operator()(Context& c) const {
    loss.run(c, reinterpret_cast<Packed<T>*>(c.template shared<double>() + c.threads()));
  }
};

}  // namespace paceline::cuda
