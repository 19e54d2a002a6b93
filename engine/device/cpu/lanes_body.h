// Vectors of floats, and the two types they are loaded from. Included once per instruction set,
// before the loops; intentionally without include guard.

namespace paceline::cpu::PACELINE_ISA {

namespace {

// A register's: GCC keeps wider vectors in memory, and compares and chooses lane by lane there.
#if defined(__AVX512F__)
constexpr std::size_t kLanes = 16;
#elif defined(__AVX2__)
constexpr std::size_t kLanes = 8;
#else
constexpr std::size_t kLanes = 4;
#endif
typedef float Vec __attribute__((vector_size(kLanes * sizeof(float))));
typedef std::int32_t IntVec __attribute__((vector_size(kLanes * sizeof(float))));
typedef std::uint32_t WordVec __attribute__((vector_size(kLanes * sizeof(float))));

#define PACELINE_INLINE inline __attribute__((always_inline))

PACELINE_INLINE void load(const float* p, Vec& v) {
  __builtin_memcpy(&v, p, sizeof v);
}
PACELINE_INLINE void store(float* p, const Vec& v) {
  __builtin_memcpy(p, &v, sizeof v);
}

PACELINE_INLINE void load(const Bf16* p, Vec& v) {
#if defined(__AVX512F__)
  const __m256i half = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  // The masked form: GCC 12 warns about an undefined operand of the other one.
  const WordVec words = reinterpret_cast<WordVec>(_mm512_maskz_cvtepu16_epi32(0xffff, half));
  v = reinterpret_cast<Vec>(words << 16);
#else
  std::uint32_t words[kLanes];
  for (std::size_t l = 0; l < kLanes; ++l) words[l] = std::uint32_t{p[l].bits} << 16;
  __builtin_memcpy(&v, words, sizeof v);
#endif
}

// Values rounded to bf16, nearest even, in the upper halves of words.
PACELINE_INLINE WordVec rounded_words(const Vec& v) {
  const WordVec words = reinterpret_cast<WordVec>(v);
  const WordVec nan = reinterpret_cast<WordVec>(v != v);
  return (nan & 0x7fc00000) | (~nan & (words + 0x7fff + ((words >> 16) & 1)));
}

#if defined(__AVX512F__)
PACELINE_INLINE __m256i to_bf16(const Vec& v) {
#if defined(__AVX512BF16__)
  return reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(reinterpret_cast<__m512>(v)));
#else
  // The masked form: GCC 12 warns about an undefined operand of the other one.
  return _mm512_maskz_cvtepi32_epi16(0xffff, reinterpret_cast<__m512i>(rounded_words(v) >> 16));
#endif
}
#endif

PACELINE_INLINE void store(Bf16* p, const Vec& v) {
#if defined(__AVX512F__)
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), to_bf16(v));
#else
  const WordVec words = rounded_words(v) >> 16;
  std::uint32_t lanes[kLanes];
  __builtin_memcpy(lanes, &words, sizeof lanes);
  for (std::size_t l = 0; l < kLanes; ++l) p[l].bits = static_cast<std::uint16_t>(lanes[l]);
#endif
}

// Writes past the caches: for planes that leave the caches before they are read again. `p` is
// aligned to the vector. The line is not read first. Other threads see the value after a locked
// instruction of this thread, such as in a barrier or a mutex.
PACELINE_INLINE void store_past_caches(float* p, const Vec& v) {
#if defined(__AVX512F__)
  _mm512_stream_ps(p, reinterpret_cast<__m512>(v));
#else
  store(p, v);
#endif
}
PACELINE_INLINE void store_past_caches(Bf16* p, const Vec& v) {
#if defined(__AVX512F__)
  _mm256_stream_si256(reinterpret_cast<__m256i*>(p), to_bf16(v));
#else
  store(p, v);
#endif
}

// Only the first n lanes, 0 < n <= kLanes; the others are zero.
template <typename T>
PACELINE_INLINE void load_some(const T* p, std::size_t n, Vec& v) {
  T lanes[kLanes] = {};
  for (std::size_t l = 0; l < n; ++l) lanes[l] = p[l];
  load(lanes, v);
}
template <typename T>
PACELINE_INLINE void store_some(T* p, std::size_t n, const Vec& v) {
  T lanes[kLanes];
  store(lanes, v);
  for (std::size_t l = 0; l < n; ++l) p[l] = lanes[l];
}

