#include "engine/device/cpu/winograd.h"

#include <algorithm>
#include <numeric>

#include "engine/device/cpu/parallel.h"

namespace paceline::cpu {

namespace {

constexpr std::size_t kChunk = 48;         // tiles of forward: their points stay in the cache
constexpr std::size_t kChunkPairs = 96;    // of tiles: 12 KiB of dy in a panel
constexpr std::size_t kPanelPadding = 16;  // words
constexpr std::size_t kLargeSums = std::size_t{2} << 20;  // bytes; threads share the points

// Words from one panel to the next.
constexpr std::size_t kLeftStride = kChunkPairs * kLeftPanel + kPanelPadding;
constexpr std::size_t kRightStride = kChunkPairs * kRightPanel + kPanelPadding;

std::size_t size(int value) {
  return static_cast<std::size_t>(value);
}

}  // namespace

bool winograd_supports(const Operation& op, const Kernels& kernels) {
  if (!kernels.winograd.product || op.kernel != 3 || op.stride != 1 || op.padding != 1)
    return false;
  const auto block = static_cast<int>(kWinogradBlock);
  if (op.in.channels % block != 0 || op.out.channels % block != 0) return false;
  // A tile costs 16 multiplications where the direct sum has 9 for each place that counts; the
  // transforms are worth a quarter of those.
  const int tiles = (op.out.height + 1) / 2 * ((op.out.width + 1) / 2);
  return tiles * 16 * 4 <= op.out.height * op.out.width * 9 * 3;
}

WinogradTiles::WinogradTiles(const Operation& op, int batch)
    : height_(size(op.out.height)),
      width_(size(op.out.width)),
      rows_((height_ + 1) / 2),
      columns_((width_ + 1) / 2),
      count_(size(batch) * rows_ * columns_) {}

WinogradTiles::Corner WinogradTiles::corner(std::size_t tile) const {
  const std::size_t row = tile / columns_;
  return {row / rows_, row % rows_ * 2, tile % columns_ * 2};
}

template <typename T>
void WinogradTiles::seen(std::size_t tile, T* plane, std::size_t channels, T* outside,
                         T* (&places)[16]) const {
  const Corner at = corner(tile);
  for (std::size_t i = 0; i < 16; ++i) {
    // Counted with the padding.
    const std::size_t row = at.row + i / 4, column = at.column + i % 4;
    const bool inside = row >= 1 && row <= height_ && column >= 1 && column <= width_;
    places[i] = inside ? plane + ((at.sample * height_ + row - 1) * width_ + column - 1) * channels
                       : outside;
  }
}

template <typename T>
void WinogradTiles::own(std::size_t tile, T* plane, std::size_t channels, T* outside,
                        T* (&places)[4]) const {
  const Corner at = corner(tile);
  for (std::size_t i = 0; i < 4; ++i) {
    const std::size_t row = at.row + i / 2, column = at.column + i % 2;
    const bool inside = row < height_ && column < width_;
    places[i] =
        inside ? plane + ((at.sample * height_ + row) * width_ + column) * channels : outside;
  }
}

Winograd::Winograd(const Operation& op, int batch, Pass pass, const Kernels& kernels,
                   const Parallel& parallel)
    : kernels_(kernels.winograd),
      parallel_(parallel),
      tiles_(op, batch),
      backward_(pass == Pass::backward_data),
      in_(size(backward_ ? op.out.channels : op.in.channels)),
      out_(size(backward_ ? op.in.channels : op.out.channels)),
      streams_(parallel.streams(size(batch) * op.out.elements() / size(op.out.channels) * out_ *
                                sizeof(Bf16))),
      zeros_(in_) {}

// The points and sums of one chunk of tiles.
std::size_t Winograd::space_bytes() const {
  return kPoints * kChunk * (in_ * sizeof(Bf16) + kWinogradBlock * sizeof(float));
}

// The weights' points for all threads, and a space for each.
std::size_t Winograd::scratch_bytes() const {
  return weight_words() * sizeof(std::uint32_t) + space_bytes() * size(parallel_.threads());
}

void Winograd::run(const Bf16* x, const float* w, const float* bias, Bf16* y,
                   std::byte* scratch) const {
  auto* weights = reinterpret_cast<std::uint32_t*>(scratch);
  transform_weights(w, weights);
  std::byte* spaces = scratch + weight_words() * sizeof(std::uint32_t);
  parallel_.each([&](int thread) {
    const auto [first, end] = parallel_.share(tiles_.count(), kWinogradRows, thread);
    run_tiles(first, end, x, weights, bias, y, spaces + space_bytes() * size(thread));
  });
}

// As panels of 32 outputs: [point][panel][pair of inputs][output].
void Winograd::transform_weights(const float* w, std::uint32_t* weights) const {
  const std::size_t blocks = in_ / kWinogradBlock, panels = out_ / kWinogradBlock;
  const std::size_t words = kWinogradBlock * kWinogradBlock / 2;  // of a block's point
  parallel_.ranges(blocks * panels, 1, 1, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      kernels_.weights({.w = w,
                        .channels = backward_ ? out_ : in_,
                        .filters = backward_ ? in_ : out_,
                        .input = i % blocks * kWinogradBlock,
                        .output = i / blocks * kWinogradBlock,
                        .backward = backward_,
                        .points = weights + i * words,
                        .point_stride = blocks * panels * words});
    }
  });
}

