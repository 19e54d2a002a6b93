#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>
#include <functional>
#include <span>
#include <vector>

#include "engine/core/error.h"
#include "engine/device/cuda/kernels/number.h"
#include "engine/device/cuda/products.h"
#include "tests/support/host_cuda/host_runtime.h"

namespace paceline::cuda {

namespace {

template <typename Body>
void with_type(DType type, Body body) {
  if (type == DType::f32) return body(float{});
  if (type == DType::bf16) return body(Bf16{});
  body(Half{});
}

// Work queued as a library queues its own; kept, because a graph may run it again.
class Queued {
 public:
  explicit Queued(Runtime& runtime) : runtime_(runtime) {}
  void add(Stream stream, std::function<void()> work) {
    kept_.push_back(std::move(work));
    runtime_.host_task([](void* work) { (*static_cast<std::function<void()>*>(work))(); },
                       &kept_.back(), stream);
  }

 private:
  Runtime& runtime_;
  std::deque<std::function<void()>> kept_;
};

// ThreadSanitizer sees calls of memset, but not the code that GCC makes of one of a known size.
void overwrite(void* memory, std::size_t bytes) {
  const volatile std::size_t unknown = bytes;
  if (memory) std::memset(memory, 1, unknown);
}

// Calls visit(x index, w index, y index) for every product of a convolution.
template <typename Visit>
void for_each_product(const ConvShape& s, Visit visit) {
  const int oh = s.out_height(), ow = s.out_width();
  for (int n = 0; n < s.batch; ++n) {
    for (int i = 0; i < oh * ow; ++i) {
      for (int k = 0; k < s.kernel * s.kernel; ++k) {
        const int h = i / ow * s.stride + k / s.kernel - s.padding;
        const int w = i % ow * s.stride + k % s.kernel - s.padding;
        if (h < 0 || h >= s.height || w < 0 || w >= s.width) continue;
        const int x = ((n * s.height + h) * s.width + w) * s.in;
        const int y = (n * oh * ow + i) * s.out;
        for (int o = 0; o < s.out; ++o) {
          for (int c = 0; c < s.in; ++c) {
            visit(x + c, (o * s.kernel * s.kernel + k) * s.in + c, y + o);
          }
        }
      }
    }
  }
}

template <typename... Sides>
std::size_t count(Sides... sides) {
  return (static_cast<std::size_t>(sides) * ...);
}

std::size_t elements_of_x(const ConvShape& s) {
  return count(s.batch, s.height, s.width, s.in);
}
std::size_t elements_of_y(const ConvShape& s) {
  return count(s.batch, s.out_height(), s.out_width(), s.out);
}

std::size_t elements_of_w(const ConvShape& s) {
  return count(s.out, s.kernel, s.kernel, s.in);
}

class HostConv final : public ConvPlan {
 public:
  HostConv(const ConvRequest& request, Runtime& runtime) : request_(request), queued_(runtime) {}
  std::size_t workspace_bytes() const override { return 64; }
  std::string implementation() const override { return "naive, on the host"; }
  void run(const ConvOperands& operands, Stream stream) override {
    queued_.add(stream, [this, operands] {
      overwrite(operands.workspace, workspace_bytes());
      with_type(stored_as(request_.shape.math),
                [&](auto type) { run_as<decltype(type)>(operands); });
    });
  }

 private:
  template <typename T>
  void run_as(const ConvOperands& operands) const {
    const ConvShape& s = request_.shape;
    auto *x = static_cast<T*>(operands.x), *w = static_cast<T*>(operands.w),
         *y = static_cast<T*>(operands.y);
    const ConvPass pass = request_.pass;
    T* out = pass == ConvPass::forward ? y : pass == ConvPass::backward_data ? x : w;
    std::vector<double> sums(pass == ConvPass::forward         ? elements_of_y(s)
                             : pass == ConvPass::backward_data ? elements_of_x(s)
                                                               : elements_of_w(s));
    const auto value = [](const T* data, int at) {
      return static_cast<double>(to_float(data[static_cast<std::size_t>(at)]));
    };
    for_each_product(s, [&](int xi, int wi, int yi) {
      switch (pass) {
        case ConvPass::forward:
          sums[static_cast<std::size_t>(yi)] += value(x, xi) * value(w, wi);
          return;
        case ConvPass::backward_data:
          sums[static_cast<std::size_t>(xi)] += value(y, yi) * value(w, wi);
          return;
        case ConvPass::backward_weights:
          sums[static_cast<std::size_t>(wi)] += value(x, xi) * value(y, yi);
          return;
      }
    });
    for (std::size_t i = 0; i < sums.size(); ++i) {
      const double before = request_.accumulates ? static_cast<double>(to_float(out[i])) : 0;
      out[i] = from_float<T>(static_cast<float>(finish<T>(operands, i, before + sums[i])));
    }
  }

