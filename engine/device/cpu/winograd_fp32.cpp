#include "engine/device/cpu/winograd_fp32.h"

#include <algorithm>

namespace paceline::cpu {

namespace {

constexpr std::size_t kPadding = 16;  // floats: rows a power of two apart share few cache sets

std::size_t size(int value) {
  return static_cast<std::size_t>(value);
}

std::size_t whole(std::size_t count, std::size_t group) {
  return (count + group - 1) / group * group;
}

}  // namespace

bool winograd_fp32_supports(const Operation& op, const Kernels& kernels) {
  const WinogradFp32Kernels& own = kernels.winograd_fp32;
  if (own.rows == 0 || op.kernel != 3 || op.stride != 1 || op.padding != 1) return false;
  const auto columns = static_cast<int>(own.columns);
  if (op.in.channels % columns != 0 || op.out.channels % columns != 0) return false;
  // A tile costs 36 multiplications where the direct sum has 9 for each place that counts; the
  // transforms are worth as much as a third of those.
  const int tiles = (op.out.height + 3) / 4 * ((op.out.width + 3) / 4);
  return tiles * 36 * 3 <= op.out.height * op.out.width * 9 * 2;
}

Fp32Tiles::Fp32Tiles(const Operation& op, int batch, Layout layout)
    : blocked_(layout == Layout::blocked),
      height_(size(op.out.height)),
      width_(size(op.out.width)),
      rows_((height_ + kFp32TileSide - 1) / kFp32TileSide),
      columns_((width_ + kFp32TileSide - 1) / kFp32TileSide),
      count_(size(batch) * rows_ * columns_) {}

template <std::size_t Side, typename T>
void Fp32Tiles::places(std::size_t tile, std::size_t offset, T* plane, std::size_t channels,
                       T* (&places)[Side * Side]) const {
  const std::size_t tile_row = tile / columns_, first_row = tile_row % rows_ * kFp32TileSide;
  const std::size_t first_column = tile % columns_ * kFp32TileSide;
  T* sample = plane + tile_row / rows_ * height_ * width_ * channels;
  const std::size_t stride = blocked_ ? kFp32Block : channels;
  for (std::size_t i = 0; i < Side * Side; ++i) {
    // Beyond the last one also where it would be negative.
    const std::size_t row = first_row + i / Side - offset;
    const std::size_t column = first_column + i % Side - offset;
    const bool inside = row < height_ && column < width_;
    places[i] = inside ? sample + (row * width_ + column) * stride : nullptr;
  }
}

WinogradFp32::WinogradFp32(const Operation& op, const LibraryKernel::Planes& planes, Pass pass,
                           const Kernels& kernels, const Parallel& parallel)
    : kernels_(kernels.winograd_fp32),
      parallel_(parallel),
      tiles_(op, planes.batch, planes.x),
      type_(planes.type),
      backward_(pass == Pass::backward_data),
      in_(size(backward_ ? op.out.channels : op.in.channels)),
      out_(size(backward_ ? op.in.channels : op.out.channels)),
      // The points of a chunk stay in the second cache, unless the weights' points, which are read
      // once for each chunk, are larger. Products compute whole groups of rows.
      chunk_(whole(std::max<std::size_t>(24, in_ / 8), kernels_.rows)),
      left_row_(in_ + kPadding),
      streams_(parallel.streams(size(planes.batch) * op.out.elements() / size(op.out.channels) *
                                out_ * size_of(planes.type))) {}

std::size_t WinogradFp32::space_floats() const {
  return kFp32Points * (point_floats() + chunk_ * kernels_.columns);
}

// The weights' points for all threads, and a space for each.
std::size_t WinogradFp32::scratch_bytes() const {
  return (weight_floats() + space_floats() * size(parallel_.threads())) * sizeof(float);
}

void WinogradFp32::run(const void* x, const float* w, const float* bias, void* y,
                       std::byte* scratch) const {
  auto* weights = reinterpret_cast<float*>(scratch);
  transform_weights(w, weights);
  float* spaces = weights + weight_floats();
  parallel_.each([&](int thread) {
    const auto [first, end] = parallel_.share(tiles_.count(), kernels_.rows, thread);
    float* space = spaces + space_floats() * size(thread);
    if (type_ == DType::bf16) {
      run_tiles(first, end, static_cast<const Bf16*>(x), weights, bias, static_cast<Bf16*>(y),
                space);
    } else {
      run_tiles(first, end, static_cast<const float*>(x), weights, bias, static_cast<float*>(y),
                space);
    }
  });
}

// As [point][16 outputs][input][output].
void WinogradFp32::transform_weights(const float* w, float* weights) const {
  parallel_.ranges(out_ / kFp32Block * in_, 1, 1, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      kernels_.weights({.w = w,
                        .channels = backward_ ? out_ : in_,
                        .filters = backward_ ? in_ : out_,
                        .input = i % in_,
                        .output = i / in_ * kFp32Block,
                        .backward = backward_,
                        .points = weights + i * kFp32Block,
                        .point_stride = in_ * out_});
    }
  });
}

