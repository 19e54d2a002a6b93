// Included once per instruction set, after product_body.h.

namespace paceline::cpu::PACELINE_ISA {

namespace {

#if defined(__AVX512BF16__)

// Sixteen vectors as a 4x4 matrix, row by row.
typedef Vec Points[kPoints];

PACELINE_INLINE Vec even_channels(const __m512i& x) {
  return reinterpret_cast<Vec>(reinterpret_cast<WordVec>(x) << 16);
}
PACELINE_INLINE Vec odd_channels(const __m512i& x) {
  return reinterpret_cast<Vec>(reinterpret_cast<WordVec>(x) & 0xffff0000);
}
PACELINE_INLINE void transform_input(Points& d) {
#pragma GCC unroll 4
  for (std::size_t c = 0; c < 4; ++c) {
    const Vec d0 = d[c], d1 = d[4 + c], d2 = d[8 + c], d3 = d[12 + c];
    d[c] = d0 - d2;
    d[4 + c] = d1 + d2;
    d[8 + c] = d2 - d1;
    d[12 + c] = d1 - d3;
  }
#pragma GCC unroll 4
  for (std::size_t r = 0; r < kPoints; r += kPointRow) {
    const Vec d0 = d[r], d1 = d[r + 1], d2 = d[r + 2], d3 = d[r + 3];
    d[r] = d0 - d2;
    d[r + 1] = d1 + d2;
    d[r + 2] = d2 - d1;
    d[r + 3] = d1 - d3;
  }
}

void winograd_input(const WinogradInputWork& work) {
  for (std::size_t c = 0; c < work.channels; c += kWinogradBlock) {
    Points even, odd;
#pragma GCC unroll 16
    for (std::size_t i = 0; i < kPoints; ++i)
      even[i] = even_channels(load_bits(work.places[i] + c));
    transform_input(even);
#pragma GCC unroll 16
    for (std::size_t i = 0; i < kPoints; ++i) odd[i] = odd_channels(load_bits(work.places[i] + c));
    transform_input(odd);
#pragma GCC unroll 16
    for (std::size_t i = 0; i < kPoints; ++i) {
      _mm512_storeu_si512(work.points + i * work.point_stride + c, rounded(even[i], odd[i]));
    }
  }
}

// Sixteen outputs of one input.
PACELINE_INLINE void transform_weights(const WinogradWeightsWork& work, std::size_t input,
                                       std::size_t output, Points& points) {
  Vec g[9];
  const auto lanes = lanes_apart(work.filters);
#pragma GCC unroll 9
  for (std::size_t tap = 0; tap < 9; ++tap) {
    if (work.backward) {
      const float* w = work.w + ((8 - tap) * work.channels + output) * work.filters + input;
      g[tap] = gathered(w, lanes);
    } else {
      load(work.w + (tap * work.channels + input) * work.filters + output, g[tap]);
    }
  }
  Vec t[12];
#pragma GCC unroll 3
  for (std::size_t c = 0; c < 3; ++c) {
    const Vec ends = g[c] + g[6 + c];
    t[c] = g[c];
    t[3 + c] = 0.5F * (ends + g[3 + c]);
    t[6 + c] = 0.5F * (ends - g[3 + c]);
    t[9 + c] = g[6 + c];
  }
#pragma GCC unroll 4
  for (std::size_t r = 0; r < 4; ++r) {
    const Vec ends = t[3 * r] + t[3 * r + 2];
    points[4 * r] = t[3 * r];
    points[4 * r + 1] = 0.5F * (ends + t[3 * r + 1]);
    points[4 * r + 2] = 0.5F * (ends - t[3 * r + 1]);
    points[4 * r + 3] = t[3 * r + 2];
  }
}

void winograd_weights(const WinogradWeightsWork& work) {
  constexpr std::size_t kPairs = kWinogradBlock / 2;
  for (std::size_t half = 0; half < kWinogradBlock; half += kLanes) {
    for (std::size_t k = 0; k < kPairs; ++k) {
      // Places 2k and 2k + 1 in storage order: even channels, then odd ones.
      const std::size_t first = k < kPairs / 2 ? 4 * k : 4 * k - kWinogradBlock + 1;
      Points low, high;
      transform_weights(work, work.input + first, work.output + half, low);
      transform_weights(work, work.input + first + 2, work.output + half, high);
#pragma GCC unroll 16
      for (std::size_t i = 0; i < kPoints; ++i) {
        _mm512_storeu_si512(work.points + i * work.point_stride + k * kWinogradBlock + half,
                            paired(low[i], high[i]));
      }
    }
  }
}

void winograd_product(const WinogradProductWork& work) {
  __m512 sums[kWinogradRows][2];
  LeftRows rows;
#pragma GCC unroll 8
  for (std::size_t i = 0; i < kWinogradRows; ++i) rows.rows[i] = work.left + i * work.left_stride;
  sum_pairs(rows, work.right, work.pairs, nullptr, 0, sums);
#pragma GCC unroll 8
  for (std::size_t i = 0; i < kWinogradRows; ++i) {
    _mm512_storeu_ps(work.sums + i * kWinogradBlock, sums[i][0]);
    _mm512_storeu_ps(work.sums + i * kWinogradBlock + kLanes, sums[i][1]);
  }
}

PACELINE_INLINE void transform_output(const float* sums, std::size_t stride, const Vec& bias,
                                      Vec (&y)[4]) {
  Vec t[8];
#pragma GCC unroll 4
  for (std::size_t c = 0; c < 4; ++c) {
    Vec m[4];
#pragma GCC unroll 4
    for (std::size_t r = 0; r < 4; ++r) load(sums + (4 * r + c) * stride, m[r]);
    t[c] = m[0] + m[1] + m[2];
    t[4 + c] = m[1] - m[2] - m[3];
  }
#pragma GCC unroll 2
  for (std::size_t r = 0; r < 2; ++r) {
    y[2 * r] = bias + (t[4 * r] + t[4 * r + 1] + t[4 * r + 2]);
    y[2 * r + 1] = bias + (t[4 * r + 1] - t[4 * r + 2] - t[4 * r + 3]);
  }
}

void winograd_output(const WinogradOutputWork& work) {
  Vec bias[2] = {};
  if (work.bias) {
    load(work.bias, bias[0]);
    load(work.bias + kLanes, bias[1]);
  }
  Vec low[4], high[4];
  transform_output(work.sums, work.point_stride, bias[0], low);
  transform_output(work.sums + kLanes, work.point_stride, bias[1], high);
#pragma GCC unroll 4
  for (std::size_t i = 0; i < 4; ++i) {
    if (!work.places[i]) continue;
    if (work.streams) {
      _mm512_stream_si512(reinterpret_cast<__m512i*>(work.places[i]), rounded(low[i], high[i]));
    } else {
      _mm512_storeu_si512(work.places[i], rounded(low[i], high[i]));
    }
  }
}

PACELINE_INLINE Vec mixed(const WinogradPairWork& work, std::size_t tile, std::size_t column,
                          std::size_t channel) {
  Vec a, b;
  load(work.a[tile][column] + channel, a);
  load(work.b[tile][column] + channel, b);
  return work.p * a + work.q * b;
}

void winograd_input_pair(const WinogradPairWork& work) {
  for (std::size_t c = 0; c < work.channels; c += kLanes) {
    Vec points[2][kPointRow];
#pragma GCC unroll 2
    for (std::size_t tile = 0; tile < 2; ++tile) {
      const Vec t0 = mixed(work, tile, 0, c), t1 = mixed(work, tile, 1, c);
      const Vec t2 = mixed(work, tile, 2, c), t3 = mixed(work, tile, 3, c);
      points[tile][0] = t0 - t2;
      points[tile][1] = t1 + t2;
      points[tile][2] = t2 - t1;
      points[tile][3] = t1 - t3;
    }
    std::uint32_t* to = work.panels + c / kLeftPanel * work.panel_stride;
#pragma GCC unroll 4
    for (std::size_t j = 0; j < kPointRow; ++j, to += work.point_stride) {
      const __m512i words = paired(points[0][j], points[1][j]);
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to),
                          _mm512_maskz_extracti64x4_epi64(0xf, words, 0));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + work.panel_stride),
                          _mm512_maskz_extracti64x4_epi64(0xf, words, 1));
    }
  }
}

