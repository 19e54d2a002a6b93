#include "tests/bench/onednn_bound.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <dnnl.hpp>
#include <random>
#include <unordered_map>
#include <vector>

namespace paceline::bench {

namespace {

using dnnl::memory;
using Tag = memory::format_tag;
using Dims = memory::dims;
constexpr auto kTraining = dnnl::prop_kind::forward_training;

const dnnl::engine& engine() {
  static const dnnl::engine one(dnnl::engine::kind::cpu, 0);
  return one;
}

// oneDNN 3 describes a primitive in one step, and names what it reads and what it writes.
#if DNNL_VERSION_MAJOR >= 3
using Softmax = dnnl::softmax_forward;
using SoftmaxBackward = dnnl::softmax_backward;
using Pooling = dnnl::pooling_forward;
using PoolingBackward = dnnl::pooling_backward;
#else
using Softmax = dnnl::softmax_v2_forward;
using SoftmaxBackward = dnnl::softmax_v2_backward;
using Pooling = dnnl::pooling_v2_forward;
using PoolingBackward = dnnl::pooling_v2_backward;
#endif

memory::data_type type_of(const memory::desc& desc) {
#if DNNL_VERSION_MAJOR >= 3
  return desc.get_data_type();
#else
  return desc.data_type();
#endif
}

template <typename Primitive, typename... Arguments>
typename Primitive::primitive_desc describe(const Arguments&... arguments) {
#if DNNL_VERSION_MAJOR >= 3
  return {engine(), arguments...};
#else
  return {{arguments...}, engine()};
#endif
}

template <typename Primitive, typename Forward, typename... Arguments>
typename Primitive::primitive_desc describe_backward(const Forward& forward,
                                                     const Arguments&... arguments) {
#if DNNL_VERSION_MAJOR >= 3
  return {engine(), arguments..., forward};
#else
  return {{arguments...}, engine(), forward};
#endif
}

template <typename Norm>
auto describe_norm(const memory::desc& x, dnnl::normalization_flags flags) {
#if DNNL_VERSION_MAJOR >= 3
  return describe<Norm>(kTraining, x, x, 1e-5F, flags);
#else
  return describe<Norm>(kTraining, x, 1e-5F, flags);
#endif
}

template <typename Norm, typename Forward>
auto describe_norm_backward(const Forward& forward, const memory::desc& x,
                            dnnl::normalization_flags flags) {
  constexpr auto kBackward = dnnl::prop_kind::backward;
#if DNNL_VERSION_MAJOR >= 3
  return describe_backward<Norm>(forward, kBackward, x, x, x, 1e-5F, flags);
#else
  return describe_backward<Norm>(forward, kBackward, x, x, 1e-5F, flags);
#endif
}

auto describe_eltwise(dnnl::algorithm algorithm, const memory::desc& x) {
#if DNNL_VERSION_MAJOR >= 3
  return describe<dnnl::eltwise_forward>(kTraining, algorithm, x, x, 0.0F, 0.0F);
#else
  return describe<dnnl::eltwise_forward>(kTraining, algorithm, x, 0.0F, 0.0F);
#endif
}

auto describe_eltwise_backward(const dnnl::eltwise_forward::primitive_desc& forward,
                               dnnl::algorithm algorithm, const memory::desc& x) {
#if DNNL_VERSION_MAJOR >= 3
  return describe_backward<dnnl::eltwise_backward>(forward, algorithm, x, x, x, 0.0F, 0.0F);
#else
  return describe_backward<dnnl::eltwise_backward>(forward, algorithm, x, x, 0.0F, 0.0F);
#endif
}

// Primitives in their order.
class Primitives final : public Bound {
 public:
  struct Operand {
    int name;
    memory::desc desc;
  };
  void add(const dnnl::primitive& primitive, const std::vector<Operand>& operands) {
    std::unordered_map<int, memory> arguments;
    for (const auto& [name, desc] : operands) arguments.emplace(name, make_memory(desc));
    steps_.push_back({primitive, std::move(arguments)});
  }
  double run() override {
    for (auto& [primitive, arguments] : steps_) primitive.execute(stream_, arguments);
    stream_.wait();
    return 1;
  }

 private:
  struct Step {
    dnnl::primitive primitive;
    std::unordered_map<int, memory> arguments;
  };

  // Small values: those of a fresh allocation may be subnormal or no numbers.
  static memory make_memory(const memory::desc& desc) {
    memory made(desc, engine());
    std::minstd_rand random(1);
    const std::size_t bytes = desc.get_size();
    if (type_of(desc) == memory::data_type::f32) {
      auto* values = static_cast<float*>(made.get_data_handle());
      for (std::size_t i = 0; i < bytes / 4; ++i) {
        values[i] = static_cast<float>(random() % 2048) / 1024 - 1;
      }
    } else if (type_of(desc) == memory::data_type::bf16) {
      auto* values = static_cast<std::uint16_t*>(made.get_data_handle());
      for (std::size_t i = 0; i < bytes / 2; ++i) {
        values[i] = static_cast<std::uint16_t>(0x3c00 + random() % 512);
      }
    } else if (bytes > 0) {
      std::memset(made.get_data_handle(), 0, bytes);
    }
    return made;
  }

