#include "engine/device/cpu/pointwise.h"

#include <algorithm>

namespace paceline::cpu {

namespace {

std::size_t size(int value) {
  return static_cast<std::size_t>(value);
}

}  // namespace

bool Pointwise::supports(const Operation& op, const Kernels& kernels) {
  constexpr auto kMultiple = static_cast<int>(kPointwisePanel);
  return kernels.pointwise.product && op.kernel == 1 && op.padding == 0 &&
         op.in.channels % kMultiple == 0 && op.out.channels % kMultiple == 0;
}

Pointwise::Pointwise(const Operation& op, int batch, Pass pass, const Kernels& kernels,
                     const Parallel& parallel)
    : kernels_(kernels.pointwise),
      parallel_(parallel),
      backward_(pass == Pass::backward_data),
      in_(size(backward_ ? op.out.channels : op.in.channels)),
      out_(size(backward_ ? op.in.channels : op.out.channels)),
      batch_(size(batch)),
      height_(size(op.in.height)),
      width_(size(op.in.width)),
      rows_(size(op.out.height)),
      columns_(size(op.out.width)),
      stride_(size(op.stride)),
      streams_(parallel.streams(batch_ * (backward_ ? height_ * width_ : rows_ * columns_) * out_ *
                                sizeof(Bf16))) {}

std::size_t Pointwise::scratch_bytes() const {
  return weight_words() * sizeof(std::uint32_t);
}

std::size_t Pointwise::wide_place(std::size_t place) const {
  if (stride_ == 1) return place;
  const std::size_t row = place / columns_, column = place % columns_;
  return (row / rows_ * height_ + row % rows_ * stride_) * width_ + column * stride_;
}

// Compact rows [first, end) of all samples' rows: the rows of y that belong to them.
void Pointwise::clear_rows(std::size_t first, std::size_t end, Bf16* y) const {
  for (std::size_t row = first; row < end; ++row) {
    const std::size_t sample = row / rows_, r = row % rows_;
    const std::size_t until = r + 1 == rows_ ? height_ : (r + 1) * stride_;
    const std::size_t from = sample * height_ + r * stride_;
    std::fill(y + from * width_ * out_, y + (sample * height_ + until) * width_ * out_, Bf16{});
  }
}

void Pointwise::run(const Work& work, std::byte* scratch) const {
  auto* weights = reinterpret_cast<std::uint32_t*>(scratch);
  pack(work.w, weights);
  if (work.sums) {
    run_block(work, weights, 0, 1, 1, nullptr);
    for (std::size_t c = 0; c < out_; ++c) {
      work.sums->pivot[c] = __builtin_bit_cast(float, std::uint32_t{work.y[c].bits} << 16);
    }
    work.sums->clear();
  }
  parallel_.each([&](int thread) { run_thread(work, weights, thread); });
  if (ChannelSums* sums = channel_sums(work)) sums->taken = true;
}

void Pointwise::pack(const float* w, std::uint32_t* weights) const {
  // The strides of w[channel][filter].
  const std::size_t filters = backward_ ? in_ : out_;
  const std::size_t input_stride = backward_ ? 1 : filters, output_stride = backward_ ? filters : 1;
  parallel_.ranges(out_ / kPointwisePanel, 1, 1, [&](std::size_t begin, std::size_t end) {
    for (std::size_t o = begin * kPointwisePanel; o < end * kPointwisePanel; o += kPointwisePanel) {
      kernels_.weights(
          {w + o * output_stride, in_, input_stride, output_stride, weights + o * in_ / 2});
    }
  });
}

// Whole compact rows, so that the rows that a stride leaves out are one thread's.
void Pointwise::run_thread(const Work& work, const std::uint32_t* weights, int thread) const {
  const auto [first_row, end_row] = parallel_.share(batch_ * rows_, 1, thread);
  ChannelSums::OfThread *mine = nullptr, *branch = nullptr;
  PointwiseSums at{};
  if (ChannelSums* sums = channel_sums(work)) {
    mine = &sums->threads[size(thread)];
    at = {.pivot = sums->pivot.data(), .s = mine->s.data(), .q = mine->q.data()};
  }
  if (work.gradient_sums && work.gradient_sums->branch) {
    ChannelSums& sums = *work.gradient_sums->branch;
    branch = &sums.threads[size(thread)];
    at.pivot2 = sums.pivot.data();
    at.q2 = branch->q.data();
  }
  const auto flush = [&] {
    if (mine) mine->flush(0, out_);
    if (branch) branch->flush(0, out_);
  };
  const std::size_t end = end_row * columns_;
  std::size_t summed = 0, cleared = first_row;
  for (std::size_t first = first_row * columns_; first < end; first += kBlock, summed += kBlock) {
    if (summed + kBlock > ChannelSums::kRows) {
      flush();
      summed = 0;
    }
    const std::size_t last = std::min(first + kBlock, end);
    if (backward_ && stride_ > 1 && !work.adds) {
      const std::size_t until = (last + columns_ - 1) / columns_;
      clear_rows(cleared, until, work.y);
      cleared = until;
    }
    run_block(work, weights, first, last, end, mine ? &at : nullptr);
  }
  flush();
}

// Planes at compact places [first, end), for the tiles of the block before. The places of a wider
// plane are no stream; they are fetched here and now.
FetchAhead Pointwise::fetch_ahead(const Work& work, std::size_t first, std::size_t end) const {
  FetchAhead ahead(out_ / kPointwisePanel * (kBlock / kPointwiseRows));
  if (first >= end) return ahead;
  const std::size_t places = std::min(first + kBlock, end) - first;
  if (stride_ > 1) {
    if (backward_) ahead.add(work.x + first * in_, places * in_ * sizeof(Bf16));
    const std::size_t channels = backward_ ? out_ : in_;
    for (std::size_t i = first; i < first + places; ++i) {
      const Bf16* place = (backward_ ? work.y : work.x) + wide_place(i) * channels;
      for (std::size_t c = 0; c < channels; c += kPointwisePanel) __builtin_prefetch(place + c);
    }
    return ahead;
  }
  ahead.add(work.x + first * in_, places * in_ * sizeof(Bf16));
  if (work.adds) ahead.add(work.y + first * out_, places * out_ * sizeof(Bf16));
  if (!work.gradient_sums) return ahead;
  const GradientSums& sums = *work.gradient_sums;
  ahead.add(sums.x + first * out_, places * out_ * sizeof(Bf16));
  if (sums.branch) ahead.add(sums.x2 + first * out_, places * out_ * sizeof(Bf16));
  if (sums.signs) ahead.add(sums.signs + first * out_ / 8, places * out_ / 8);
  return ahead;
}

// Compact places [first, end), of those up to `all`.
void Pointwise::run_block(const Work& work, const std::uint32_t* weights, std::size_t first,
                          std::size_t end, std::size_t all, const PointwiseSums* sums) const {
  const GradientSums* gradient = work.gradient_sums;
  const Bf16 *x[kBlock], *sum_x[kBlock], *sum_x2[kBlock];
  const std::uint8_t* signs[kBlock];
  Bf16* y[kBlock];
  for (std::size_t i = 0; i < kBlock; ++i) {
    const std::size_t place = std::min(first + i, end - 1), wide = wide_place(place);
    x[i] = work.x + (backward_ ? place : wide) * in_;
    const std::size_t to = backward_ ? wide : place;
    y[i] = first + i < end ? work.y + to * out_ : nullptr;
    if (!gradient) continue;
    sum_x[i] = gradient->x + to * out_;
    if (gradient->branch) sum_x2[i] = gradient->x2 + to * out_;
    if (gradient->signs) signs[i] = gradient->signs + to * out_ / 8;
  }
  const std::size_t samples = gradient ? gradient->samples : work.samples;
  const std::size_t counted = samples * rows_ * columns_;
  FetchAhead ahead = fetch_ahead(work, end, all);
  for (std::size_t o = 0; o < out_; o += kPointwisePanel) {
    for (std::size_t i = 0; first + i < end; i += kPointwiseRows) {
      PointwiseSums of_tile;
      if (sums) {
        of_tile = *sums;
        if (gradient) {
          of_tile.x = sum_x + i;
          of_tile.signs = gradient->signs ? signs + i : nullptr;
          of_tile.x2 = gradient->branch ? sum_x2 + i : nullptr;
        }
      }
      const FetchAhead::Part part = ahead.next();
      kernels_.product({.x = x + i,
                        .panel = weights + o * in_ / 2,
                        .pairs = in_ / 2,
                        .bias = work.bias,
                        .y = y + i,
                        .output = o,
                        .adds = work.adds,
                        .streams = streams_ && !work.adds,
                        .sums = sums ? &of_tile : nullptr,
                        .counted = counted > first + i ? counted - first - i : 0,
                        .ahead = part.from,
                        .ahead_lines = part.lines});
    }
  }
}

}  // namespace paceline::cpu
