// Included once per instruction set, after product_body.h.

namespace paceline::cpu::PACELINE_ISA {

namespace {

#if defined(__AVX512F__)

void pointwise_weights(const PointwiseWeightsWork& work) {
  const auto lanes = lanes_apart(work.output_stride);
  const auto values = [&](std::size_t input, std::size_t output) {
    const float* w = work.w + input * work.input_stride + output * work.output_stride;
    Vec v;
    if (work.output_stride == 1) {
      load(w, v);
    } else {
      v = gathered(w, lanes);
    }
    return v;
  };
  for (std::size_t half = 0; half < kPointwisePanel; half += kLanes) {
    for (std::size_t i = 0; i < work.inputs; i += 2) {
      _mm512_storeu_si512(work.panel + i / 2 * kPointwisePanel + half,
                          paired(values(i, half), values(i + 1, half)));
    }
  }
}

// Sums over the rows of one tile; see PointwiseSums.
struct TileSums {
  Vec pivot[2], s[2], q[2], pivot2[2], q2[2];
};

PACELINE_INLINE void load_both(const float* p, Vec (&v)[2]) {
  load(p, v[0]);
  load(p + kLanes, v[1]);
}
PACELINE_INLINE void store_both(float* p, const Vec (&v)[2]) {
  store(p, v[0]);
  store(p + kLanes, v[1]);
}

PACELINE_INLINE void add_row(const PointwiseSums& work, std::size_t row, std::size_t output,
                             const Vec (&y)[2], TileSums& sums) {
  if (!work.x) {
    for (std::size_t h = 0; h < 2; ++h) {
      const Vec d = y[h] - sums.pivot[h];
      sums.s[h] += d;
      sums.q[h] += d * d;
    }
    return;
  }
  for (std::size_t h = 0; h < 2; ++h) {
    const std::size_t c = output + h * kLanes;
    Vec x;
    load(work.x[row] + c, x);
    const Vec g = work.signs ? masked(read_bits(work.signs[row], c, kLanes), y[h]) : y[h];
    sums.s[h] += g;
    sums.q[h] += g * (x - sums.pivot[h]);
    if (!work.x2) continue;
    load(work.x2[row] + c, x);
    sums.q2[h] += g * (x - sums.pivot2[h]);
  }
}

void pointwise_product(const PointwiseWork& work) {
  __m512 products[kPointwiseRows][2];
  LeftRows rows;
#pragma GCC unroll 8
  for (std::size_t i = 0; i < kPointwiseRows; ++i) rows.rows[i] = work.x[i];
  sum_pairs(rows, work.panel, work.pairs, work.ahead, work.ahead_lines, products);
  Vec bias[2] = {};
  if (work.bias) load_both(work.bias + work.output, bias);
  TileSums sums{};
  const PointwiseSums* wanted = work.sums;
  if (wanted) {
    load_both(wanted->pivot + work.output, sums.pivot);
    load_both(wanted->s + work.output, sums.s);
    load_both(wanted->q + work.output, sums.q);
    if (wanted->x2) {
      load_both(wanted->pivot2 + work.output, sums.pivot2);
      load_both(wanted->q2 + work.output, sums.q2);
    }
  }
#pragma GCC unroll 8
  for (std::size_t i = 0; i < kPointwiseRows; ++i) {
    if (!work.y[i]) continue;
    Bf16* to = work.y[i] + work.output;
    Vec y[2] = {reinterpret_cast<Vec>(products[i][0]) + bias[0],
                reinterpret_cast<Vec>(products[i][1]) + bias[1]};
    if (work.adds) {
      Vec before[2];
      load(to, before[0]);
      load(to + kLanes, before[1]);
      y[0] += before[0];
      y[1] += before[1];
    }
    if (work.streams) {
      _mm512_stream_si512(reinterpret_cast<__m512i*>(to), rounded(y[0], y[1]));
    } else {
      _mm512_storeu_si512(to, rounded(y[0], y[1]));
    }
    if (wanted && i < work.counted) add_row(*wanted, i, work.output, y, sums);
  }
  if (wanted) {
    store_both(wanted->s + work.output, sums.s);
    store_both(wanted->q + work.output, sums.q);
    if (wanted->x2) store_both(wanted->q2 + work.output, sums.q2);
  }
}

constexpr PointwiseKernels kPointwise = {pointwise_weights, pointwise_product};

#else

constexpr PointwiseKernels kPointwise = {};  // emulation would be slower than the library

#endif

}  // namespace

}  // namespace paceline::cpu::PACELINE_ISA
