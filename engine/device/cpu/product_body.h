// Included once per instruction set, after lanes_body.h.

namespace paceline::cpu::PACELINE_ISA {

namespace {

#if defined(__AVX512F__)

constexpr std::size_t kWords = 16;  // of a vector

// Interleaves the two halves of a vector.
alignas(64) constexpr std::uint16_t kSideBySide[32] = {0,  16, 1,  17, 2,  18, 3,  19, 4,  20, 5,
                                                       21, 6,  22, 7,  23, 8,  24, 9,  25, 10, 26,
                                                       11, 27, 12, 28, 13, 29, 14, 30, 15, 31};

PACELINE_INLINE __m512i load_bits(const void* p) {
  return _mm512_loadu_si512(p);
}
// Rounds sixteen values to bf16, then sixteen more.
PACELINE_INLINE __m512i rounded(const Vec& first, const Vec& second) {
#if defined(__AVX512BF16__)
  return reinterpret_cast<__m512i>(
      _mm512_cvtne2ps_pbh(reinterpret_cast<__m512>(second), reinterpret_cast<__m512>(first)));
#else
  alignas(64) static constexpr std::uint16_t kUpperHalves[32] = {
      1,  3,  5,  7,  9,  11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31,
      33, 35, 37, 39, 41, 43, 45, 47, 49, 51, 53, 55, 57, 59, 61, 63};
  return _mm512_permutex2var_epi16(reinterpret_cast<__m512i>(rounded_words(first)),
                                   _mm512_load_si512(kUpperHalves),
                                   reinterpret_cast<__m512i>(rounded_words(second)));
#endif
}
// The same interleaved: one word per lane, with `low` in its lower half.
PACELINE_INLINE __m512i paired(const Vec& low, const Vec& high) {
  return _mm512_maskz_permutexvar_epi16(~__mmask32{0}, _mm512_load_si512(kSideBySide),
                                        rounded(low, high));
}

// Sixteen floats with a distance of `stride`.
PACELINE_INLINE __m512i lanes_apart(std::size_t stride) {
  constexpr IntVec kLane = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  return reinterpret_cast<__m512i>(kLane * static_cast<std::int32_t>(stride));
}
PACELINE_INLINE Vec gathered(const float* p, const __m512i& lanes) {
  return reinterpret_cast<Vec>(
      _mm512_mask_i32gather_ps(_mm512_setzero_ps(), 0xffff, lanes, p, sizeof *p));
}

// Pairs the lower (upper) halves of two rows of 32 columns.
alignas(64) constexpr std::uint16_t kLowPairs[32] = {0,  32, 1,  33, 2,  34, 3,  35, 4,  36, 5,
                                                     37, 6,  38, 7,  39, 8,  40, 9,  41, 10, 42,
                                                     11, 43, 12, 44, 13, 45, 14, 46, 15, 47};
alignas(64) constexpr std::uint16_t kHighPairs[32] = {16, 48, 17, 49, 18, 50, 19, 51, 20, 52, 21,
                                                      53, 22, 54, 23, 55, 24, 56, 25, 57, 26, 58,
                                                      27, 59, 28, 60, 29, 61, 30, 62, 31, 63};

// Columns [c, c + 32) of two places as two vectors of pairs.
PACELINE_INLINE void pair_up(const Bf16* a, const Bf16* b, std::size_t columns, __m512i& low,
                             __m512i& high) {
  const __mmask32 wanted = columns >= 32 ? ~__mmask32{0} : (__mmask32{1} << columns) - 1;
  const __m512i x = _mm512_maskz_loadu_epi16(wanted, a);
  const __m512i y = b ? _mm512_maskz_loadu_epi16(wanted, b) : _mm512_setzero_si512();
  low = _mm512_permutex2var_epi16(x, _mm512_load_si512(kLowPairs), y);
  high = _mm512_permutex2var_epi16(x, _mm512_load_si512(kHighPairs), y);
}

// Prefetch distance in elements. The hardware prefetcher does not recognise these loads as a
// stream: without prefetching, packing reaches an eighth of the memory bandwidth.
constexpr std::size_t kAhead = 4096;

template <typename Store>
PACELINE_INLINE void for_each_pair(const PackWork& work, Store store) {
  for (std::size_t k = 0; 2 * k < work.places; ++k) {
    const Bf16* a = work.row + 2 * k * work.step;
    const Bf16* b = 2 * k + 1 < work.places ? a + work.step : nullptr;
    for (std::size_t c = 0; c < work.columns; c += 32) {
      _mm_prefetch(reinterpret_cast<const char*>(a + c + kAhead), _MM_HINT_T0);
      _mm_prefetch(reinterpret_cast<const char*>(a + work.step + c + kAhead), _MM_HINT_T0);
      __m512i low, high;
      pair_up(a + c, b ? b + c : nullptr, work.columns - c, low, high);
      store(k, c, low, high);
    }
  }
}

void pack_left(const PackWork& work) {
  for_each_pair(work, [&](std::size_t k, std::size_t c, const __m512i& low, const __m512i& high) {
    std::uint32_t* to = work.panels + c / kLeftPanel * work.panel_stride + k * kLeftPanel;
    const __m256i parts[4] = {_mm512_maskz_extracti64x4_epi64(0xf, low, 0),
                              _mm512_maskz_extracti64x4_epi64(0xf, low, 1),
                              _mm512_maskz_extracti64x4_epi64(0xf, high, 0),
                              _mm512_maskz_extracti64x4_epi64(0xf, high, 1)};
    for (std::size_t q = 0; q < 4 && c + q * kLeftPanel < work.columns; ++q) {
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + q * work.panel_stride), parts[q]);
    }
  });
}