  template <typename T>
  double finish(const ConvOperands& operands, std::size_t i, double sum) const {
    const std::size_t channel = i % static_cast<std::size_t>(request_.shape.out);
    auto* before = static_cast<T*>(operands.before);
    if (has_vector(request_.epilogue)) {
      sum += static_cast<double>(to_float(static_cast<const T*>(operands.bias)[channel]));
    }
    if (request_.epilogue == Epilogue::gelu_gradient) {
      return sum * gelu_slope(static_cast<double>(to_float(before[i])));
    }
    if (request_.epilogue == Epilogue::bias_add) {
      return sum + static_cast<double>(to_float(before[i]));
    }
    if (request_.epilogue != Epilogue::bias_gelu) return sum;
    before[i] = from_float<T>(static_cast<float>(sum));
    return gelu(sum);
  }

  // In its tanh form.
  static double gelu(double x) {
    return 0.5 * x * (1 + std::tanh(0.7978845608 * (x + 0.044715 * x * x * x)));
  }
  static double gelu_slope(double x) {
    constexpr double kStep = 1e-5;
    return (gelu(x + kStep) - gelu(x - kStep)) / (2 * kStep);
  }

  ConvRequest request_;
  Queued queued_;
};

bool is_forward(const FusedRequest& request) {
  return request.kind == FusedKind::forward_sums;
}

// A convolution with sums beside it, as products.h defines it.
class HostFused final : public FusedPlan {
 public:
  HostFused(const FusedRequest& request, Runtime& runtime) : request_(request), queued_(runtime) {}
  std::size_t workspace_bytes() const override { return 128; }  // more than others
  std::string implementation() const override { return "naive, on the host, with sums"; }
  void run(const FusedOperands& operands, Stream stream) override {
    queued_.add(stream, [this, operands] {
      with_type(stored_as(request_.shape.math),
                [&](auto type) { run_as<decltype(type)>(operands); });
    });
  }

 private:
  template <typename T>
  static double at(const void* data, std::size_t index) {
    return static_cast<double>(to_float(static_cast<const T*>(data)[index]));
  }
  static double at_channel(const void* data, std::size_t channel) {
    return static_cast<double>(static_cast<const float*>(data)[channel]);
  }

  template <typename T>
  void run_as(const FusedOperands& o) const {
    const ConvShape& s = request_.shape;
    const bool forward = is_forward(request_);
    std::vector<double> plane(forward ? elements_of_y(s) : elements_of_x(s));
    for_each_product(s, [&](int xi, int wi, int yi) {
      const auto from = static_cast<std::size_t>(forward ? xi : yi);
      const auto to = static_cast<std::size_t>(forward ? yi : xi);
      plane[to] += at<T>(forward ? o.x : o.y, from) * at<T>(o.w, static_cast<std::size_t>(wi));
    });
    const auto channels = static_cast<std::size_t>(forward ? s.out : s.in);
    std::vector<double> sums(channels), products(channels);
    T* out = static_cast<T*>(forward ? o.y : o.x);
    for (std::size_t i = 0; i < plane.size(); ++i) {
      const std::size_t channel = i % channels;
      if (request_.adds_branch) plane[i] += at<T>(o.branch, i);
      if (!forward && !passes<T>(o, i, channel)) plane[i] = 0;
      out[i] = from_float<T>(static_cast<float>(plane[i]));
      const double value = static_cast<double>(to_float(out[i]));
      sums[channel] += value;
      products[channel] += value * (forward ? value : at<T>(o.z, i));
    }
    for (std::size_t channel = 0; channel < channels; ++channel) {
      static_cast<float*>(o.sum)[channel] = static_cast<float>(sums[channel]);
      static_cast<float*>(o.sum_of_products)[channel] = static_cast<float>(products[channel]);
    }
  }

