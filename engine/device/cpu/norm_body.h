// Included once per instruction set, after lanes_body.h.

namespace paceline::cpu::PACELINE_ISA {

namespace {

constexpr std::size_t kRowsAtOnce = 8;

// How many bytes ahead a pass prefetches its streams: the hardware prefetcher stops at the end of
// each run.
template <typename T>
PACELINE_INLINE void fetch_ahead(const T* p) {
  __builtin_prefetch(reinterpret_cast<const char*>(p) + 4096);
}

// Calls block(row, number of rows as a constant) over `rows`.
template <typename Block>
PACELINE_INLINE void for_each_row_block(std::size_t rows, Block block) {
  std::size_t r = 0;
  for (; r + kRowsAtOnce <= rows; r += kRowsAtOnce) {
    block(r, std::integral_constant<std::size_t, kRowsAtOnce>{});
  }
  for (; r < rows; ++r) block(r, std::integral_constant<std::size_t, 1>{});
}

template <typename T>
void norm_sums(const NormSums<T>& work) {
  for_each_row_block(work.rows, [&](std::size_t first, auto count) {
    const T* x = work.x + first * work.channels;
    for_each_vector(work.channels, [&](std::size_t c, std::size_t n, auto whole) {
      constexpr bool kWhole = whole;
      const Vec pivot = take<kWhole>(work.pivot + c, n);
      Vec s[2] = {take<kWhole>(work.s + c, n), Vec{}}, q[2] = {take<kWhole>(work.q + c, n), Vec{}};
      for (std::size_t i = 0; i < count; ++i) {
        fetch_ahead(x + i * work.channels + c);
        const Vec d = take<kWhole>(x + i * work.channels + c, n) - pivot;
        s[i % 2] += d;
        q[i % 2] += d * d;
      }
      give<kWhole>(work.s + c, n, s[0] + s[1]);
      give<kWhole>(work.q + c, n, q[0] + q[1]);
    });
  });
}

enum class Skip { none, plain, normalised };

template <typename T, Skip kSkip, bool kRelu>
void norm_apply_as(const NormApply<T>& work) {
  const std::size_t sign_bytes = (work.channels + 7) / 8;
  for (std::size_t r = 0; r < work.rows; ++r) {
    const std::size_t at = r * work.channels;
    for_each_vector(work.channels, [&](std::size_t c, std::size_t n, auto whole) {
      constexpr bool kWhole = whole;
      fetch_ahead(work.x + at + c);
      if constexpr (kSkip != Skip::none) fetch_ahead(work.skip + at + c);
      Vec y = take<kWhole>(work.x + at + c, n) * take<kWhole>(work.a + c, n) +
              take<kWhole>(work.b + c, n);
      if constexpr (kSkip == Skip::plain) y += take<kWhole>(work.skip + at + c, n);
      if constexpr (kSkip == Skip::normalised) {
        y += take<kWhole>(work.skip + at + c, n) * take<kWhole>(work.a2 + c, n) +
             take<kWhole>(work.b2 + c, n);
      }
      if constexpr (kRelu) {
        const std::uint16_t bits = passing(y);
        write_bits(work.signs + r * sign_bytes, c, n, bits);
        y = masked(bits, y);
      }
      give<kWhole>(work.y + at + c, n, y, work.streams);
    });
  }
}

template <typename T, Skip kSkip>
void norm_apply_with(const NormApply<T>& work) {
  work.signs ? norm_apply_as<T, kSkip, true>(work) : norm_apply_as<T, kSkip, false>(work);
}

template <typename T>
void norm_apply(const NormApply<T>& work) {
  if (!work.skip) return norm_apply_with<T, Skip::none>(work);
  work.a2 ? norm_apply_with<T, Skip::normalised>(work) : norm_apply_with<T, Skip::plain>(work);
}

template <typename T, bool kRelu, bool kTwo>
void norm_gradient_sums_as(const NormGradientSums<T>& work) {
  const std::size_t sign_bytes = (work.channels + 7) / 8;
  for_each_row_block(work.rows, [&](std::size_t first, auto count) {
    const std::size_t at = first * work.channels;
    for_each_vector(work.channels, [&](std::size_t c, std::size_t n, auto whole) {
      constexpr bool kWhole = whole;
      const Vec pivot = take<kWhole>(work.pivot + c, n);
      Vec s = take<kWhole>(work.s + c, n), q = take<kWhole>(work.q + c, n), pivot2{}, q2{};
      if constexpr (kTwo) {
        pivot2 = take<kWhole>(work.pivot2 + c, n);
        q2 = take<kWhole>(work.q2 + c, n);
      }
      for (std::size_t i = 0; i < count; ++i) {
        const std::size_t place = at + i * work.channels + c;
        fetch_ahead(work.dy + place);
        fetch_ahead(work.x + place);
        if constexpr (kTwo) fetch_ahead(work.x2 + place);
        Vec g = take<kWhole>(work.dy + place, n);
        if constexpr (kRelu) {
          g = masked(read_bits(work.signs + (first + i) * sign_bytes, c, n), g);
        }
        s += g;
        q += g * (take<kWhole>(work.x + place, n) - pivot);
        if constexpr (kTwo) q2 += g * (take<kWhole>(work.x2 + place, n) - pivot2);
      }
      give<kWhole>(work.s + c, n, s);
      give<kWhole>(work.q + c, n, q);
      if constexpr (kTwo) give<kWhole>(work.q2 + c, n, q2);
    });
  });
}

template <typename T>
void norm_gradient_sums(const NormGradientSums<T>& work) {
  if (work.x2) {
    work.signs ? norm_gradient_sums_as<T, true, true>(work)
               : norm_gradient_sums_as<T, false, true>(work);
  } else {
    work.signs ? norm_gradient_sums_as<T, true, false>(work)
               : norm_gradient_sums_as<T, false, false>(work);
  }
}

template <bool kWhole, typename T>
PACELINE_INLINE void give_or_add(bool adds, bool streams, T* p, std::size_t n, const Vec& v) {
  if (adds) return give<kWhole>(p, n, take<kWhole>(p, n) + v);
  give<kWhole>(p, n, v, streams);
}

template <typename T, bool kRelu, bool kTwo>
void norm_backward_as(const NormBackward<T>& work) {
  const std::size_t sign_bytes = (work.channels + 7) / 8;
  for (std::size_t r = 0; r < work.rows; ++r) {
    const std::size_t at = r * work.channels;
    for_each_vector(work.channels, [&](std::size_t c, std::size_t n, auto whole) {
      constexpr bool kWhole = whole;
      fetch_ahead(work.dy + at + c);
      fetch_ahead(work.x + at + c);
      if constexpr (kTwo) fetch_ahead(work.x2 + at + c);
      Vec g = take<kWhole>(work.dy + at + c, n);
      if constexpr (kRelu) g = masked(read_bits(work.signs + r * sign_bytes, c, n), g);
      if (work.residual)
        give_or_add<kWhole>(work.adds_residual, false, work.residual + at + c, n, g);
      if (work.dx) {
        const Vec dx = g * take<kWhole>(work.a + c, n) +
                       (take<kWhole>(work.x + at + c, n) * take<kWhole>(work.c1 + c, n) +
                        take<kWhole>(work.c0 + c, n));
        give_or_add<kWhole>(work.adds_dx, work.streams, work.dx + at + c, n, dx);
      }
      if constexpr (kTwo) {
        const Vec dx2 = g * take<kWhole>(work.a2 + c, n) +
                        (take<kWhole>(work.x2 + at + c, n) * take<kWhole>(work.d1 + c, n) +
                         take<kWhole>(work.d0 + c, n));
        give_or_add<kWhole>(work.adds_dx2, work.streams, work.dx2 + at + c, n, dx2);
      }
    });
  }
}

template <typename T>
void norm_backward(const NormBackward<T>& work) {
  if (work.dx2) {
    work.signs ? norm_backward_as<T, true, true>(work) : norm_backward_as<T, false, true>(work);
  } else {
    work.signs ? norm_backward_as<T, true, false>(work) : norm_backward_as<T, false, false>(work);
  }
}

template <typename T>
constexpr NormKernels<T> kNorm = {norm_sums<T>, norm_apply<T>, norm_gradient_sums<T>,
                                  norm_backward<T>};

}  // namespace

}  // namespace paceline::cpu::PACELINE_ISA
