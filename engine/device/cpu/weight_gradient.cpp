#include "engine/device/cpu/weight_gradient.h"

#include <algorithm>

#include "engine/device/cpu/parallel.h"

namespace paceline::cpu {

namespace {

constexpr std::size_t kPairs = 192;                          // of a chunk: 24 KiB of dy in a panel
constexpr std::size_t kFlatRow = 2 * kPairs;                 // places
constexpr std::size_t kLargeWeights = std::size_t{3} << 19;  // bytes; threads share the filters

}  // namespace

bool WeightGradient::supports(const Operation& op, const Kernels& kernels) {
  return kernels.product.tile && op.out.channels % static_cast<int>(kRightPanel) == 0;
}

WeightGradient::WeightGradient(const Operation& op, int batch, const Kernels& kernels,
                               const Parallel& parallel)
    : kernels_(kernels.product),
      parallel_(parallel),
      flat_(op.kernel == 1 && op.stride == 1 && op.padding == 0),
      batch_(static_cast<std::size_t>(batch)),
      height_(static_cast<std::size_t>(op.in.height)),
      width_(static_cast<std::size_t>(op.in.width)),
      channels_(static_cast<std::size_t>(op.in.channels)),
      out_height_(static_cast<std::size_t>(op.out.height)),
      out_width_(static_cast<std::size_t>(op.out.width)),
      filters_(static_cast<std::size_t>(op.out.channels)),
      kernel_(static_cast<std::size_t>(op.kernel)),
      stride_(static_cast<std::size_t>(op.stride)),
      padding_(static_cast<std::size_t>(op.padding)),
      window_(kernel_ * channels_),
      rows_(batch_ * out_height_) {
  if (flat_) {
    const std::size_t places = batch_ * height_ * width_;
    out_height_ = 1;
    out_width_ = kFlatRow;
    width_ = places;
    rows_ = (places + kFlatRow - 1) / kFlatRow;
  }
  const auto threads = static_cast<std::size_t>(parallel.threads());
  const bool large = weights() * sizeof(float) > kLargeWeights;
  filter_parts_ = large ? std::min(threads, filters_ / kRightPanel) : 1;
  while (threads % filter_parts_ != 0) --filter_parts_;
  row_parts_ = threads / filter_parts_;
}

std::size_t WeightGradient::count_places(std::size_t row) const {
  return flat_ ? std::min(kFlatRow, width_ - row * kFlatRow) : out_width_;
}

std::size_t WeightGradient::rows_of_chunk() const {
  return std::max<std::size_t>(1, kPairs / ((out_width_ + 1) / 2));
}

std::size_t WeightGradient::space_bytes() const {
  const std::size_t padded = flat_ ? 0 : whole_lines(padded_elements() * sizeof(Bf16));
  return padded + sizeof(std::uint32_t) *
                      (left_panels() * left_stride() + filters_ / kRightPanel * right_stride());
}

std::size_t WeightGradient::scratch_bytes() const {
  return whole_lines(space_bytes()) * static_cast<std::size_t>(parallel_.threads()) +
         weights() * sizeof(float) * (row_parts_ - 1);
}

WeightGradient::Space WeightGradient::make_space(int thread, std::byte* scratch) const {
  std::byte* mine = scratch + whole_lines(space_bytes()) * static_cast<std::size_t>(thread);
  Space space{};
  space.padded = reinterpret_cast<Bf16*>(mine);
  if (!flat_) mine += whole_lines(padded_elements() * sizeof(Bf16));
  space.left = reinterpret_cast<std::uint32_t*>(mine);
  space.right = space.left + left_panels() * left_stride();
  return space;
}

WeightGradient::Share WeightGradient::make_share(int thread, float* dw, float* parts) const {
  const auto t = static_cast<std::size_t>(thread);
  const std::size_t row_part = t / filter_parts_, filter_part = t % filter_parts_;
  const std::size_t panels = filters_ / kRightPanel;
  Share share{};
  share.first_filter = part_begin(panels, filter_parts_, filter_part) * kRightPanel;
  share.filters =
      part_begin(panels, filter_parts_, filter_part + 1) * kRightPanel - share.first_filter;
  share.first_row = part_begin(rows_, row_parts_, row_part);
  share.end_row = part_begin(rows_, row_parts_, row_part + 1);
  share.dw = row_part == 0 ? dw : parts + (row_part - 1) * weights();
  return share;
}

void WeightGradient::run(const Bf16* x, const Bf16* dy, float* dw, std::byte* scratch) const {
  auto* parts = reinterpret_cast<float*>(
      scratch + whole_lines(space_bytes()) * static_cast<std::size_t>(parallel_.threads()));
  parallel_.each([&](int thread) {
    run_share(make_share(thread, dw, parts), make_space(thread, scratch), x, dy);
  });
  if (row_parts_ == 1) return;
  parallel_.ranges(weights(), 64, 16384, [&](std::size_t begin, std::size_t end) {
    for (std::size_t p = 0; p + 1 < row_parts_; ++p) {
      const float* from = parts + p * weights();
      for (std::size_t i = begin; i < end; ++i) dw[i] += from[i];
    }
  });
}

void WeightGradient::run_share(const Share& share, const Space& space, const Bf16* x,
                               const Bf16* dy) const {
  const std::size_t at_once = rows_of_chunk();
  if (share.first_row == share.end_row) {
    for (std::size_t row = 0; row < kernel_ * window_; ++row) {
      std::fill_n(share.dw + row * filters_ + share.first_filter, share.filters, 0.0F);
    }
  }
  for (std::size_t first = share.first_row; first < share.end_row; first += at_once) {
    const std::size_t end = std::min(first + at_once, share.end_row);
    std::size_t pairs = 0;
    for (std::size_t row = first; row < end; ++row) pairs += count_pairs(row);
    std::size_t at = 0;
    for (std::size_t row = first; row < end; ++row) {
      kernels_.pack_right({.row = dy + row * out_width_ * filters_ + share.first_filter,
                           .step = filters_,
                           .places = count_places(row),
                           .columns = share.filters,
                           .panels = space.right + at * kRightPanel,
                           .panel_stride = right_stride()});
      at += count_pairs(row);
    }
    FetchAhead ahead = fetch_ahead(share, end, x, dy);
    for (std::size_t u = 0; u < kernel_; ++u) {
      at = 0;
      for (std::size_t row = first; row < end; ++row) {
        pack_windows({space.padded, space.left + at * kLeftPanel, nullptr}, x, row, u);
        at += count_pairs(row);
      }
      multiply(share, space, u, pairs, first > share.first_row, ahead);
    }
  }
}

// Row u of the window at each place of an output row.
void WeightGradient::pack_windows(const Space& space, const Bf16* x, std::size_t row,
                                  std::size_t u) const {
  PackWork work{.row = nullptr,
                .step = stride_ * channels_,
                .places = count_places(row),
                .columns = window_,
                .panels = space.left,
                .panel_stride = left_stride()};
  if (flat_) {
    work.row = x + row * kFlatRow * channels_;
    return kernels_.pack_left(work);
  }
  const std::size_t sample = row / out_height_;
  const std::size_t in_row = row % out_height_ * stride_ + u;  // counted with the padding
  const bool inside = in_row >= padding_ && in_row < height_ + padding_;
  const std::size_t line = width_ * channels_;
  const Bf16* from = x + (sample * height_ + (inside ? in_row - padding_ : 0)) * line;
  if (inside && padding_ == 0) {
    work.row = from;
    return kernels_.pack_left(work);
  }
  work.row = space.padded;
  std::fill_n(space.padded, padding_ * channels_, Bf16{});
  Bf16* to = space.padded + padding_ * channels_;
  inside ? std::copy_n(from, line, to) : std::fill_n(to, line, Bf16{});
  std::fill_n(to + line, padding_ * channels_, Bf16{});
  kernels_.pack_left(work);
}

// Where threads share the filters, packing is a small part and their columns are not contiguous.
FetchAhead WeightGradient::fetch_ahead(const Share& share, std::size_t first, const Bf16* x,
                                       const Bf16* dy) const {
  FetchAhead ahead(kernel_ * left_panels() * (share.filters / kRightPanel));
  if (filter_parts_ > 1 || first >= share.end_row) return ahead;
  const std::size_t end = std::min(first + rows_of_chunk(), share.end_row);
  std::size_t places = 0;
  for (std::size_t row = first; row < end; ++row) places += count_places(row);
  // Input rows of those output rows; the padding makes this one row too many here and there.
  const std::size_t line = width_ * channels_;
  if (flat_) {
    ahead.add(x + first * kFlatRow * channels_, places * channels_ * sizeof *x);
  } else {
    const std::size_t in_row =
        std::min(first / out_height_ * height_ + first % out_height_ * stride_, batch_ * height_);
    const std::size_t rows = std::min((end - first) * stride_, batch_ * height_ - in_row);
    ahead.add(x + in_row * line, rows * line * sizeof *x);
  }
  ahead.add(dy + first * out_width_ * filters_, places * filters_ * sizeof *dy);
  return ahead;
}

void WeightGradient::multiply(const Share& share, const Space& space, std::size_t u,
                              std::size_t pairs, bool adds, FetchAhead& ahead) const {
  for (std::size_t j = 0; j < share.filters; j += kRightPanel) {
    const std::uint32_t* right = space.right + j / kRightPanel * right_stride();
    for (std::size_t i = 0; i < window_; i += kLeftPanel) {
      TileWork tile{.left = space.left + i / kLeftPanel * left_stride(),
                    .right = right,
                    .pairs = pairs,
                    .c = share.dw + (u * window_ + i) * filters_ + share.first_filter + j,
                    .row_stride = filters_,
                    .rows = std::min(kLeftPanel, window_ - i),
                    .adds = adds};
      const FetchAhead::Part part = ahead.next();
      tile.ahead = part.from;
      tile.ahead_lines = part.lines;
      kernels_.tile(tile);
    }
  }
}

}  // namespace paceline::cpu
