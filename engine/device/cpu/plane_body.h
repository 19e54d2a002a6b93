// Included once per instruction set, after lanes_body.h.

namespace paceline::cpu::PACELINE_ISA {

namespace {

struct Places {
  int begin, end;  // rows (or columns) of a window inside the image
};

PACELINE_INLINE Places find_places(int out, const Window& w, int extent) {
  const int first = out * w.stride - w.padding;
  const int end = extent - first < w.kernel ? extent - first : w.kernel;
  return {first < 0 ? -first : 0, end};
}

PACELINE_INLINE void take_places(const std::uint8_t* chosen, std::size_t n, IntVec& v) {
  std::int32_t lanes[kLanes] = {};
  for (std::size_t l = 0; l < n; ++l) lanes[l] = chosen[l];
  __builtin_memcpy(&v, lanes, sizeof v);
}

template <typename T>
void max_pool(const Window& w, const T* x, T* y, std::uint8_t* chosen) {
  const auto row = static_cast<std::size_t>(w.width) * w.channels;
  for (int i = 0; i < w.out_height; ++i) {
    const Places rows = find_places(i, w, w.height);
    for (int j = 0; j < w.out_width; ++j) {
      const Places columns = find_places(j, w, w.width);
      const std::ptrdiff_t corner =
          std::ptrdiff_t{i * w.stride - w.padding} * static_cast<std::ptrdiff_t>(row) +
          std::ptrdiff_t{j * w.stride - w.padding} * static_cast<std::ptrdiff_t>(w.channels);
      const std::size_t out = static_cast<std::size_t>(i * w.out_width + j) * w.channels;
      for_each_vector(w.channels, [&](std::size_t c, std::size_t n, auto whole) {
        constexpr bool kWhole = whole;
        Vec best{};
        IntVec place{};
        bool first = true;
        for (int u = rows.begin; u < rows.end; ++u) {
          for (int v = columns.begin; v < columns.end; ++v) {
            const std::ptrdiff_t at = corner + u * static_cast<std::ptrdiff_t>(row) +
                                      v * static_cast<std::ptrdiff_t>(w.channels) +
                                      static_cast<std::ptrdiff_t>(c);
            const Vec value = take<kWhole>(x + at, n);
            const IntVec greater = first ? IntVec{} - 1 : (value > best) | (value != value);
            best = greater ? value : best;
            place = greater ? IntVec{} + (u * w.kernel + v) : place;
            first = false;
          }
        }
        give<kWhole>(y + out + c, n, best);
        std::int32_t lanes[kLanes];
        __builtin_memcpy(lanes, &place, sizeof place);
        for (std::size_t l = 0; l < n; ++l) {
          chosen[out + c + l] = static_cast<std::uint8_t>(lanes[l]);
        }
      });
    }
  }
}

// Each place of the image gathers from the windows that contain it.
template <typename T>
void max_pool_backward(const Window& w, const T* dy, const std::uint8_t* chosen, T* dx, bool adds) {
  const auto first_out = [&](int at) {
    const int least = at + w.padding - w.kernel + 1;
    return least <= 0 ? 0 : (least + w.stride - 1) / w.stride;
  };
  const auto last_out = [&](int at, int extent) {
    const int most = (at + w.padding) / w.stride;
    return most < extent - 1 ? most : extent - 1;
  };
  for (int i = 0; i < w.height; ++i) {
    for (int j = 0; j < w.width; ++j) {
      const std::size_t in = static_cast<std::size_t>(i * w.width + j) * w.channels;
      for_each_vector(w.channels, [&](std::size_t c, std::size_t n, auto whole) {
        constexpr bool kWhole = whole;
        Vec sum{};
        for (int r = first_out(i); r <= last_out(i, w.out_height); ++r) {
          for (int s = first_out(j); s <= last_out(j, w.out_width); ++s) {
            const int place =
                (i + w.padding - r * w.stride) * w.kernel + (j + w.padding - s * w.stride);
            const std::size_t out = static_cast<std::size_t>(r * w.out_width + s) * w.channels + c;
            IntVec winners;
            take_places(chosen + out, n, winners);
            sum += winners == place ? take<kWhole>(dy + out, n) : Vec{};
          }
        }
        give<kWhole>(dx + in + c, n, adds ? take<kWhole>(dx + in + c, n) + sum : sum);
      });
    }
  }
}

template <typename T>
void average(const T* x, float* y, std::size_t rows, std::size_t channels) {
  const float share = 1.0F / static_cast<float>(rows);
  for_each_vector(channels, [&](std::size_t c, std::size_t n, auto whole) {
    constexpr bool kWhole = whole;
    Vec sum{};
    for (std::size_t r = 0; r < rows; ++r) sum += take<kWhole>(x + r * channels + c, n);
    give<kWhole>(y + c, n, sum * share);
  });
}

template <typename T>
void average_backward(const float* dy, T* dx, std::size_t rows, std::size_t channels, bool adds) {
  const float share = 1.0F / static_cast<float>(rows);
  for (std::size_t r = 0; r < rows; ++r) {
    for_each_vector(channels, [&](std::size_t c, std::size_t n, auto whole) {
      constexpr bool kWhole = whole;
      const Vec g = take<kWhole>(dy + c, n) * share;
      T* to = dx + r * channels + c;
      give<kWhole>(to, n, adds ? take<kWhole>(to, n) + g : g);
    });
  }
}

template <typename T>
void gather(const Window& w, const T* x, T* y) {
  const auto row = static_cast<std::size_t>(w.width) * w.channels;
  const auto stride = static_cast<std::size_t>(w.stride);
  for (std::size_t i = 0; i < static_cast<std::size_t>(w.out_height); ++i) {
    for (std::size_t j = 0; j < static_cast<std::size_t>(w.out_width); ++j, y += w.channels) {
      const T* from = x + i * stride * row + j * stride * w.channels;
      for_each_vector(w.channels, [&](std::size_t c, std::size_t n, auto whole) {
        constexpr bool kWhole = whole;
        give<kWhole>(y + c, n, take<kWhole>(from + c, n));
      });
    }
  }
}

template <typename T>
void scatter(const Window& w, const T* dy, T* dx, bool adds) {
  const auto width = static_cast<std::size_t>(w.width), row = width * w.channels;
  const auto stride = static_cast<std::size_t>(w.stride);
  if (!adds)
    __builtin_memset(static_cast<void*>(dx), 0,
                     static_cast<std::size_t>(w.height) * row * sizeof(T));
  for (std::size_t i = 0; i < static_cast<std::size_t>(w.out_height); ++i) {
    for (std::size_t j = 0; j < static_cast<std::size_t>(w.out_width); ++j, dy += w.channels) {
      T* to = dx + i * stride * row + j * stride * w.channels;
      for_each_vector(w.channels, [&](std::size_t c, std::size_t n, auto whole) {
        constexpr bool kWhole = whole;
        const Vec g = take<kWhole>(dy + c, n);
        give<kWhole>(to + c, n, adds ? take<kWhole>(to + c, n) + g : g);
      });
    }
  }
}

template <typename T>
void add_planes(const T* a, const T* b, T* y, std::size_t count) {
  for_each_vector(count, [&](std::size_t i, std::size_t n, auto whole) {
    constexpr bool kWhole = whole;
    give<kWhole>(y + i, n, take<kWhole>(a + i, n) + take<kWhole>(b + i, n));
  });
}

template <typename T>
void relu_plane(const T* x, T* y, std::size_t count) {
  for_each_vector(count, [&](std::size_t i, std::size_t n, auto whole) {
    constexpr bool kWhole = whole;
    const Vec v = take<kWhole>(x + i, n);
    give<kWhole>(y + i, n, masked(passing(v), v));
  });
}

template <typename T>
void relu_plane_backward(const T* y, const T* dy, T* dx, std::size_t count, bool adds) {
  for_each_vector(count, [&](std::size_t i, std::size_t n, auto whole) {
    constexpr bool kWhole = whole;
    const Vec g = masked(passing(take<kWhole>(y + i, n)), take<kWhole>(dy + i, n));
    give<kWhole>(dx + i, n, adds ? take<kWhole>(dx + i, n) + g : g);
  });
}

template <typename T, typename From>
void cast_pixels(const From* x, T* y, std::size_t count) {
  for_each_vector(count, [&](std::size_t i, std::size_t n, auto) {
    float lanes[kLanes];
    for (std::size_t l = 0; l < kLanes; ++l) {
      lanes[l] = l < n ? static_cast<float>(x[i + l]) * (1.0F / 255.0F) : 0;
    }
    Vec v;
    load(lanes, v);
    n == kLanes ? give<true>(y + i, n, v) : give<false>(y + i, n, v);
  });
}

template <typename T, typename From>
void split_pixels(const From* x, T* y, std::size_t places, std::size_t channels) {
  for (std::size_t c = 0; c < channels; ++c) {
    for_each_vector(places, [&](std::size_t i, std::size_t n, auto) {
      float lanes[kLanes] = {};
      for (std::size_t l = 0; l < n; ++l) {
        lanes[l] = static_cast<float>(x[(i + l) * channels + c]) * (1.0F / 255.0F);
      }
      Vec v;
      load(lanes, v);
      T* to = y + c * places + i;
      n == kLanes ? give<true>(to, n, v) : give<false>(to, n, v);
    });
  }
}

template <typename T>
constexpr PlaneKernels<T> kPlane = {max_pool<T>,
                                    max_pool_backward<T>,
                                    average<T>,
                                    average_backward<T>,
                                    gather<T>,
                                    scatter<T>,
                                    add_planes<T>,
                                    relu_plane<T>,
                                    relu_plane_backward<T>,
                                    cast_pixels<T, std::uint8_t>,
                                    cast_pixels<T, float>,
                                    split_pixels<T, std::uint8_t>,
                                    split_pixels<T, float>};

}  // namespace

}  // namespace paceline::cpu::PACELINE_ISA
