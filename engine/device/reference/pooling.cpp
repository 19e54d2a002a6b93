#include <algorithm>
#include <cmath>

#include "engine/device/reference/operations.h"

namespace paceline::reference {

namespace {

constexpr int kOutside = -1;

// Index within a sample of element `place` of the window of output (oh, ow), channel c; kOutside
// in the padding.
int window_element(const Geometry& g, int oh, int ow, int c, int place) {
  const int ih = oh * g.stride + place / g.kernel - g.padding;
  const int iw = ow * g.stride + place % g.kernel - g.padding;
  if (ih < 0 || ih >= g.in.height || iw < 0 || iw >= g.in.width) return kOutside;
  return (ih * g.in.width + iw) * g.in.channels + c;
}

// Calls visit(output index, oh, ow, c) for every output element of a sample.
template <typename Visit>
void for_each_output(const Geometry& g, Visit visit) {
  std::size_t index = 0;
  for (int oh = 0; oh < g.out.height; ++oh) {
    for (int ow = 0; ow < g.out.width; ++ow) {
      for (int c = 0; c < g.out.channels; ++c) visit(index++, oh, ow, c);
    }
  }
}

}  // namespace

void max_pool_forward(const Geometry& g, const double* x, double* y, std::uint8_t* chosen,
                      std::size_t samples) {
  for (std::size_t n = 0; n < samples; ++n) {
    const double* xn = x + n * g.in.elements();
    const std::size_t base = n * g.out.elements();
    for_each_output(g, [&](std::size_t i, int oh, int ow, int c) {
      int best = kOutside;
      for (int place = 0; place < g.kernel * g.kernel; ++place) {
        const int at = window_element(g, oh, ow, c, place);
        if (at == kOutside) continue;
        const bool wins = best == kOutside || xn[at] > y[base + i] || std::isnan(xn[at]);
        if (!wins) continue;
        best = place;
        y[base + i] = xn[at];
      }
      chosen[base + i] = static_cast<std::uint8_t>(best);
    });
  }
}

void max_pool_backward(const Geometry& g, const double* dy, const std::uint8_t* chosen, double* dx,
                       std::size_t samples) {
  std::fill_n(dx, samples * g.in.elements(), 0.0);
  for (std::size_t n = 0; n < samples; ++n) {
    const std::size_t base = n * g.out.elements();
    double* dxn = dx + n * g.in.elements();
    for_each_output(g, [&](std::size_t i, int oh, int ow, int c) {
      dxn[window_element(g, oh, ow, c, chosen[base + i])] += dy[base + i];
    });
  }
}

void average_pool_forward(const Shape& in, const double* x, double* y, std::size_t samples) {
  const auto channels = static_cast<std::size_t>(in.channels);
  const std::size_t elements = in.elements(), places = elements / channels;
  std::fill_n(y, samples * channels, 0.0);
  for (std::size_t i = 0; i < samples * elements; ++i) {
    y[i / elements * channels + i % channels] += x[i] / static_cast<double>(places);
  }
}

void average_pool_backward(const Shape& in, const double* dy, double* dx, std::size_t samples) {
  const auto channels = static_cast<std::size_t>(in.channels);
  const std::size_t elements = in.elements(), places = elements / channels;
  for (std::size_t i = 0; i < samples * elements; ++i) {
    dx[i] = dy[i / elements * channels + i % channels] / static_cast<double>(places);
  }
}

}  // namespace paceline::reference