void pack_right(const PackWork& work) {
  for_each_pair(work, [&](std::size_t k, std::size_t c, const __m512i& low, const __m512i& high) {
    std::uint32_t* to = work.panels + c / kRightPanel * work.panel_stride + k * kRightPanel;
    _mm512_storeu_si512(to, low);
    _mm512_storeu_si512(to + kWords, high);
  });
}

// The left operand of a tile: the words of 8 rows side by side, pair after pair (a panel), or each
// row by itself. A step is the words of 16 pairs, which step() loads as 8 vectors; place() is where
// a row's pair is in them. The last step of a panel may end in the panel behind it (a left one, or
// the right ones): values of pairs that no sum uses.
constexpr std::size_t kPairRows = 8, kStep = 16;
static_assert(kPairRows == kLeftPanel && kPairRows == kPointwiseRows);

struct LeftPanel {
  const std::uint32_t* words;

  PACELINE_INLINE int word(std::size_t row, std::size_t pair) const {
    return static_cast<int>(words[pair * kPairRows + row]);
  }
  static constexpr std::size_t place(std::size_t row, std::size_t pair) {
    return pair * kPairRows + row;
  }
  PACELINE_INLINE __m512i step(std::size_t first, std::size_t vector) const {
    return load_bits(words + first * kPairRows + vector * kWords);
  }
};

struct LeftRows {
  const Bf16* rows[kPairRows];

  PACELINE_INLINE int word(std::size_t row, std::size_t pair) const {
    int word;
    __builtin_memcpy(&word, rows[row] + 2 * pair, sizeof word);
    return word;
  }
  static constexpr std::size_t place(std::size_t row, std::size_t pair) {
    return row * kStep + pair;
  }
  PACELINE_INLINE __m512i step(std::size_t first, std::size_t vector) const {
    return load_bits(rows[vector] + 2 * first);
  }
};

// The values of words as fp32, of the lower and of the upper halves.
PACELINE_INLINE __m512 lower_halves(const __m512i& words) {
  return reinterpret_cast<__m512>(reinterpret_cast<WordVec>(words) << 16);
}
PACELINE_INLINE __m512 upper_halves(const __m512i& words) {
  return reinterpret_cast<__m512>(reinterpret_cast<WordVec>(words) & 0xffff0000);
}