  template <typename T>
  bool passes(const FusedOperands& o, std::size_t i, std::size_t channel) const {
    if (request_.kind == FusedKind::backward_mask_sums) {
      return (static_cast<const std::uint8_t*>(o.mask)[i / 8] >> i % 8 & 1) != 0;
    }
    return at_channel(o.scale, channel) * at<T>(o.z, i) + at_channel(o.shift, channel) > 0;
  }

  FusedRequest request_;
  Queued queued_;
};

class HostMatmul final : public MatmulPlan {
 public:
  HostMatmul(const MatmulShape& shape, Runtime& runtime) : s_(shape), queued_(runtime) {}
  std::size_t workspace_bytes() const override { return 0; }
  std::string implementation() const override { return "naive, on the host"; }
  void run(const MatmulOperands& operands, Stream stream) override {
    queued_.add(stream, [this, operands] { run_now(operands); });
  }

 private:
  static std::size_t at(int row, int column, int columns) {
    return static_cast<std::size_t>(row) * static_cast<std::size_t>(columns) +
           static_cast<std::size_t>(column);
  }
  void run_now(const MatmulOperands& o) const {
    for (int i = 0; i < s_.m; ++i) {
      for (int j = 0; j < s_.n; ++j) {
        double sum = s_.accumulates ? static_cast<double>(o.out[at(i, j, s_.n)]) : 0;
        for (int k = 0; k < s_.k; ++k) {
          const float left = o.left[s_.left_transposed ? at(k, i, s_.m) : at(i, k, s_.k)];
          const float right = o.right[s_.right_transposed ? at(j, k, s_.k) : at(k, j, s_.n)];
          sum += static_cast<double>(left) * static_cast<double>(right);
        }
        if (adds_bias()) sum += static_cast<double>(o.bias[j]);
        if (s_.epilogue == Epilogue::bias_relu) sum = std::max(sum, 0.0);
        o.out[at(i, j, s_.n)] = static_cast<float>(sum);
      }
    }
    if (s_.epilogue != Epilogue::bias_gradient) return;
    for (int j = 0; j < s_.n; ++j) {
      double sum = 0;
      for (int k = 0; k < s_.k; ++k) sum += static_cast<double>(o.right[at(k, j, s_.n)]);
      o.bias[j] = static_cast<float>(sum);
    }
  }
  bool adds_bias() const {
    return s_.epilogue == Epilogue::bias || s_.epilogue == Epilogue::bias_relu;
  }

  MatmulShape s_;
  Queued queued_;
};

class HostApart final : public ConvPlan {
 public:
  explicit HostApart(ConvApart apart) : apart_(std::move(apart)) {}
  std::size_t workspace_bytes() const override { return apart_.workspace_bytes; }
  std::string implementation() const override { return "naive, and own kernels"; }
  void run(const ConvOperands& operands, Stream stream) override { apart_.run(operands, stream); }

 private:
  ConvApart apart_;
};

class HostAttention final : public AttentionPlan {
 public:
  explicit HostAttention(AttentionWork own) : own_(std::move(own)) {}
  std::size_t workspace_bytes() const override { return 0; }
  std::string implementation() const override { return "own kernels"; }
  void run(const AttentionOperands& operands, Stream stream) override { own_(operands, stream); }

