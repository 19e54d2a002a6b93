#include <algorithm>
#include <deque>
#include <functional>
#include <vector>

#include "engine/core/error.h"
#include "engine/device/cuda/kernels/number.h"
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

class HostConv final : public ConvPlan {
 public:
  HostConv(const ConvRequest& request, Runtime& runtime) : request_(request), queued_(runtime) {}
  std::size_t workspace_bytes() const override { return 64; }
  std::string implementation() const override { return "naive, on the host"; }
  void run(const ConvOperands& operands, Stream stream) override {
    queued_.add(stream, [this, operands] {
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
    const auto count = [](auto... factors) { return (static_cast<std::size_t>(factors) * ...); };
    const ConvPass pass = request_.pass;
    T* out = pass == ConvPass::forward ? y : pass == ConvPass::backward_data ? x : w;
    std::vector<double> sums(
        pass == ConvPass::forward         ? count(s.batch, s.out_height(), s.out_width(), s.out)
        : pass == ConvPass::backward_data ? count(s.batch, s.height, s.width, s.in)
                                          : count(s.out, s.kernel, s.kernel, s.in));
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
      out[i] = from_float<T>(static_cast<float>(before + sums[i]));
    }
  }

  ConvRequest request_;
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

class HostProducts final : public Products {
 public:
  HostProducts(Runtime& runtime, bool epilogues) : runtime_(runtime), epilogues_(epilogues) {}
  std::unique_ptr<ConvPlan> conv(const ConvRequest& request) override {
    return std::make_unique<HostConv>(request, runtime_);
  }
  std::unique_ptr<MatmulPlan> matmul(const MatmulShape& shape) override {
    if (shape.epilogue != Epilogue::none && !epilogues_) {
      throw Error(ErrorKind::usage, "nothing is offered for this epilogue");
    }
    return std::make_unique<HostMatmul>(shape, runtime_);
  }
  std::string description() const override { return "naive products"; }

 private:
  Runtime& runtime_;
  bool epilogues_;
};

}  // namespace

std::unique_ptr<Products> make_host_products(Runtime& runtime, bool epilogues) {
  return std::make_unique<HostProducts>(runtime, epilogues);
}

}  // namespace paceline::cuda
