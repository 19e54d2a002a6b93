#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>
#include <functional>
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
  HostConv(const ConvRequest& request, Runtime& runtime, bool is_measured)
      : request_(request), is_measured_(is_measured), queued_(runtime) {}
  std::size_t workspace_bytes() const override { return 64; }
  double seconds() const override {  // a nanosecond each multiply-add
    const ConvShape& s = request_.shape;
    return is_measured_
               ? 1e-9 * static_cast<double>(elements_of_y(s) * count(s.kernel, s.kernel, s.in))
               : 0;
  }
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
    if (!writes_vector(request_.epilogue)) return;
    const auto channels = static_cast<std::size_t>(s.out);
    std::vector<double> totals(channels);
    for (std::size_t i = 0; i < elements_of_y(s); ++i) {
      totals[i % channels] += static_cast<double>(to_float(y[i]));
    }
    for (std::size_t i = 0; i < channels; ++i) {
      static_cast<T*>(operands.bias)[i] = from_float<T>(static_cast<float>(totals[i]));
    }
  }

  template <typename T>
  double finish(const ConvOperands& operands, std::size_t i, double sum) const {
    const std::size_t channel = i % static_cast<std::size_t>(request_.shape.out);
    auto* before = static_cast<T*>(operands.before);
    if (has_vector(request_.epilogue) && !writes_vector(request_.epilogue)) {
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
  bool is_measured_;
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
  std::unique_ptr<ConvPlan> conv(const ConvRequest& request) override {
    if (request.epilogue != Epilogue::none && !epilogues_) refuse("this epilogue");
    if (fault_ && fault_->now("conv")) refuse("this convolution");
    return std::make_unique<HostConv>(request, runtime_, epilogues_);
  }
  std::unique_ptr<ConvPlan> conv_with(const ConvRequest& request, ConvApart apart) override {
    if (epilogues_) return std::make_unique<HostConv>(request, runtime_, epilogues_);
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
  // Without epilogues everything is done as it was before something competed.
  std::size_t own_way(const OwnWays& own) override { return epilogues_ ? own.ways - 1 : 0; }
  std::string description() const override { return "naive products"; }

 private:
  [[noreturn]] static void refuse(const std::string& what) {
    throw Error(ErrorKind::usage, "nothing is offered for " + what);
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