template <typename T>
void WinogradFp32::run_tiles(std::size_t first, std::size_t end, const T* x, const float* weights,
                             const float* bias, T* y, float* points) const {
  const Fp32PlaneKernels<T>& of_planes = kernels_.planes<T>();
  float* sums = points + kFp32Points * point_floats();
  const std::size_t columns = kernels_.columns, point_sums = chunk_ * columns;
  for (; first < end; first += chunk_) {
    const std::size_t tiles = std::min(chunk_, end - first);
    for (std::size_t i = 0; i < tiles; ++i) {
      const T* places[kFp32Points];
      tiles_.places<kFp32PointRow>(first + i, 1, x, in_, places);
      of_planes.input({.places = places,
                       .blocks = in_ / kFp32Block,
                       .place_stride = tiles_.block_stride(),
                       .points = points + i * left_row_,
                       .point_stride = point_floats(),
                       .block_stride = kFp32Block});
    }
    for (std::size_t f = 0; f < out_; f += columns) {
      for (std::size_t e = 0; e < kFp32Points; ++e) {
        for (std::size_t i = 0; i < tiles; i += kernels_.rows) {
          kernels_.product({.left = points + e * point_floats() + i * left_row_,
                            .left_row = left_row_,
                            .left_step = 1,
                            .right = weights + (e * out_ + f) * in_,
                            .right_half = in_ * kFp32Block,
                            .steps = in_,
                            .sums = sums + e * point_sums + i * columns,
                            .row_stride = columns,
                            .adds = false});
        }
      }
      for (std::size_t i = 0; i < tiles; ++i) {
        T* places[kFp32TilePlaces];
        tiles_.places<kFp32TileSide>(first + i, 0, y + f / kFp32Block * tiles_.block_stride(), out_,
                                     places);
        of_planes.output({.sums = sums + i * columns,
                          .point_stride = point_sums,
                          .bias = bias ? bias + f : nullptr,
                          .places = places,
                          .blocks = columns / kFp32Block,
                          .place_stride = tiles_.block_stride(),
                          .streams = streams_});
      }
    }
  }
}

WinogradFp32Gradient::WinogradFp32Gradient(const Operation& op, const LibraryKernel::Planes& planes,
                                           const Kernels& kernels, const Parallel& parallel)
    : kernels_(kernels.winograd_fp32),
      parallel_(parallel),
      tiles_(op, planes.batch, planes.x),
      type_(planes.type),
      channels_(size(op.in.channels)),
      filters_(size(op.out.channels)),
      chunk_(std::min<std::size_t>(tiles_.count(), 384)) {}

std::size_t WinogradFp32Gradient::scratch_bytes() const {
  const std::size_t left = chunk_ * (channels_ + kPadding), right = chunk_ * filters_;
  return kFp32Points * (left + right + channels_ * filters_) * sizeof(float);
}

// All threads transform a chunk of tiles; then they divide its products.
template <typename T>
void WinogradFp32Gradient::run_planes(const T* x, const T* dy, float* dw,
                                      std::byte* scratch) const {
  const Fp32PlaneKernels<T>& of_planes = kernels_.planes<T>();
  auto* left = reinterpret_cast<float*>(scratch);
  const std::size_t left_row = channels_ + kPadding, left_point = chunk_ * left_row;
  float* right = left + kFp32Points * left_point;
  float* sums = right + kFp32Points * chunk_ * filters_;
  for (std::size_t first = 0; first < tiles_.count(); first += chunk_) {
    const std::size_t tiles = std::min(chunk_, tiles_.count() - first);
    parallel_.ranges(tiles, 1, 1, [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) {
        const T *seen[kFp32Points], *own[kFp32TilePlaces];
        tiles_.places<kFp32PointRow>(first + i, 1, x, channels_, seen);
        tiles_.places<kFp32TileSide>(first + i, 0, dy, filters_, own);
        of_planes.input({.places = seen,
                         .blocks = channels_ / kFp32Block,
                         .place_stride = tiles_.block_stride(),
                         .points = left + i * left_row,
                         .point_stride = left_point,
                         .block_stride = kFp32Block});
        of_planes.output_gradient({.places = own,
                                   .blocks = filters_ / kFp32Block,
                                   .place_stride = tiles_.block_stride(),
                                   .points = right + i * kFp32Block,
                                   .point_stride = chunk_ * filters_,
                                   .block_stride = chunk_ * kFp32Block});
      }
    });
    multiply(tiles, first > 0, left, right, sums);
  }
  parallel_.ranges(channels_, 1, 1, [&](std::size_t begin, std::size_t end) {
    for (std::size_t c = begin; c < end; ++c) {
      kernels_.gradient({.sums = sums + c * filters_,
                         .point_stride = channels_ * filters_,
                         .filters = filters_,
                         .dw = dw + c * filters_,
                         .tap_stride = channels_ * filters_});
    }
  });
}

void WinogradFp32Gradient::run(const void* x, const void* dy, float* dw, std::byte* scratch) const {
  if (type_ == DType::bf16) {
    return run_planes(static_cast<const Bf16*>(x), static_cast<const Bf16*>(dy), dw, scratch);
  }
  run_planes(static_cast<const float*>(x), static_cast<const float*>(dy), dw, scratch);
}

void WinogradFp32Gradient::multiply(std::size_t tiles, bool adds, const float* left,
                                    const float* right, float* sums) const {
  const std::size_t left_row = channels_ + kPadding;
  const std::size_t panels = filters_ / kernels_.columns;
  parallel_.ranges(kFp32Points * panels, 1, 1, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      const std::size_t point = i / panels, f = i % panels * kernels_.columns;
      for (std::size_t c = 0; c < channels_; c += kernels_.rows) {
        kernels_.product({.left = left + point * chunk_ * left_row + c,
                          .left_row = 1,
                          .left_step = left_row,
                          .right = right + (point * filters_ + f) * chunk_,
                          .right_half = chunk_ * kFp32Block,
                          .steps = tiles,
                          .sums = sums + (point * channels_ + c) * filters_ + f,
                          .row_stride = filters_,
                          .adds = adds});
      }
    }
  });
}

}  // namespace paceline::cpu