// Sets the sums over pairs of a tile of 8 rows and 32 columns; prefetches a line a pair meanwhile.
template <typename Left>
PACELINE_INLINE void sum_pairs(const Left& left, const std::uint32_t* right, std::size_t pairs,
                               const std::byte* ahead, std::size_t lines,
                               __m512 (&sums)[kPairRows][2]) {
#pragma GCC unroll 8
  for (std::size_t i = 0; i < kPairRows; ++i) sums[i][0] = sums[i][1] = _mm512_setzero_ps();
  const auto* line = reinterpret_cast<const char*>(ahead);
#if defined(__AVX512BF16__)
  const auto add_pair = [&](std::size_t k) __attribute__((always_inline)) {
    const auto low = reinterpret_cast<__m512bh>(load_bits(right));
    const auto high = reinterpret_cast<__m512bh>(load_bits(right + kWords));
    right += 2 * kWords;
#pragma GCC unroll 8
    for (std::size_t i = 0; i < kPairRows; ++i) {
      const auto value = reinterpret_cast<__m512bh>(_mm512_set1_epi32(left.word(i, k)));
      sums[i][0] = _mm512_dpbf16_ps(sums[i][0], value, low);
      sums[i][1] = _mm512_dpbf16_ps(sums[i][1], value, high);
    }
  };
  const std::size_t fetching = lines < pairs ? lines : pairs;
  for (std::size_t k = 0; k < fetching; ++k, line += 64) {
    _mm_prefetch(line, _MM_HINT_T1);
    add_pair(k);
  }
  for (std::size_t k = fetching; k < pairs; ++k) add_pair(k);
#else
  // The rows are widened once a step, to memory: an instruction then broadcasts a value without a
  // shift, which would cost as much as a product.
  alignas(64) float low[kPairRows * kStep], high[kPairRows * kStep];
  for (std::size_t first = 0; first < pairs; first += kStep) {
    const std::size_t count = pairs - first < kStep ? pairs - first : kStep;
#pragma GCC unroll 8
    for (std::size_t v = 0; v < kPairRows; ++v) {
      const __m512i words = left.step(first, v);
      _mm512_store_ps(low + v * kWords, lower_halves(words));
      _mm512_store_ps(high + v * kWords, upper_halves(words));
    }
    for (std::size_t k = 0; k < count; ++k, right += 2 * kWords) {
      if (first + k < lines) _mm_prefetch(line + 64 * (first + k), _MM_HINT_T1);
      const __m512i words0 = load_bits(right), words1 = load_bits(right + kWords);
      const __m512 low0 = lower_halves(words0), low1 = lower_halves(words1);
      const __m512 high0 = upper_halves(words0), high1 = upper_halves(words1);
#pragma GCC unroll 8
      for (std::size_t i = 0; i < kPairRows; ++i) {
        const __m512 a = _mm512_set1_ps(low[Left::place(i, k)]);
        const __m512 b = _mm512_set1_ps(high[Left::place(i, k)]);
        sums[i][0] = _mm512_fmadd_ps(a, low0, sums[i][0]);
        sums[i][1] = _mm512_fmadd_ps(a, low1, sums[i][1]);
        sums[i][0] = _mm512_fmadd_ps(b, high0, sums[i][0]);
        sums[i][1] = _mm512_fmadd_ps(b, high1, sums[i][1]);
      }
    }
  }
#endif
}

void tile(const TileWork& work) {
  __m512 sums[kPairRows][2];
  sum_pairs(LeftPanel{work.left}, work.right, work.pairs, work.ahead, work.ahead_lines, sums);
#pragma GCC unroll 8
  for (std::size_t i = 0; i < kLeftPanel; ++i) {
    if (i >= work.rows) break;
    float* row = work.c + i * work.row_stride;
    for (std::size_t half = 0; half < 2; ++half) {
      const __m512 before = work.adds ? _mm512_loadu_ps(row + half * kWords) : _mm512_setzero_ps();
      _mm512_storeu_ps(row + half * kWords, _mm512_add_ps(before, sums[i][half]));
    }
  }
}

#if defined(__AVX512BF16__)

double multiply_add_pairs(std::size_t rounds) {
  constexpr std::size_t kSums = 16;  // enough to hide the latency of two units
  Vec sums[kSums];
  for (std::size_t k = 0; k < kSums; ++k) sums[k] = Vec{} + static_cast<float>(k);
  const __m512i ones = _mm512_set1_epi16(0x3f80);
  for (std::size_t i = 0; i < rounds; ++i) {
    for (Vec& sum : sums) {
      sum = reinterpret_cast<Vec>(_mm512_dpbf16_ps(reinterpret_cast<__m512>(sum),
                                                   reinterpret_cast<__m512bh>(ones),
                                                   reinterpret_cast<__m512bh>(ones)));
    }
  }
  float keep[kLanes];
  for (const Vec& sum : sums) {
    store(keep, sum);
    asm volatile("" : : "r"(keep) : "memory");  // keeps the sums from being optimized away
  }
  return 4.0 * kSums * kLanes * static_cast<double>(rounds);
}

constexpr ProductKernels kProduct = {pack_left, pack_right, tile, multiply_add_pairs};
constexpr Bf16Products kBf16Products = Bf16Products::pairs;

#else

constexpr ProductKernels kProduct = {pack_left, pack_right, tile};
constexpr Bf16Products kBf16Products = Bf16Products::widened;

#endif

#else

constexpr ProductKernels kProduct = {};  // emulation would be slower than the library
constexpr Bf16Products kBf16Products = Bf16Products::none;

#endif

}  // namespace

}  // namespace paceline::cpu::PACELINE_ISA
