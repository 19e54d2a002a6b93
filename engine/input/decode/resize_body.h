// Included by one source per instruction set, which defines PACELINE_ISA. Products and sums are not
// contracted (see CMakeLists.txt), so all variants give the same bits.
#include <cstring>
#if defined(__SSE2__)
#include <immintrin.h>
#elif defined(__ARM_NEON)
#include <arm_neon.h>
#endif

#include "engine/input/decode/resize.h"

#define PACELINE_TEXT_OF(name) #name
#define PACELINE_TEXT(name) PACELINE_TEXT_OF(name)

namespace paceline::PACELINE_ISA {

namespace {

using Ints4 = std::int32_t __attribute__((vector_size(16)));
using Floats4 = float __attribute__((vector_size(16)));

// Loads four bytes as floats. GCC 12 would convert them one by one.
inline Floats4 pixel_at(const std::uint8_t* data) {
  std::int32_t word = 0;
  std::memcpy(&word, data, sizeof word);
#if defined(__SSE4_1__)
  const auto wide = reinterpret_cast<Ints4>(_mm_cvtepu8_epi32(_mm_cvtsi32_si128(word)));
#elif defined(__SSE2__)
  const __m128i zero = _mm_setzero_si128();
  const auto wide = reinterpret_cast<Ints4>(
      _mm_unpacklo_epi16(_mm_unpacklo_epi8(_mm_cvtsi32_si128(word), zero), zero));
#elif defined(__ARM_NEON)
  const auto wide = reinterpret_cast<Ints4>(
      vmovl_u16(vget_low_u16(vmovl_u8(vreinterpret_u8_s32(vdup_n_s32(word))))));
#else
  const Ints4 wide = {word & 255, word >> 8 & 255, word >> 16 & 255, word >> 24 & 255};
#endif
  return __builtin_convertvector(wide, Floats4);
}

// Loads and stores a fourth value with each pixel, which belongs to the next one.
void across_rgb(const std::uint8_t* in, const std::int32_t* low, const std::int32_t* high,
                const float* weight, int count, float* out) {
  for (int x = 0; x < count; ++x) {
    const Floats4 a = pixel_at(in + std::ptrdiff_t{3} * low[x]);
    const Floats4 b = pixel_at(in + std::ptrdiff_t{3} * high[x]);
    const Floats4 mixed = a + (b - a) * weight[x];
    std::memcpy(out + std::ptrdiff_t{3} * x, &mixed, sizeof mixed);
  }
}

void across(const std::uint8_t* in, int channels, const std::int32_t* low, const std::int32_t* high,
            const float* weight, int count, float* out) {
  if (channels == 3) {
    across_rgb(in, low, high, weight, count, out);
    return;
  }
  for (int x = 0; x < count; ++x) {
    const float a = in[low[x]], b = in[high[x]];
    out[x] = a + (b - a) * weight[x];
  }
}

void down(const float* __restrict top, const float* __restrict bottom, float weight, int count,
          float* __restrict out) {
  for (int i = 0; i < count; ++i) out[i] = top[i] + (bottom[i] - top[i]) * weight;
}

void down_rounded(const float* __restrict top, const float* __restrict bottom, float weight,
                  int count, std::uint8_t* __restrict out) {
  for (int i = 0; i < count; ++i) {
    const float value = top[i] + (bottom[i] - top[i]) * weight;
    out[i] = static_cast<std::uint8_t>(static_cast<int>(value + 0.5F));
  }
}

}  // namespace

extern const ResizeLoops kResizeLoops;
const ResizeLoops kResizeLoops = {PACELINE_TEXT(PACELINE_ISA), across, down, down_rounded};

}  // namespace paceline::PACELINE_ISA
