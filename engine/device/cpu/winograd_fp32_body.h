// Winograd's F(4 x 4, 3 x 3) in fp32. Included once per instruction set, after lanes_body.h.

namespace paceline::cpu::PACELINE_ISA {

namespace {

#if defined(__AVX2__) || defined(__aarch64__)

static_assert(kFp32Block % kLanes == 0);

// The tile of sums of a matrix product: as many as the registers hold beside the operands.
#if defined(__AVX512F__)
constexpr std::size_t kFp32Rows = 8, kFp32Columns = 32;
#else
constexpr std::size_t kFp32Rows = 4, kFp32Columns = 16;
#endif

// The transforms, in one dimension: of input, output, output gradient, weights, weight gradient.
PACELINE_INLINE void fp32_input(const Vec (&d)[6], Vec (&t)[6]) {
  const Vec even = d[4] - 4.0F * d[2], odd = d[3] - 4.0F * d[1];
  const Vec near = d[4] - d[2], far = 2.0F * (d[3] - d[1]);
  t[0] = 4.0F * d[0] - 5.0F * d[2] + d[4];
  t[1] = even + odd;
  t[2] = even - odd;
  t[3] = near + far;
  t[4] = near - far;
  t[5] = 4.0F * d[1] - 5.0F * d[3] + d[5];
}

PACELINE_INLINE void fp32_output(const Vec (&m)[6], Vec (&y)[4]) {
  const Vec s = m[1] + m[2], u = m[1] - m[2], v = m[3] + m[4], w = m[3] - m[4];
  y[0] = m[0] + s + v;
  y[1] = u + 2.0F * w;
  y[2] = s + 4.0F * v;
  y[3] = u + 8.0F * w + m[5];
}

PACELINE_INLINE void fp32_output_gradient(const Vec (&y)[4], Vec (&t)[6]) {
  const Vec even = y[0] + y[2], odd = y[1] + y[3];
  const Vec even4 = y[0] + 4.0F * y[2], odd8 = 2.0F * y[1] + 8.0F * y[3];
  t[0] = y[0];
  t[1] = even + odd;
  t[2] = even - odd;
  t[3] = even4 + odd8;
  t[4] = even4 - odd8;
  t[5] = y[3];
}

PACELINE_INLINE void fp32_weights(const Vec (&g)[3], Vec (&t)[6]) {
  const Vec ends = (-1 / 6.0F) * (g[0] + g[2]), middle = (1 / 6.0F) * g[1];
  const Vec far = (1 / 24.0F) * g[0] + (1 / 6.0F) * g[2], half = (1 / 12.0F) * g[1];
  t[0] = 0.25F * g[0];
  t[1] = ends - middle;
  t[2] = ends + middle;
  t[3] = far + half;
  t[4] = far - half;
  t[5] = g[2];
}

PACELINE_INLINE void fp32_weight_gradient(const Vec (&p)[6], Vec (&g)[3]) {
  const Vec near = (-1 / 6.0F) * (p[1] + p[2]), far = p[3] + p[4];
  g[0] = 0.25F * p[0] + near + (1 / 24.0F) * far;
  g[1] = (1 / 6.0F) * (p[2] - p[1]) + (1 / 12.0F) * (p[3] - p[4]);
  g[2] = near + (1 / 6.0F) * far + p[5];
}

// Transforms a matrix of From x From values, read by get(row, column, value), to To x To values,
// written by set(row, column, value): applies Transform along the columns, then along the rows.
template <std::size_t From, std::size_t To, void (*Transform)(const Vec (&)[From], Vec (&)[To]),
          typename Get, typename Set>
PACELINE_INLINE void fp32_transform(Get get, Set set) {
  Vec half[To][From];
#pragma GCC unroll 6
  for (std::size_t c = 0; c < From; ++c) {
    Vec column[From], made[To];
#pragma GCC unroll 6
    for (std::size_t r = 0; r < From; ++r) get(r, c, column[r]);
    Transform(column, made);
#pragma GCC unroll 6
    for (std::size_t r = 0; r < To; ++r) half[r][c] = made[r];
  }
#pragma GCC unroll 6
  for (std::size_t r = 0; r < To; ++r) {
    Vec made[To];
    Transform(half[r], made);
#pragma GCC unroll 6
    for (std::size_t c = 0; c < To; ++c) set(r, c, made[c]);
  }
}

// Calls body(block, first channel of a vector in it).
template <typename Body>
PACELINE_INLINE void for_each_part(std::size_t blocks, Body body) {
  for (std::size_t b = 0; b < blocks; ++b) {
    for (std::size_t part = 0; part < kFp32Block; part += kLanes) body(b, part);
  }
}

template <std::size_t From, void (*Transform)(const Vec (&)[From], Vec (&)[6]), typename T>
PACELINE_INLINE void fp32_points(const Fp32PointsWork<T>& work) {
  for_each_part(work.blocks, [&](std::size_t b, std::size_t part) {
    const auto get = [&](std::size_t r, std::size_t c, Vec & v) __attribute__((always_inline)) {
      const T* place = work.places[r * From + c];
      if (place) {
        load(place + b * work.place_stride + part, v);
      } else {
        v = Vec{};
      }
    };
    const auto set = [&](std::size_t r, std::size_t c, const Vec& v)
        __attribute__((always_inline)) {
      store(
          work.points + (r * kFp32PointRow + c) * work.point_stride + b * work.block_stride + part,
          v);
    };
    fp32_transform<From, 6, Transform>(get, set);
  });
}

template <typename T>
void fp32_points_of_input(const Fp32PointsWork<T>& work) {
  fp32_points<6, fp32_input>(work);
}

template <typename T>
void fp32_points_of_gradient(const Fp32PointsWork<T>& work) {
  fp32_points<4, fp32_output_gradient>(work);
}

void fp32_points_of_weights(const Fp32WeightsWork& work) {
  for_each_part(1, [&](std::size_t, std::size_t part) {
    const auto get = [&](std::size_t r, std::size_t c, Vec & v) __attribute__((always_inline)) {
      const std::size_t tap = 3 * r + c;
      if (work.backward) {
        float lanes[kLanes];
        const float* w =
            work.w + ((8 - tap) * work.channels + work.output) * work.filters + work.input;
        for (std::size_t l = 0; l < kLanes; ++l) lanes[l] = w[(part + l) * work.filters];
        load(lanes, v);
      } else {
        load(work.w + (tap * work.channels + work.input) * work.filters + work.output + part, v);
      }
    };
    const auto set = [&](std::size_t r, std::size_t c, const Vec& v)
        __attribute__((always_inline)) {
      store(work.points + (r * kFp32PointRow + c) * work.point_stride + part, v);
    };
    fp32_transform<3, 6, fp32_weights>(get, set);
  });
}

void fp32_product(const Fp32ProductWork& work) {
  constexpr std::size_t kRegisters = kFp32Columns / kLanes;
  const auto offset = [](std::size_t j, std::size_t half) __attribute__((always_inline)) {
    return j * kLanes / kFp32Block * half + j * kLanes % kFp32Block;
  };
  Vec sums[kFp32Rows][kRegisters] = {};
  const float *left = work.left, *right = work.right;
  for (std::size_t k = 0; k < work.steps; ++k, left += work.left_step, right += kFp32Block) {
    Vec columns[kRegisters];
#pragma GCC unroll 4
    for (std::size_t j = 0; j < kRegisters; ++j) {
      load(right + offset(j, work.right_half), columns[j]);
    }
#pragma GCC unroll 8
    for (std::size_t i = 0; i < kFp32Rows; ++i) {
      const float value = left[i * work.left_row];
#pragma GCC unroll 4
      for (std::size_t j = 0; j < kRegisters; ++j) sums[i][j] += value * columns[j];
    }
  }
#pragma GCC unroll 8
  for (std::size_t i = 0; i < kFp32Rows; ++i) {
#pragma GCC unroll 4
    for (std::size_t j = 0; j < kRegisters; ++j) {
      float* to = work.sums + i * work.row_stride + offset(j, kFp32Block);
      Vec before = {};
      if (work.adds) load(to, before);
      store(to, before + sums[i][j]);
    }
  }
}

template <typename T>
void fp32_outputs(const Fp32OutputWork<T>& work) {
  for_each_part(work.blocks, [&](std::size_t b, std::size_t part) {
    Vec bias = {};
    if (work.bias) load(work.bias + b * kFp32Block + part, bias);
    const auto get = [&](std::size_t r, std::size_t c, Vec & v) __attribute__((always_inline)) {
      load(work.sums + (r * kFp32PointRow + c) * work.point_stride + b * kFp32Block + part, v);
    };
    const auto set = [&](std::size_t r, std::size_t c, const Vec& v)
        __attribute__((always_inline)) {
      T* place = work.places[r * kFp32TileSide + c];
      if (!place) return;
      give<true>(place + b * work.place_stride + part, kLanes, v + bias, work.streams);
    };
    fp32_transform<6, 4, fp32_output>(get, set);
  });
}

void fp32_gradients(const Fp32GradientWork& work) {
  for (std::size_t f = 0; f < work.filters; f += kLanes) {
    const auto get = [&](std::size_t r, std::size_t c, Vec & v) __attribute__((always_inline)) {
      load(work.sums + (r * kFp32PointRow + c) * work.point_stride + f, v);
    };
    const auto set = [&](std::size_t r, std::size_t c, const Vec& v)
        __attribute__((always_inline)) {
      store(work.dw + (3 * r + c) * work.tap_stride + f, v);
    };
    fp32_transform<6, 3, fp32_weight_gradient>(get, set);
  }
}

template <typename T>
constexpr Fp32PlaneKernels<T> kFp32Planes = {fp32_points_of_input<T>, fp32_points_of_gradient<T>,
                                             fp32_outputs<T>};

constexpr WinogradFp32Kernels kWinogradFp32 = {
    kFp32Rows,    kFp32Columns,  kFp32Planes<float>, kFp32Planes<Bf16>, fp32_points_of_weights,
    fp32_product, fp32_gradients};

#else

constexpr WinogradFp32Kernels kWinogradFp32 = {};  // too few registers

#endif

}  // namespace

}  // namespace paceline::cpu::PACELINE_ISA