 private:
  AttentionWork own_;
};

class HostProducts final : public Products {
 public:
  HostProducts(Runtime& runtime, bool epilogues, HostFault* fault)
      : runtime_(runtime), epilogues_(epilogues), fault_(fault) {}
  void announce(const std::vector<FusedRequest>&) override {}
  // Always faster than its baseline, which has to leave the same plane.
  std::unique_ptr<FusedPlan> fused(const FusedRequest& request,
                                   const FusedBaseline& baseline) override {
    auto plan = std::make_unique<HostFused>(request, runtime_);
    with_type(stored_as(request.shape.math),
              [&](auto type) { compare<decltype(type)>(request, *plan, baseline); });
    return plan;
  }
  std::unique_ptr<ConvPlan> conv(const ConvRequest& request) override {
    if (fault_ && fault_->now("conv")) refuse("this convolution");
    return std::make_unique<HostConv>(request, runtime_);
  }
  std::unique_ptr<ConvPlan> conv_with(const ConvRequest& request, ConvApart apart) override {
    if (epilogues_) return std::make_unique<HostConv>(request, runtime_);
    return std::make_unique<HostApart>(std::move(apart));
  }
  std::unique_ptr<MatmulPlan> matmul(const MatmulShape& shape) override {
    if (shape.epilogue != Epilogue::none && !epilogues_) refuse("this epilogue");
    if (fault_ && fault_->now("matmul")) refuse("this product");
    return std::make_unique<HostMatmul>(shape, runtime_);
  }
  std::unique_ptr<AttentionPlan> attention(const AttentionRequest&, AttentionWork own) override {
    return std::make_unique<HostAttention>(std::move(own));
  }
  std::string description() const override { return "naive products"; }

 private:
  [[noreturn]] static void refuse(const std::string& what) {
    throw Error(ErrorKind::usage, "nothing is offered for " + what);
  }
  template <typename T>
  void compare(const FusedRequest& request, FusedPlan& plan, const FusedBaseline& baseline) {
    const ConvShape& s = request.shape;
    std::vector<Memory> memory;
    const auto values = [&](std::size_t elements, int seed) {
      memory.push_back(runtime_.device_memory(elements * sizeof(T)));
      auto* made = reinterpret_cast<T*>(memory.back().data());
      for (std::size_t i = 0; i < elements; ++i) {
        made[i] = from_float<T>(
            static_cast<float>((i * 37 + static_cast<std::size_t>(seed)) % 17) / 8 - 1);
      }
      return std::span(made, elements);
    };
    const auto filled = [&](std::size_t elements, auto value) {
      memory.push_back(runtime_.device_memory(elements * sizeof value));
      auto* made = reinterpret_cast<decltype(value)*>(memory.back().data());
      std::fill_n(made, elements, value);
      return made;
    };
    const auto channels = static_cast<std::size_t>(std::max(s.in, s.out));
    const auto x = values(elements_of_x(s), 1), same_x = values(elements_of_x(s), 1);
    const auto y = values(elements_of_y(s), 3), same_y = values(elements_of_y(s), 3);
    // ReLU lets everything pass, as what the baseline leaves is not masked yet.
    FusedOperands o;
    o.w = values(elements_of_w(s), 2).data(), o.z = values(elements_of_x(s), 4).data();
    o.mask = filled(elements_of_x(s) / 8 + 1, std::uint8_t{0xFF});
    o.scale = filled(channels, 0.0F), o.shift = filled(channels, 1.0F);
    o.sum = filled(channels, 0.0F), o.sum_of_products = filled(channels, 0.0F);
    o.workspace = filled(plan.workspace_bytes(), std::byte{0});
    const Stream stream = runtime_.make_stream();
    o.x = o.branch = x.data(), o.y = y.data();
    plan.run(o, stream);
    baseline.behind(o, stream);
    o.x = o.branch = same_x.data(), o.y = same_y.data();
    baseline.apart(o, stream);
    runtime_.synchronize_stream(stream);
    runtime_.destroy_stream(stream);
    const auto same = [](std::span<const T> a, std::span<const T> b) {
      return std::equal(a.begin(), a.end(), b.begin(),
                        [](T left, T right) { return to_float(left) == to_float(right); });
    };
    if (same(x, same_x) && same(y, same_y)) return;
    throw Error(ErrorKind::internal,
                "a fused convolution and its baseline compute different planes");
  }

  Runtime& runtime_;
  bool epilogues_;
  HostFault* fault_;
};

}  // namespace

std::unique_ptr<Products> make_host_products(Runtime& runtime, bool epilogues, HostFault* fault) {
  return std::make_unique<HostProducts>(runtime, epilogues, fault);
}

}  // namespace paceline::cuda
