// The loops of networks of tokens. Included once per instruction set, after lanes_body.h.

namespace paceline::cpu::PACELINE_ISA {

namespace {

PACELINE_INLINE float lane_total(const Vec& v) {
  float lanes[kLanes], sum = 0;
  store(lanes, v);
  for (std::size_t l = 0; l < kLanes; ++l) sum += lanes[l];
  return sum;
}

// exp(x) = 2^n exp(r), |r| <= log(2) / 2: n by rounding, log(2) in two parts, and a polynomial (the
// coefficients of Cephes' expf). Within two units in the last place; 0 and infinity at the ends.
PACELINE_INLINE Vec exponential(const Vec& x) {
  constexpr float kMagic = 12582912.0F;  // 1.5 x 2^23: adding it rounds to a whole number
  constexpr float kLow = -87.3F, kHigh = 88.37F;
  Vec in = x < kLow ? Vec{} + kLow : x;
  in = in > kHigh ? Vec{} + kHigh : in;
  const Vec shifted = in * 1.44269504F + kMagic;
  const Vec n = shifted - kMagic;
  const Vec r = (in - n * 0.693359375F) - n * -2.12194440e-4F;
  Vec p = r * 1.9875691500e-4F + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  p = p * (r * r) + r + 1.0F;
  const WordVec power = (reinterpret_cast<WordVec>(shifted) + 127) << 23;
  return x < kLow ? Vec{} : p * reinterpret_cast<Vec>(power);
}

// tanh form: y = 0.5 x (1 + tanh(u)) = x / (1 + exp(-2 u)), u = sqrt(2 / pi) (x + 0.044715 x^3).
constexpr float kGeluScale = 0.7978845608F, kGeluCube = 0.044715F;

PACELINE_INLINE Vec gelu_share(const Vec& x) {
  const Vec u = x * (kGeluScale + kGeluScale * kGeluCube * x * x);
  return 1.0F / (1.0F + exponential(-2.0F * u));
}

template <typename T>
void gelu(const T* x, T* y, std::size_t count) {
  for_each_vector(count, [&](std::size_t i, std::size_t n, auto whole) {
    const Vec in = take<whole>(x + i, n);
    give<whole>(y + i, n, in * gelu_share(in));
  });
}

// With s = the share: dy/dx = s + 2 x s (1 - s) du/dx.
template <typename T>
void gelu_backward(const T* x, const T* dy, T* dx, std::size_t count, bool adds) {
  for_each_vector(count, [&](std::size_t i, std::size_t n, auto whole) {
    const Vec in = take<whole>(x + i, n);
    const Vec share = gelu_share(in);
    const Vec slope = kGeluScale + 3 * kGeluScale * kGeluCube * in * in;
    Vec out = take<whole>(dy + i, n) * (share + 2.0F * in * share * (1.0F - share) * slope);
    if (adds) out += take<whole>(dx + i, n);
    give<whole>(dx + i, n, out);
  });
}

template <typename T>
void embed(const float* token, const float* position, T* y, std::size_t count) {
  for_each_vector(count, [&](std::size_t i, std::size_t n, auto whole) {
    give<whole>(y + i, n, take<whole>(token + i, n) + take<whole>(position + i, n));
  });
}

template <typename T>
void add_row(const T* x, float* sum, std::size_t count) {
  for_each_vector(count, [&](std::size_t i, std::size_t n, auto whole) {
    give<whole>(sum + i, n, take<whole>(sum + i, n) + take<whole>(x + i, n));
  });
}

template <typename T>
void add_bias(T* y, const float* bias, std::size_t rows, std::size_t columns) {
  for (std::size_t r = 0; r < rows; ++r, y += columns) {
    for_each_vector(columns, [&](std::size_t i, std::size_t n, auto whole) {
      give<whole>(y + i, n, take<whole>(y + i, n) + take<whole>(bias + i, n));
    });
  }
}

template <typename From, typename To>
void convert(const From* x, To* y, std::size_t count) {
  for_each_vector(count, [&](std::size_t i, std::size_t n, auto whole) {
    give<whole>(y + i, n, take<whole>(x + i, n));
  });
}

// The sum of a row. Terms of lanes behind its end are zero.
template <typename Term>
PACELINE_INLINE float row_sum(std::size_t channels, Term term) {
  Vec sum{};
  for_each_vector(channels,
                  [&](std::size_t c, std::size_t n, auto whole) { sum += term(c, n, whole); });
  return lane_total(sum);
}

// The first n lanes; the others zero.
template <bool Whole>
PACELINE_INLINE Vec first_lanes(const Vec& v, std::size_t n) {
  if constexpr (Whole) {
    return v;
  } else {
    return masked(static_cast<std::uint16_t>((1U << n) - 1), v);
  }
}

// The largest of `count` values, one of which is `known`.
PACELINE_INLINE float row_largest(const float* row, std::size_t count, float known) {
  Vec above{};
  for_each_vector(count, [&](std::size_t c, std::size_t n, auto whole) {
    const Vec v = first_lanes<whole>(take<whole>(row + c, n) - known, n);
    above = v > above ? v : above;
  });
  float lanes[kLanes], most = 0;
  store(lanes, above);
  for (std::size_t l = 0; l < kLanes; ++l) most = lanes[l] > most ? lanes[l] : most;
  return known + most;
}

template <typename T>
void layer_norm(const LayerNormWork<T>& work) {
  const auto n = static_cast<float>(work.channels);
  for (std::size_t r = 0; r < work.rows; ++r) {
    const T* x = work.x + r * work.channels;
    T* y = work.y + r * work.channels;
    const float mean = row_sum(work.channels, [&](std::size_t c, std::size_t k,
                                                  auto whole) { return take<whole>(x + c, k); }) /
                       n;
    const float variance = row_sum(work.channels,
                                   [&](std::size_t c, std::size_t k, auto whole) {
                                     const Vec d =
                                         first_lanes<whole>(take<whole>(x + c, k) - mean, k);
                                     return d * d;
                                   }) /
                           n;
    const float scale = 1 / __builtin_sqrtf(variance + work.epsilon);
    for_each_vector(work.channels, [&](std::size_t c, std::size_t k, auto whole) {
      const Vec normal = (take<whole>(x + c, k) - mean) * scale;
      give<whole>(y + c, k,
                  normal * take<whole>(work.gamma + c, k) + take<whole>(work.beta + c, k));
    });
    work.sums[2 * r] = mean;
    work.sums[2 * r + 1] = scale;
  }
}

template <typename T>
void layer_norm_backward(const LayerNormBackwardWork<T>& work) {
  const auto n = static_cast<float>(work.channels);
  for (std::size_t r = 0; r < work.rows; ++r) {
    const T *x = work.x + r * work.channels, *dy = work.dy + r * work.channels;
    T* dx = work.dx + r * work.channels;
    const float mean = work.sums[2 * r], scale = work.sums[2 * r + 1];
    Vec sum{}, projection{};
    for_each_vector(work.channels, [&](std::size_t c, std::size_t k, auto whole) {
      const Vec normal = (take<whole>(x + c, k) - mean) * scale, g = take<whole>(dy + c, k);
      give<whole>(work.dbeta + c, k, take<whole>(work.dbeta + c, k) + g);
      give<whole>(work.dgamma + c, k, take<whole>(work.dgamma + c, k) + g * normal);
      const Vec weighted = g * take<whole>(work.gamma + c, k);
      sum += weighted;
      projection += weighted * normal;
    });
    const float offset = lane_total(sum) / n, slope = lane_total(projection) / n;
    for_each_vector(work.channels, [&](std::size_t c, std::size_t k, auto whole) {
      const Vec normal = (take<whole>(x + c, k) - mean) * scale;
      const Vec weighted = take<whole>(dy + c, k) * take<whole>(work.gamma + c, k);
      Vec out = scale * (weighted - offset - normal * slope);
      if (work.adds_dx) out += take<whole>(dx + c, k);
      give<whole>(dx + c, k, out);
    });
  }
}

// Products of small matrices that stay in the caches:
//
//   c[i][j] (+)= sum over l of a[i a_row + l a_step] b[l b_row + j],  i < m, j < n, l < k
//
// n is a multiple of 16. A tile is held in registers.
struct SmallProduct {
  const float* a;
  std::size_t a_row, a_step;
  const float* b;
  std::size_t b_row;
  float* c;
  std::size_t c_row, m, n, k;
  bool adds = false;
};

#if defined(__AVX512F__)
constexpr std::size_t kTileRows = 6, kTileVectors = 4;
#else
constexpr std::size_t kTileRows = 4, kTileVectors = 1;
#endif

template <std::size_t Vectors>
PACELINE_INLINE void product_tile(const SmallProduct& p, std::size_t i, std::size_t j) {
  const std::size_t rows = p.m - i < kTileRows ? p.m - i : kTileRows;
  const float* a[kTileRows];
  for (std::size_t r = 0; r < kTileRows; ++r) a[r] = p.a + (i + (r < rows ? r : 0)) * p.a_row;
  Vec sums[kTileRows][Vectors] = {};
  const float* b = p.b + j;
  for (std::size_t l = 0; l < p.k; ++l, b += p.b_row) {
    Vec column[Vectors];
#pragma GCC unroll 4
    for (std::size_t v = 0; v < Vectors; ++v) load(b + v * kLanes, column[v]);
#pragma GCC unroll 6
    for (std::size_t r = 0; r < kTileRows; ++r) {
      const float factor = a[r][l * p.a_step];
#pragma GCC unroll 4
      for (std::size_t v = 0; v < Vectors; ++v) sums[r][v] += factor * column[v];
    }
  }
#pragma GCC unroll 6
  for (std::size_t r = 0; r < kTileRows; ++r) {
    if (r >= rows) return;
#pragma GCC unroll 4
    for (std::size_t v = 0; v < Vectors; ++v) {
      float* to = p.c + (i + r) * p.c_row + j + v * kLanes;
      Vec out = sums[r][v];
      if (p.adds) {
        Vec before;
        load(to, before);
        out += before;
      }
      store(to, out);
    }
  }
}

void multiply(const SmallProduct& p) {
  for (std::size_t i = 0; i < p.m; i += kTileRows) {
    std::size_t j = 0;
    for (; j + kTileVectors * kLanes <= p.n; j += kTileVectors * kLanes) {
      product_tile<kTileVectors>(p, i, j);
    }
    for (; j < p.n; j += kLanes) product_tile<1>(p, i, j);
  }
}

PACELINE_INLINE std::size_t whole_vectors(std::size_t count) {
  return (count + kLanes - 1) / kLanes * kLanes;
}

template <typename T>
void copy_rows(const T* rows, std::size_t count, std::size_t stride, std::size_t width, float* to) {
  for (std::size_t j = 0; j < count; ++j) {
    for_each_vector(width, [&](std::size_t d, std::size_t n, auto whole) {
      give<whole>(to + j * width + d, n, take<whole>(rows + j * stride + d, n));
    });
  }
}

template <typename T>
void give_rows(const float* rows, std::size_t count, std::size_t width, T* to, std::size_t stride) {
  for (std::size_t j = 0; j < count; ++j) convert(rows + j * width, to + j * stride, width);
}

// Row j becomes column j; columns behind the last row are zero.
void transpose(const float* rows, std::size_t count, std::size_t width, float* to,
               std::size_t to_row) {
  for (std::size_t d = 0; d < width; ++d) {
    float* line = to + d * to_row;
    for (std::size_t j = 0; j < count; ++j) line[j] = rows[j * width + d];
    for (std::size_t j = count; j < to_row; ++j) line[j] = 0;
  }
}

// In place: scores of query i become exp(scale score - sum), and 0 for later keys.
PACELINE_INLINE void weigh(float* scores, std::size_t i, std::size_t columns, float scale,
                           float sum) {
  for (std::size_t j = 0; j < columns; j += kLanes) {
    Vec v;
    load(scores + j, v);
    v = exponential(v * scale - sum);
    if (j > i) {
      v = Vec{};
    } else if (j + kLanes > i + 1) {
      v = masked(static_cast<std::uint16_t>((1U << (i + 1 - j)) - 1), v);
    }
    store(scores + j, v);
  }
}

template <typename T>
void attention(const AttentionWork<T>& work) {
  const std::size_t width = work.width, padded = whole_vectors(work.places);
  float* keys = work.scratch;
  float* scores = keys + width * padded;
  float* values = scores + kAttentionRows * padded;
  float* q = values + work.places * width;
  float* mixed = q + kAttentionRows * width;
  copy_rows(work.k, work.places, work.stride, width, values);
  transpose(values, work.places, width, keys, padded);
  copy_rows(work.v, work.places, work.stride, width, values);
  for (std::size_t first = 0; first < work.places; first += kAttentionRows) {
    const std::size_t left = work.places - first;
    const std::size_t rows = left < kAttentionRows ? left : kAttentionRows;
    const std::size_t seen = first + rows, columns = whole_vectors(seen);
    copy_rows(work.q + first * work.stride, rows, work.stride, width, q);
    multiply({q, width, 1, keys, padded, scores, padded, rows, columns, width});
    for (std::size_t r = 0; r < rows; ++r) {
      float* row = scores + r * padded;
      const std::size_t i = first + r;
      const float largest = work.scale * row_largest(row, i + 1, row[0]);
      weigh(row, i, columns, work.scale, largest);
      const float total = row_sum(columns, [&](std::size_t c, std::size_t k, auto whole) {
        return take<whole>(row + c, k);
      });
      const float share = 1 / total;
      for (std::size_t j = 0; j < columns; ++j) row[j] *= share;
      work.sums[i * work.sums_stride] = largest + __builtin_logf(total);
    }
    multiply({scores, padded, 1, values, width, mixed, width, rows, width, seen});
    give_rows(mixed, rows, width, work.y + first * work.out_stride, work.out_stride);
  }
}

// With p the weights: dv_j = sum_i p dy_i; dscore = p (dy_i v_j - dy_i y_i); dq_i = sum_j dscore
// k_j; dk_j = sum_i dscore q_i.
template <typename T>
void attention_backward(const AttentionBackwardWork<T>& work) {
  const AttentionWork<T>& f = work.forward;
  const std::size_t width = f.width, padded = whole_vectors(f.places), all = f.places * width;
  float* keys_across = f.scratch;
  float* values_across = keys_across + width * padded;
  float* weights = values_across + width * padded;
  float* slopes = weights + kAttentionRows * padded;
  float* keys = slopes + kAttentionRows * padded;
  float* dk = keys + all;
  float* dv = dk + all;
  float* q = dv + all;
  float* dy = q + kAttentionRows * width;
  float* dq = dy + kAttentionRows * width;
  copy_rows(f.v, f.places, f.stride, width, keys);
  transpose(keys, f.places, width, values_across, padded);
  copy_rows(f.k, f.places, f.stride, width, keys);
  transpose(keys, f.places, width, keys_across, padded);
  for (std::size_t i = 0; i < 2 * all; ++i) dk[i] = 0;
  for (std::size_t first = 0; first < f.places; first += kAttentionRows) {
    const std::size_t left = f.places - first;
    const std::size_t rows = left < kAttentionRows ? left : kAttentionRows;
    const std::size_t seen = first + rows, columns = whole_vectors(seen);
    copy_rows(f.q + first * f.stride, rows, f.stride, width, q);
    copy_rows(work.dy + first * f.out_stride, rows, f.out_stride, width, dy);
    multiply({q, width, 1, keys_across, padded, weights, padded, rows, columns, width});
    multiply({dy, width, 1, values_across, padded, slopes, padded, rows, columns, width});
    for (std::size_t r = 0; r < rows; ++r) {
      const std::size_t i = first + r;
      float *p = weights + r * padded, *s = slopes + r * padded;
      weigh(p, i, columns, f.scale, f.sums[i * f.sums_stride]);
      const float common = row_sum(width, [&](std::size_t d, std::size_t k, auto whole) {
        return take<whole>(dy + r * width + d, k) * take<whole>(f.y + i * f.out_stride + d, k);
      });
      for (std::size_t j = 0; j < columns; ++j) s[j] = f.scale * p[j] * (s[j] - common);
    }
    multiply({weights, 1, padded, dy, width, dv, width, seen, width, rows, true});
    multiply({slopes, 1, padded, q, width, dk, width, seen, width, rows, true});
    multiply({slopes, padded, 1, keys, width, dq, width, rows, width, seen});
    give_rows(dq, rows, width, work.dq + first * f.stride, f.stride);
  }
  give_rows(dk, f.places, width, work.dk, f.stride);
  give_rows(dv, f.places, width, work.dv, f.stride);
}

TokenLoss token_loss(float* logits, std::size_t classes, std::size_t label, float scale,
                     bool gradient) {
  const float own = logits[label], largest = row_largest(logits, classes, own);
  TokenLoss loss;
  const float total = row_sum(classes, [&](std::size_t c, std::size_t n, auto whole) {
    const Vec v = take<whole>(logits + c, n);
    return first_lanes<whole>(exponential(v - largest), n);
  });
  for (std::size_t c = 0; c < classes; ++c) {
    loss.before += logits[c] > own || (logits[c] == own && c < label);
  }
  const float sum = largest + __builtin_logf(total);
  loss.loss = static_cast<double>(sum) - static_cast<double>(own);
  loss.is_number = own == own;
  if (!gradient) return loss;
  for_each_vector(classes, [&](std::size_t c, std::size_t n, auto whole) {
    give<whole>(logits + c, n, exponential(take<whole>(logits + c, n) - sum) * scale);
  });
  logits[label] -= scale;
  return loss;
}

template <typename T>
constexpr TokenKernels<T> kTokens = {
    gelu<T>,           gelu_backward<T>,     embed<T>,
    add_row<T>,        add_bias<T>,          convert<float, T>,
    convert<T, float>, layer_norm<T>,        layer_norm_backward<T>,
    attention<T>,      attention_backward<T>};

}  // namespace

}  // namespace paceline::cpu::PACELINE_ISA