void Winograd::run_tiles(std::size_t first, std::size_t end, const Bf16* x,
                         const std::uint32_t* weights, const float* bias, Bf16* y,
                         std::byte* space) const {
  auto* points = reinterpret_cast<Bf16*>(space);
  auto* sums = reinterpret_cast<float*>(space + kPoints * kChunk * in_ * sizeof(Bf16));
  constexpr std::size_t kPointSums = kChunk * kWinogradBlock;
  for (; first < end; first += kChunk) {
    const std::size_t tiles = std::min(kChunk, end - first);
    for (std::size_t i = 0; i < tiles; ++i) {
      const Bf16* places[16];
      tiles_.seen(first + i, x, in_, zeros_.data(), places);
      kernels_.input({places, in_, points + i * in_, kChunk * in_});
    }
    for (std::size_t f = 0; f < out_; f += kWinogradBlock) {
      for (std::size_t e = 0; e < kPoints; ++e) {
        const std::uint32_t* right = weights + (e * out_ + f) * in_ / 2;
        for (std::size_t i = 0; i < tiles; i += kWinogradRows) {
          kernels_.product({points + (e * kChunk + i) * in_, in_, right, in_ / 2,
                            sums + e * kPointSums + i * kWinogradBlock});
        }
      }
      for (std::size_t i = 0; i < tiles; ++i) {
        Bf16* places[4];
        tiles_.own<Bf16>(first + i, y + f, out_, nullptr, places);
        kernels_.output({.sums = sums + i * kWinogradBlock,
                         .point_stride = kPointSums,
                         .bias = bias ? bias + f : nullptr,
                         .places = places,
                         .streams = streams_});
      }
    }
  }
}

WinogradGradient::WinogradGradient(const Operation& op, int batch, const Kernels& kernels,
                                   const Parallel& parallel)
    : products_(kernels.product),
      kernels_(kernels.winograd),
      parallel_(parallel),
      tiles_(op, batch),
      channels_(size(op.in.channels)),
      filters_(size(op.out.channels)),
      zeros_(std::max(channels_, filters_)) {
  const std::size_t threads = size(parallel.threads());
  row_parts_ = sums() * sizeof(float) > kLargeSums ? std::gcd(threads, kPointRow) : 1;
  tile_parts_ = threads / row_parts_;
}

std::size_t WinogradGradient::left_words() const {
  return kPointRow * channels_ / kLeftPanel * kLeftStride;
}

std::size_t WinogradGradient::right_words() const {
  return kPointRow * filters_ / kRightPanel * kRightStride;
}

std::size_t WinogradGradient::space_bytes() const {
  return whole_lines((left_words() + right_words()) * sizeof(std::uint32_t));
}

std::size_t WinogradGradient::scratch_bytes() const {
  return space_bytes() * size(parallel_.threads()) + sums() * sizeof(float) * tile_parts_;
}

WinogradGradient::Share WinogradGradient::make_share(int thread, float* sums) const {
  const std::size_t t = size(thread), row_part = t % row_parts_, tile_part = t / row_parts_;
  return {part_begin(kPointRow, row_parts_, row_part),
          part_begin(kPointRow, row_parts_, row_part + 1),
          part_begin(tiles_.count(), tile_parts_, tile_part),
          part_begin(tiles_.count(), tile_parts_, tile_part + 1), sums + tile_part * this->sums()};
}

void WinogradGradient::run(const Bf16* x, const Bf16* dy, float* dw, std::byte* scratch) const {
  auto* sums = reinterpret_cast<float*>(scratch + space_bytes() * size(parallel_.threads()));
  parallel_.each([&](int thread) {
    auto* left = reinterpret_cast<std::uint32_t*>(scratch + space_bytes() * size(thread));
    run_share(make_share(thread, sums), {left, left + left_words()}, x, dy);
  });
  parallel_.ranges(channels_, 1, 1, [&](std::size_t begin, std::size_t end) {
    for (std::size_t c = begin; c < end; ++c) {
      kernels_.gradient({.sums = sums + c * filters_,
                         .point_stride = channels_ * filters_,
                         .parts = tile_parts_,
                         .part_stride = this->sums(),
                         .filters = filters_,
                         .dw = dw + c * filters_,
                         .tap_stride = channels_ * filters_});
    }
  });
}