void winograd_gradient_pair(const WinogradPairWork& work) {
  for (std::size_t c = 0; c < work.channels; c += kLanes) {
    Vec points[2][kPointRow];
#pragma GCC unroll 2
    for (std::size_t tile = 0; tile < 2; ++tile) {
      const Vec t0 = mixed(work, tile, 0, c), t1 = mixed(work, tile, 1, c);
      points[tile][0] = t0;
      points[tile][1] = t0 + t1;
      points[tile][2] = t0 - t1;
      points[tile][3] = -t1;
    }
    std::uint32_t* to = work.panels + c / kRightPanel * work.panel_stride + c % kRightPanel;
#pragma GCC unroll 4
    for (std::size_t j = 0; j < kPointRow; ++j, to += work.point_stride) {
      _mm512_storeu_si512(to, paired(points[0][j], points[1][j]));
    }
  }
}

void winograd_gradient(const WinogradGradientWork& work) {
  for (std::size_t f = 0; f < work.filters; f += kLanes) {
    Points p;
#pragma GCC unroll 16
    for (std::size_t i = 0; i < kPoints; ++i) load(work.sums + i * work.point_stride + f, p[i]);
    for (std::size_t part = 1; part < work.parts; ++part) {
#pragma GCC unroll 16
      for (std::size_t i = 0; i < kPoints; ++i) {
        Vec more;
        load(work.sums + part * work.part_stride + i * work.point_stride + f, more);
        p[i] += more;
      }
    }
    Vec t[12];
#pragma GCC unroll 4
    for (std::size_t c = 0; c < 4; ++c) {
      const Vec middle = 0.5F * (p[4 + c] + p[8 + c]);
      t[c] = p[c] + middle;
      t[4 + c] = 0.5F * (p[4 + c] - p[8 + c]);
      t[8 + c] = middle + p[12 + c];
    }
#pragma GCC unroll 3
    for (std::size_t r = 0; r < 3; ++r) {
      const Vec middle = 0.5F * (t[4 * r + 1] + t[4 * r + 2]);
      float* dw = work.dw + 3 * r * work.tap_stride + f;
      store(dw, t[4 * r] + middle);
      store(dw + work.tap_stride, 0.5F * (t[4 * r + 1] - t[4 * r + 2]));
      store(dw + 2 * work.tap_stride, middle + t[4 * r + 3]);
    }
  }
}

constexpr WinogradKernels kWinograd = {
    winograd_input,      winograd_weights,       winograd_product, winograd_output,
    winograd_input_pair, winograd_gradient_pair, winograd_gradient};

#else

constexpr WinogradKernels kWinograd = {};  // F(4x4, 3x3) in fp32 has fewer products

#endif

}  // namespace

}  // namespace paceline::cpu::PACELINE_ISA
