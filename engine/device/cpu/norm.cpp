#include "engine/device/cpu/norm.h"

#include <algorithm>
#include <cmath>

namespace paceline::cpu {

Norm::Statistics::Statistics(std::size_t channels, int threads)
    : sums(channels, threads),
      a(channels),
      b(channels),
      c1(channels),
      c0(channels),
      mean(channels),
      deviation(channels) {}

Norm::Norm(const Operation& operation, Layout layout, int batch, const Kernels& kernels,
           const Parallel& parallel)
    : op_(operation),
      kernels_(kernels),
      parallel_(parallel),
      channels_(static_cast<std::size_t>(operation.out.channels)),
      width_(layout == Layout::blocked ? std::size_t{kBlock} : channels_),
      groups_(channels_ / width_),
      plane_(operation.out.elements() / channels_),
      batch_(static_cast<std::size_t>(batch)),
      main_(channels_, parallel.threads()),
      branch_(operation.branch ? channels_ : 0, parallel.threads()) {}

template <typename Visit>
void Norm::runs_of_group(std::size_t group, std::size_t samples, Visit visit) const {
  for (std::size_t n = 0; n < samples; ++n) {
    const std::size_t first = (n * groups_ + group) * plane_;
    for (std::size_t r = 0; r < plane_; r += ChannelSums::kRows) {
      visit(Run{first + r, std::min(ChannelSums::kRows, plane_ - r), group * width_});
    }
  }
}

template <typename Visit>
void Norm::runs_of_thread(int thread, std::size_t samples, Visit visit) const {
  if (groups_ == 1) {
    const auto [begin, end] = parallel_.share(samples * plane_, 8, thread);
    for (std::size_t r = begin; r < end; r += ChannelSums::kRows) {
      visit(Run{r, std::min(ChannelSums::kRows, end - r), 0});
    }
    return;
  }
  const auto [begin, end] = parallel_.share(samples, 1, thread);
  for (std::size_t n = begin; n < end; ++n) {
    for (std::size_t row = 0; row < groups_ * plane_; row += plane_) {
      for (std::size_t r = 0; r < plane_; r += ChannelSums::kRows) {
        visit(Run{n * groups_ * plane_ + row + r, std::min(ChannelSums::kRows, plane_ - r),
                  row / plane_ * width_});
      }
    }
  }
}

template <typename SumUp, typename Finish, typename Apply>
void Norm::in_two_passes(std::size_t samples, std::size_t applied, SumUp sum_up, Finish finish,
                         Apply apply) {
  const auto sum_run = [&](int thread, const Run& run) {
    const auto t = static_cast<std::size_t>(thread);
    sum_up(run, t);
    main_.sums.threads[t].flush(run.channel, width_);
    if (op_.branch) branch_.sums.threads[t].flush(run.channel, width_);
  };
  if (by_groups()) {
    parallel_.each([&](int thread) {
      const auto [begin, end] = parallel_.share(groups_, 1, thread);
      for (std::size_t g = begin; g < end; ++g) {
        runs_of_group(g, samples, [&](const Run& run) { sum_run(thread, run); });
        finish(g * width_, (g + 1) * width_);
        runs_of_group(g, applied, apply);
      }
    });
    return;
  }
  parallel_.each([&](int thread) {
    runs_of_thread(thread, samples, [&](const Run& run) { sum_run(thread, run); });
  });
  finish(0, channels_);
  parallel_.each([&](int thread) { runs_of_thread(thread, applied, apply); });
}

Norm::Totals Norm::compute_totals(const ChannelSums& sums, std::size_t channel) {
  Totals totals{};
  for (const ChannelSums::OfThread& thread : sums.threads) {
    totals.s += thread.total_s[channel];
    totals.q += thread.total_q[channel];
  }
  return totals;
}

template <typename T>
void Norm::set_pivot(Statistics& statistics, const T* x) const {
  statistics.sums.clear();
  for (std::size_t c = 0; c < channels_; ++c) {
    const T value = x[c / width_ * width_ * plane_ + c % width_];
    if constexpr (std::is_same_v<T, float>) {
      statistics.sums.pivot[c] = value;
    } else {
      statistics.sums.pivot[c] = __builtin_bit_cast(float, std::uint32_t{value.bits} << 16);
    }
  }
}

// The running variance takes n - 1 in the denominator, the normalisation n.
void Norm::finish_forward(bool of_branch, const NormArrays& arrays, std::size_t begin,
                          std::size_t end, std::size_t samples) {
  Statistics& st = of_branch ? branch_ : main_;
  const auto count = static_cast<double>(samples * plane_);
  const double keep = of_branch ? op_.branch->momentum : op_.momentum;
  for (std::size_t c = begin; c < end; ++c) {
    const Totals totals = compute_totals(st.sums, c);
    const double offset = samples ? totals.s / count : 0;
    const double variance = samples ? std::max(0.0, totals.q / count - offset * offset) : 1;
    st.mean[c] = static_cast<double>(st.sums.pivot[c]) + offset;
    st.deviation[c] = 1 / std::sqrt(variance + epsilon(of_branch));
    st.a[c] = static_cast<float>(static_cast<double>(arrays.gamma[c]) * st.deviation[c]);
    st.b[c] = static_cast<float>(static_cast<double>(arrays.beta[c]) -
                                 st.mean[c] * static_cast<double>(st.a[c]));
    if (samples == 0) continue;
    const double unbiased = count > 1 ? variance * count / (count - 1) : variance;
    const auto mix = [keep](float& running, double now) {
      running = static_cast<float>(keep * static_cast<double>(running) + (1 - keep) * now);
    };
    mix(arrays.mean[c], st.mean[c]);
    mix(arrays.variance[c], unbiased);
  }
}

void Norm::take_running(bool of_branch, const NormArrays& arrays) {
  Statistics& st = of_branch ? branch_ : main_;
  for (std::size_t c = 0; c < channels_; ++c) {
    const double scale = static_cast<double>(arrays.gamma[c]) /
                         std::sqrt(static_cast<double>(arrays.variance[c]) + epsilon(of_branch));
    st.a[c] = static_cast<float>(scale);
    st.b[c] = static_cast<float>(static_cast<double>(arrays.beta[c]) -
                                 static_cast<double>(arrays.mean[c]) * scale);
  }
}

template <typename T>
void Norm::forward(const Forward<T>& work) {
  const NormKernels<T>& kernels = kernels_.norm<T>();
  const bool two = op_.branch.has_value();
  const std::size_t sign_bytes = (width_ + 7) / 8;
  const auto apply = [&](const Run& run) {
    const std::size_t at = run.row * width_;
    kernels.apply({.x = work.x + at,
                   .y = work.y + at,
                   .rows = run.rows,
                   .channels = width_,
                   .a = &main_.a[run.channel],
                   .b = &main_.b[run.channel],
                   .skip = work.skip ? work.skip + at : nullptr,
                   .a2 = two ? &branch_.a[run.channel] : nullptr,
                   .b2 = two ? &branch_.b[run.channel] : nullptr,
                   .signs = work.signs ? work.signs + run.row * sign_bytes : nullptr,
                   .streams = streams<T>()});
  };
  if (!work.train) {
    take_running(false, work.arrays);
    if (two) take_running(true, work.branch);
    parallel_.each([&](int thread) { runs_of_thread(thread, batch_, apply); });
    return;
  }
  const bool sums_main = !main_.sums.take(), sums_branch = two && !branch_.sums.take();
  if (sums_main) set_pivot(main_, work.x);
  if (sums_branch) set_pivot(branch_, work.skip);
  const auto add_up = [&](Statistics& st, const T* x, const Run& run, std::size_t thread) {
    ChannelSums::OfThread& sums = st.sums.threads[thread];
    const std::size_t c = run.channel;
    kernels.sums(
        {x + run.row * width_, run.rows, width_, &st.sums.pivot[c], &sums.s[c], &sums.q[c]});
  };
  const auto sum_up = [&](const Run& run, std::size_t thread) {
    if (sums_main) add_up(main_, work.x, run, thread);
    if (sums_branch) add_up(branch_, work.skip, run, thread);
  };
  const auto finish = [&](std::size_t begin, std::size_t end) {
    finish_forward(false, work.arrays, begin, end, work.samples);
    if (two) finish_forward(true, work.branch, begin, end, work.samples);
  };
  in_two_passes(work.samples, batch_, sum_up, finish, apply);
}

// With g = dy behind the ReLU, n places a channel, d = 1 / deviation:
//   d beta = sum g,  d gamma = d sum g (x - mean)
//   dx = a (g - d beta / n - d (x - mean) d gamma / n) = a g + c1 x + c0
void Norm::finish_backward(bool of_branch, const NormArrays& arrays, std::size_t begin,
                           std::size_t end, std::size_t samples) {
  Statistics& st = of_branch ? branch_ : main_;
  const double share = samples ? 1 / static_cast<double>(samples * plane_) : 0;
  for (std::size_t c = begin; c < end; ++c) {
    const double sum = compute_totals(main_.sums, c).s;
    const double product = compute_totals(st.sums, c).q;
    const double offset = st.mean[c] - static_cast<double>(st.sums.pivot[c]);
    const double gamma_grad = (product - offset * sum) * st.deviation[c];
    arrays.beta_grad[c] = static_cast<float>(sum);
    arrays.gamma_grad[c] = static_cast<float>(gamma_grad);
    const auto a = static_cast<double>(st.a[c]);
    const double c1 = -a * st.deviation[c] * gamma_grad * share;
    st.c1[c] = static_cast<float>(c1);
    st.c0[c] = static_cast<float>(-a * sum * share - c1 * st.mean[c]);
  }
}

void Norm::begin_gradient_sums() {
  const auto begin = [this](Statistics& st) {
    st.sums.clear();
    for (std::size_t c = 0; c < channels_; ++c) st.sums.pivot[c] = static_cast<float>(st.mean[c]);
  };
  begin(main_);
  if (op_.branch) begin(branch_);
}

GradientSums Norm::gradient_sums(const Bf16* x, const std::uint8_t* signs, const Bf16* skip,
                                 std::size_t samples) {
  begin_gradient_sums();
  return {&main_.sums, x, signs, op_.branch ? &branch_.sums : nullptr, skip, samples};
}

template <typename T>
void Norm::clear_missing(T* gradient, std::size_t samples) const {
  const std::size_t sample = channels_ * plane_;
  std::fill(gradient + samples * sample, gradient + batch_ * sample, T{});
}

template <typename T>
void Norm::backward(const Backward<T>& work) {
  const NormKernels<T>& kernels = kernels_.norm<T>();
  const bool two = op_.branch.has_value();
  const std::size_t sign_bytes = (width_ + 7) / 8;
  const auto find_signs = [&](const Run& run) {
    return work.signs ? work.signs + run.row * sign_bytes : nullptr;
  };
  const bool taken = main_.sums.take();
  if (!taken) begin_gradient_sums();
  const auto sum_up = [&](const Run& run, std::size_t thread) {
    if (taken) return;
    const std::size_t at = run.row * width_, c = run.channel;
    ChannelSums::OfThread& sums = main_.sums.threads[thread];
    kernels.gradient_sums({.x = work.x + at,
                           .dy = work.dy + at,
                           .rows = run.rows,
                           .channels = width_,
                           .pivot = &main_.sums.pivot[c],
                           .s = &sums.s[c],
                           .q = &sums.q[c],
                           .signs = find_signs(run),
                           .x2 = two ? work.skip + at : nullptr,
                           .pivot2 = two ? &branch_.sums.pivot[c] : nullptr,
                           .q2 = two ? &branch_.sums.threads[thread].q[c] : nullptr});
  };
  const auto finish = [&](std::size_t begin, std::size_t end) {
    finish_backward(false, work.arrays, begin, end, work.samples);
    if (two) finish_backward(true, work.branch, begin, end, work.samples);
  };
  const auto apply = [&](const Run& run) {
    const std::size_t at = run.row * width_, c = run.channel;
    T* skip_grad = work.skip_grad ? work.skip_grad + at : nullptr;
    kernels.backward({.x = work.x + at,
                      .dy = work.dy + at,
                      .dx = work.dx ? work.dx + at : nullptr,
                      .rows = run.rows,
                      .channels = width_,
                      .a = &main_.a[c],
                      .c1 = &main_.c1[c],
                      .c0 = &main_.c0[c],
                      .adds_dx = op_.adds_input_grad,
                      .signs = find_signs(run),
                      .residual = two ? nullptr : skip_grad,
                      .adds_residual = op_.adds_input2_grad,
                      .x2 = two ? work.skip + at : nullptr,
                      .dx2 = two ? skip_grad : nullptr,
                      .a2 = two ? &branch_.a[c] : nullptr,
                      .d1 = two ? &branch_.c1[c] : nullptr,
                      .d0 = two ? &branch_.c0[c] : nullptr,
                      .adds_dx2 = op_.adds_input2_grad,
                      .streams = streams<T>()});
  };
  in_two_passes(work.samples, work.samples, sum_up, finish, apply);
  if (work.dx && !op_.adds_input_grad) clear_missing(work.dx, work.samples);
  if (work.skip_grad && !op_.adds_input2_grad) clear_missing(work.skip_grad, work.samples);
}

template void Norm::forward(const Forward<float>&);
template void Norm::forward(const Forward<Bf16>&);
template void Norm::backward(const Backward<float>&);
template void Norm::backward(const Backward<Bf16>&);

ChannelSums::ChannelSums(std::size_t channels, int thread_count)
    : pivot(channels),
      threads(static_cast<std::size_t>(thread_count),
              {std::vector<float>(channels), std::vector<float>(channels),
               std::vector<double>(channels), std::vector<double>(channels)}) {}

void ChannelSums::clear() {
  for (OfThread& thread : threads) {
    std::fill(thread.total_s.begin(), thread.total_s.end(), 0.0);
    std::fill(thread.total_q.begin(), thread.total_q.end(), 0.0);
  }
}

void ChannelSums::OfThread::flush(std::size_t channel, std::size_t count) {
  const auto move = [&](std::vector<float>& from, std::vector<double>& to) {
    for (std::size_t c = channel; c < channel + count; ++c) {
      to[c] += static_cast<double>(from[c]);
      from[c] = 0;
    }
  };
  move(s, total_s);
  move(q, total_q);
}

}  // namespace paceline::cpu