// A row of points at a time over all tiles where its sums alone fill the cache; else all rows of
// a chunk, whose places are read once.
void WinogradGradient::run_share(const Share& share, const Space& space, const Bf16* x,
                                 const Bf16* dy) const {
  const std::size_t row_sums = sums() / kPointRow;
  if (share.first_tile == share.end_tile) {
    std::fill(share.sums + share.first_row * row_sums, share.sums + share.end_row * row_sums, 0.0F);
  }
  const auto run_chunk = [&](std::size_t row, std::size_t first) {
    const std::size_t end = std::min(first + 2 * kChunkPairs, share.end_tile);
    transform(row, first, end, space, x, dy);
    multiply((end - first + 1) / 2, first > share.first_tile, space, share.sums + row * row_sums);
  };
  const auto chunks = [&](auto&& visit) {
    for (std::size_t t = share.first_tile; t < share.end_tile; t += 2 * kChunkPairs) visit(t);
  };
  const auto rows = [&](auto&& visit) {
    for (std::size_t row = share.first_row; row < share.end_row; ++row) visit(row);
  };
  if (sums() * sizeof(float) > kLargeSums) {
    rows([&](std::size_t row) { chunks([&](std::size_t first) { run_chunk(row, first); }); });
  } else {
    chunks([&](std::size_t first) { rows([&](std::size_t row) { run_chunk(row, first); }); });
  }
}

void WinogradGradient::transform(std::size_t row, std::size_t first, std::size_t end,
                                 const Space& space, const Bf16* x, const Bf16* dy) const {
  // Row `row` of B' is p times row a of d and q times row b; of A likewise.
  struct Mix {
    std::size_t a, b;
    float p, q;
  };
  constexpr Mix kOfInput[] = {{0, 2, 1, -1}, {1, 2, 1, 1}, {2, 1, 1, -1}, {1, 3, 1, -1}};
  constexpr Mix kOfGradient[] = {{0, 1, 1, 0}, {0, 1, 1, 1}, {0, 1, 1, -1}, {0, 1, 0, -1}};
  const Mix &input = kOfInput[row], &gradient = kOfGradient[row];
  for (std::size_t tile = first, pair = 0; tile < end; tile += 2, ++pair) {
    const Bf16 *seen[2][16], *own[2][4];
    for (std::size_t i = 0; i < 2; ++i) {
      if (tile + i < end) {
        tiles_.seen(tile + i, x, channels_, zeros_.data(), seen[i]);
        tiles_.own(tile + i, dy, filters_, zeros_.data(), own[i]);
      } else {
        std::fill_n(seen[i], 16, zeros_.data());
        std::fill_n(own[i], 4, zeros_.data());
      }
    }
    kernels_.input_pair({.a = {seen[0] + 4 * input.a, seen[1] + 4 * input.a},
                         .b = {seen[0] + 4 * input.b, seen[1] + 4 * input.b},
                         .p = input.p,
                         .q = input.q,
                         .channels = channels_,
                         .panels = space.left + pair * kLeftPanel,
                         .panel_stride = kLeftStride,
                         .point_stride = channels_ / kLeftPanel * kLeftStride});
    kernels_.gradient_pair({.a = {own[0] + 2 * gradient.a, own[1] + 2 * gradient.a},
                            .b = {own[0] + 2 * gradient.b, own[1] + 2 * gradient.b},
                            .p = gradient.p,
                            .q = gradient.q,
                            .channels = filters_,
                            .panels = space.right + pair * kRightPanel,
                            .panel_stride = kRightStride,
                            .point_stride = filters_ / kRightPanel * kRightStride});
  }
}

void WinogradGradient::multiply(std::size_t pairs, bool adds, const Space& space,
                                float* sums) const {
  for (std::size_t j = 0; j < kPointRow; ++j) {
    const std::uint32_t* left = space.left + j * channels_ / kLeftPanel * kLeftStride;
    const std::uint32_t* right = space.right + j * filters_ / kRightPanel * kRightStride;
    for (std::size_t f = 0; f < filters_; f += kRightPanel) {
      for (std::size_t c = 0; c < channels_; c += kLeftPanel) {
        products_.tile({.left = left + c / kLeftPanel * kLeftStride,
                        .right = right + f / kRightPanel * kRightStride,
                        .pairs = pairs,
                        .c = sums + (j * channels_ + c) * filters_ + f,
                        .row_stride = filters_,
                        .rows = kLeftPanel,
                        .adds = adds});
      }
    }
  }
}

}  // namespace paceline::cpu