// All lanes if Whole, else n of them.
template <bool Whole, typename T>
PACELINE_INLINE Vec take(const T* p, std::size_t n) {
  Vec v;
  if constexpr (Whole) {
    load(p, v);
  } else {
    load_some(p, n, v);
  }
  return v;
}
template <bool Whole, typename T>
PACELINE_INLINE void give(T* p, std::size_t n, const Vec& v) {
  if constexpr (Whole) {
    store(p, v);
  } else {
    store_some(p, n, v);
  }
}

template <bool Whole, typename T>
PACELINE_INLINE void give(T* p, std::size_t n, const Vec& v, bool streams) {
  if constexpr (Whole) {
    if (streams) return store_past_caches(p, v);
  }
  give<Whole>(p, n, v);
}

// Calls body(first channel, lanes, whole) over `channels`, in steps of a vector.
template <typename Body>
PACELINE_INLINE void for_each_vector(std::size_t channels, Body body) {
  std::size_t c = 0;
  for (; c + kLanes <= channels; c += kLanes) body(c, kLanes, std::true_type{});
  if (c < channels) body(c, channels - c, std::false_type{});
}

#if defined(__AVX2__) && !defined(__AVX512F__)
constexpr IntVec kBit = {1, 2, 4, 8, 16, 32, 64, 128};
#elif !defined(__AVX512F__)
constexpr IntVec kBit = {1, 2, 4, 8};
#endif

// Bit l is set if ReLU passes lane l: positive or NaN.
PACELINE_INLINE std::uint16_t passing(const Vec& v) {
#if defined(__AVX512F__)
  return _mm512_cmp_ps_mask(reinterpret_cast<__m512>(v), _mm512_setzero_ps(), _CMP_NLE_UQ);
#elif defined(__AVX2__)
  const __m256 passes =
      _mm256_cmp_ps(reinterpret_cast<__m256>(v), _mm256_setzero_ps(), _CMP_NLE_UQ);
  return static_cast<std::uint16_t>(_mm256_movemask_ps(passes));
#else
  // Not set[l]: GCC 12's vector subscript check is wrong with sanitizers.
  const IntVec set = ~(v <= 0) & kBit;
  std::int32_t lanes[kLanes];
  __builtin_memcpy(lanes, &set, sizeof lanes);
  std::int32_t bits = 0;
  for (std::size_t l = 0; l < kLanes; ++l) bits |= lanes[l];
  return static_cast<std::uint16_t>(bits);
#endif
}

// Zeroes lanes whose bit is not set.
PACELINE_INLINE Vec masked(std::uint16_t bits, const Vec& v) {
#if defined(__AVX512F__)
  return reinterpret_cast<Vec>(_mm512_maskz_mov_ps(bits, reinterpret_cast<__m512>(v)));
#else
  const IntVec keep = ((IntVec{} + bits) & kBit) != 0;
  return reinterpret_cast<Vec>(reinterpret_cast<IntVec>(v) & keep);
#endif
}

// The bits of a row's channels [c, c + n), in the lowest ones; c is a multiple of kLanes.
PACELINE_INLINE std::uint16_t read_bits(const std::uint8_t* row, std::size_t c, std::size_t n) {
  unsigned bits = row[c / 8] >> c % 8;
  if (n > 8) bits |= static_cast<unsigned>(row[c / 8 + 1]) << 8;
  return static_cast<std::uint16_t>(bits);
}
PACELINE_INLINE void write_bits(std::uint8_t* row, std::size_t c, std::size_t n,
                                std::uint16_t bits) {
  const unsigned before = c % 8 > 0 ? row[c / 8] : 0U;  // of narrower vectors
  row[c / 8] = static_cast<std::uint8_t>(before | bits << c % 8);
  if (n > 8) row[c / 8 + 1] = static_cast<std::uint8_t>(bits >> 8);
}

}  // namespace

}  // namespace paceline::cpu::PACELINE_ISA