  dnnl::stream stream_{engine()};
  std::vector<Step> steps_;
};

// An operation of a network, as oneDNN sees it.
struct Work {
  const Operation& op;
  memory::dim batch;
  memory::data_type type;
  Tag planes;  // their layout, where a primitive does not choose it
  Direction direction;

  bool forward() const { return direction == Direction::forward; }
  memory::desc plane(const Shape& shape) const {
    return {{batch, shape.channels, shape.height, shape.width}, type, planes};
  }
  memory::desc any(const Dims& dims) const { return {dims, type, Tag::any}; }
  memory::desc rows(memory::dim columns) const {
    return {{batch * op.in.height * op.in.width, columns}, type, Tag::ab};
  }
};

memory::desc vector_of(memory::dim count) {
  return {{count}, memory::data_type::f32, Tag::a};
}

void add_conv(Primitives& to, const Work& work) {
  const Operation& op = work.op;
  const memory::dim in = op.in.channels, out = op.out.channels, k = op.kernel;
  const auto side = [&](int size) { return (size + 2 * op.padding - op.kernel) / op.stride + 1; };
  const auto x = work.any({work.batch, in, op.in.height, op.in.width});
  const auto y = work.any({work.batch, out, side(op.in.height), side(op.in.width)});
  const auto w = work.any({out, in, k, k});
  const Dims strides{op.stride, op.stride}, padding{op.padding, op.padding};
  const auto algorithm = dnnl::algorithm::convolution_auto;
  const auto forward = describe<dnnl::convolution_forward>(
      kTraining, algorithm, x, w, vector_of(out), y, strides, padding, padding);
  if (work.forward()) {
    return to.add(dnnl::convolution_forward(forward), {{DNNL_ARG_SRC, forward.src_desc()},
                                                       {DNNL_ARG_WEIGHTS, forward.weights_desc()},
                                                       {DNNL_ARG_BIAS, forward.bias_desc()},
                                                       {DNNL_ARG_DST, forward.dst_desc()}});
  }
  const auto weights = describe_backward<dnnl::convolution_backward_weights>(
      forward, algorithm, x, w, vector_of(out), y, strides, padding, padding);
  to.add(dnnl::convolution_backward_weights(weights),
         {{DNNL_ARG_SRC, weights.src_desc()},
          {DNNL_ARG_DIFF_DST, weights.diff_dst_desc()},
          {DNNL_ARG_DIFF_WEIGHTS, weights.diff_weights_desc()},
          {DNNL_ARG_DIFF_BIAS, weights.diff_bias_desc()}});
  if (op.input_grad == kNone) return;
  const auto data = describe_backward<dnnl::convolution_backward_data>(forward, algorithm, x, w, y,
                                                                       strides, padding, padding);
  to.add(dnnl::convolution_backward_data(data), {{DNNL_ARG_DIFF_DST, data.diff_dst_desc()},
                                                 {DNNL_ARG_WEIGHTS, data.weights_desc()},
                                                 {DNNL_ARG_DIFF_SRC, data.diff_src_desc()}});
}

void add_eltwise(Primitives& to, const Work& work, dnnl::algorithm algorithm,
                 const memory::desc& x) {
  const auto forward = describe_eltwise(algorithm, x);
  if (work.forward()) {
    return to.add(dnnl::eltwise_forward(forward), {{DNNL_ARG_SRC, x}, {DNNL_ARG_DST, x}});
  }
  to.add(dnnl::eltwise_backward(describe_eltwise_backward(forward, algorithm, x)),
         {{DNNL_ARG_SRC, x}, {DNNL_ARG_DIFF_DST, x}, {DNNL_ARG_DIFF_SRC, x}});
}

void add_pooling(Primitives& to, const Work& work, dnnl::algorithm algorithm, const Shape& in,
                 const Shape& out, int side, int stride, int padding) {
  const auto x = work.plane(in), y = work.plane(out);
  const Dims strides{stride, stride}, kernel{side, side}, dilation{0, 0}, left{padding, padding};
  const auto reach = [&](int from, int to_size) {  // what the last window needs on the right
    return memory::dim{(to_size - 1) * stride + side - from - padding};
  };
  const Dims right{std::max<memory::dim>(0, reach(in.height, out.height)),
                   std::max<memory::dim>(0, reach(in.width, out.width))};
  const auto forward =
      describe<Pooling>(kTraining, algorithm, x, y, strides, kernel, dilation, left, right);
  std::vector<Primitives::Operand> operands;
  if (forward.workspace_desc().get_size() > 0) {
    operands.push_back({DNNL_ARG_WORKSPACE, forward.workspace_desc()});
  }
  if (work.forward()) {
    operands.insert(operands.end(), {{DNNL_ARG_SRC, x}, {DNNL_ARG_DST, y}});
    return to.add(Pooling(forward), operands);
  }
  operands.insert(operands.end(), {{DNNL_ARG_DIFF_SRC, x}, {DNNL_ARG_DIFF_DST, y}});
  to.add(PoolingBackward(describe_backward<PoolingBackward>(forward, algorithm, x, y, strides,
                                                            kernel, dilation, left, right)),
         operands);
}

template <typename Norm, typename NormBackward>
void add_norm(Primitives& to, const Work& work, const memory::desc& x, memory::dim channels,
              memory::dim statistics, bool relu) {
  auto flags = dnnl::normalization_flags::use_scale | dnnl::normalization_flags::use_shift;
  if (relu) flags = flags | dnnl::normalization_flags::fuse_norm_relu;
  const auto forward = describe_norm<Norm>(x, flags);
  std::vector<Primitives::Operand> operands = {{DNNL_ARG_SRC, x},
                                               {DNNL_ARG_SCALE, vector_of(channels)},
                                               {DNNL_ARG_MEAN, vector_of(statistics)},
                                               {DNNL_ARG_VARIANCE, vector_of(statistics)}};
  if (relu) operands.push_back({DNNL_ARG_WORKSPACE, forward.workspace_desc()});
  // oneDNN 3 refuses it in the backward of batch_norm only.
  if (work.forward() || DNNL_VERSION_MAJOR < 3 || work.op.kind == OpKind::layer_norm) {
    operands.push_back({DNNL_ARG_SHIFT, vector_of(channels)});
  }
  if (work.forward()) {
    operands.push_back({DNNL_ARG_DST, x});
    return to.add(Norm(forward), operands);
  }
  operands.insert(operands.end(), {{DNNL_ARG_DIFF_DST, x},
                                   {DNNL_ARG_DIFF_SRC, x},
                                   {DNNL_ARG_DIFF_SCALE, vector_of(channels)},
                                   {DNNL_ARG_DIFF_SHIFT, vector_of(channels)}});
  to.add(NormBackward(describe_norm_backward<NormBackward>(forward, x, flags)), operands);
}

// The sum is a primitive of its own, and so is the ReLU behind it.
void add_batch_norm(Primitives& to, const Work& work) {
  const Operation& op = work.op;
  const memory::desc x = work.plane(op.in);
  const auto norm = [&] {
    add_norm<dnnl::batch_normalization_forward, dnnl::batch_normalization_backward>(
        to, work, x, op.in.channels, op.in.channels, op.relu && !op.add);
  };
  const auto relu = [&] { add_eltwise(to, work, dnnl::algorithm::eltwise_relu, x); };
  if (work.forward()) norm();
  if (op.add && work.forward()) {
    to.add(dnnl::binary(describe<dnnl::binary>(dnnl::algorithm::binary_add, x, x, x)),
           {{DNNL_ARG_SRC_0, x}, {DNNL_ARG_SRC_1, x}, {DNNL_ARG_DST, x}});
  }
  if (op.add && op.relu) relu();
  if (!work.forward()) {
    if (op.pool > 0) {
      add_pooling(to, work, dnnl::algorithm::pooling_max, op.in, op.out, op.pool, op.stride,
                  op.padding);
    }
    return norm();
  }
  if (op.pool > 0) {
    add_pooling(to, work, dnnl::algorithm::pooling_max, op.in, op.out, op.pool, op.stride,
                op.padding);
  }
}

// Without the causal mask, for which oneDNN has no primitive.
void add_attention(Primitives& to, const Work& work) {
  const memory::dim heads = work.op.heads, places = work.op.in.height * work.op.in.width;
  const memory::dim width = work.op.out.channels / heads, row = 3 * heads * width;
  const Dims dims{work.batch, heads, places, width}, turned{work.batch, heads, width, places};
  const memory::desc plane(dims, work.type, Dims{places * row, width, row, 1});
  const memory::desc across(turned, work.type, Dims{places * row, width, 1, row});
  const memory::desc weights({work.batch, heads, places, places}, work.type, Tag::abcd);
  const memory::desc weights_turned({work.batch, heads, places, places}, work.type, Tag::abdc);
  const auto product = [&](const memory::desc& a, const memory::desc& b, const memory::desc& c) {
    to.add(dnnl::matmul(describe<dnnl::matmul>(a, b, c)),
           {{DNNL_ARG_SRC, a}, {DNNL_ARG_WEIGHTS, b}, {DNNL_ARG_DST, c}});
  };
  const auto algorithm = dnnl::algorithm::softmax_accurate;
  const auto softmax = describe<Softmax>(kTraining, algorithm, weights, weights, 3);
  product(plane, across, weights);
  if (work.forward()) {
    to.add(Softmax(softmax), {{DNNL_ARG_SRC, weights}, {DNNL_ARG_DST, weights}});
    return product(weights, plane, plane);
  }
  // As ours, which keeps no weights: they are computed again.
  to.add(Softmax(softmax), {{DNNL_ARG_SRC, weights}, {DNNL_ARG_DST, weights}});
  product(weights_turned, plane, plane);
  product(plane, across, weights);
  to.add(SoftmaxBackward(
             describe_backward<SoftmaxBackward>(softmax, algorithm, weights, weights, weights, 3)),
         {{DNNL_ARG_DST, weights}, {DNNL_ARG_DIFF_DST, weights}, {DNNL_ARG_DIFF_SRC, weights}});
  product(weights, plane, plane);
  product(weights_turned, plane, plane);
}

bool add_operation(Primitives& to, const Work& work) {
  const Operation& op = work.op;
  switch (op.kind) {
    case OpKind::conv:
      if (work.forward() || !op.relu) add_conv(to, work);
      if (op.relu) {
        const Shape before{op.out.height * std::max(1, op.pool),
                           op.out.width * std::max(1, op.pool), op.out.channels};
        const bool pools = op.pool > 0;
        const auto pool = [&] {
          add_pooling(to, work, dnnl::algorithm::pooling_max, before, op.out, op.pool, op.pool, 0);
        };
        if (!work.forward() && pools) pool();
        add_eltwise(to, work, dnnl::algorithm::eltwise_relu, work.plane(before));
        if (work.forward() && pools) pool();
        if (!work.forward()) add_conv(to, work);
      }
      return true;
    case OpKind::batch_norm:
      if (op.branch) return false;
      add_batch_norm(to, work);
      return true;
    case OpKind::max_pool:
      add_pooling(to, work, dnnl::algorithm::pooling_max, op.in, op.out, op.kernel, op.stride,
                  op.padding);
      return true;
    case OpKind::average_pool:
      add_pooling(to, work, dnnl::algorithm::pooling_avg_exclude_padding, op.in, op.out,
                  op.in.height, 1, 0);
      return true;
    case OpKind::gelu:
      add_eltwise(to, work, dnnl::algorithm::eltwise_gelu_tanh, work.rows(op.in.channels));
      return true;
    case OpKind::layer_norm:
      add_norm<dnnl::layer_normalization_forward, dnnl::layer_normalization_backward>(
          to, work, work.rows(op.in.channels), op.in.channels,
          work.batch * op.in.height * op.in.width, false);
      return true;
    case OpKind::attention:
      add_attention(to, work);
      return true;
    default:
      return false;
  }
}

}  // namespace

std::unique_ptr<Bound> make_onednn_bound(const Operation& op, int batch, DType type,
                                         Direction direction) {
  std::unique_ptr<Primitives> best;
  double least = 0;
  for (const Tag planes : {Tag::nhwc, Tag::nChw16c, Tag::nChw8c}) {
    auto made = std::make_unique<Primitives>();
    double seconds = 1e9;
    try {
      if (!add_operation(
              *made,
              {op, batch, type == DType::bf16 ? memory::data_type::bf16 : memory::data_type::f32,
               planes, direction})) {
        return nullptr;
      }
      for (int i = 0; i < 3; ++i) {
        const auto start = std::chrono::steady_clock::now();
        made->run();
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
        seconds = std::min(seconds, took.count());
      }
    } catch (const dnnl::error&) {
      continue;
    }
    if (!best || seconds < least) best = std::move(made), least = seconds;
  }
  return best;
}

std::unique_ptr<Bound> make_onednn_loss(std::size_t rows, std::size_t classes) {
  const memory::desc logits({static_cast<memory::dim>(rows), static_cast<memory::dim>(classes)},
                            memory::data_type::f32, Tag::ab);
  const auto algorithm = dnnl::algorithm::softmax_log;
  const auto forward = describe<Softmax>(kTraining, algorithm, logits, logits, 1);
  auto made = std::make_unique<Primitives>();
  made->add(Softmax(forward), {{DNNL_ARG_SRC, logits}, {DNNL_ARG_DST, logits}});
  made->add(SoftmaxBackward(
                describe_backward<SoftmaxBackward>(forward, algorithm, logits, logits, logits, 1)),
            {{DNNL_ARG_DST, logits}, {DNNL_ARG_DIFF_DST, logits}, {DNNL_ARG_DIFF_SRC, logits}});
  return made;
}

}  // namespace paceline::bench
