// Operations that are Paceline's own on the cpu device, beside oneDNN's primitives for the same
// work: one thread, fp32 and, with AVX-512, bf16. oneDNN gets the layout that suits it best, and
// nothing of what ours do on the way (sums for a batch_norm, a causal mask). The counter `bound` is
// oneDNN's time over ours. Dropout, embeddings, optimizers and clipping have no primitive.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <dnnl.hpp>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>
#if defined(__SSE__)
#include <immintrin.h>
#endif

#include "engine/device/cpu/kernels.h"
#include "engine/device/device.h"
#include "tests/bench/main.h"
#include "tests/bench/turns.h"
#include "tests/conformance/device/cases.h"
#include "workloads/workload.h"

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

// oneDNN 3 describes a primitive in one step, and names each operand.
#if DNNL_VERSION_MAJOR >= 3
memory::data_type type_of(const memory::desc& desc) {
  return desc.get_data_type();
}
using Softmax = dnnl::softmax_forward;
using SoftmaxBackward = dnnl::softmax_backward;
using Pooling = dnnl::pooling_forward;
using PoolingBackward = dnnl::pooling_backward;
template <typename Primitive, typename... Arguments>
typename Primitive::primitive_desc describe(const Arguments&... arguments) {
  return {engine(), arguments...};
}
template <typename Primitive, typename Forward, typename... Arguments>
typename Primitive::primitive_desc describe_backward(const Forward& forward,
                                                     const Arguments&... arguments) {
  return {engine(), arguments..., forward};
}
template <typename Norm>
auto describe_norm(const memory::desc& x, dnnl::normalization_flags flags) {
  return describe<Norm>(kTraining, x, x, 1e-5F, flags);
}
template <typename Norm, typename Forward>
auto describe_norm_backward(const Forward& forward, const memory::desc& x,
                            dnnl::normalization_flags flags) {
  return describe_backward<Norm>(forward, dnnl::prop_kind::backward, x, x, x, 1e-5F, flags);
}
auto describe_eltwise(dnnl::algorithm algorithm, const memory::desc& x) {
  return describe<dnnl::eltwise_forward>(kTraining, algorithm, x, x, 0.0F, 0.0F);
}
auto describe_eltwise_backward(const dnnl::eltwise_forward::primitive_desc& forward,
                               dnnl::algorithm algorithm, const memory::desc& x) {
  return describe_backward<dnnl::eltwise_backward>(forward, algorithm, x, x, x, 0.0F, 0.0F);
}
#else
memory::data_type type_of(const memory::desc& desc) {
  return desc.data_type();
}
using Softmax = dnnl::softmax_v2_forward;
using SoftmaxBackward = dnnl::softmax_v2_backward;
using Pooling = dnnl::pooling_v2_forward;
using PoolingBackward = dnnl::pooling_v2_backward;
template <typename Primitive, typename... Arguments>
typename Primitive::primitive_desc describe(const Arguments&... arguments) {
  return {{arguments...}, engine()};
}
template <typename Primitive, typename Forward, typename... Arguments>
typename Primitive::primitive_desc describe_backward(const Forward& forward,
                                                     const Arguments&... arguments) {
  return {{arguments...}, engine(), forward};
}
template <typename Norm>
auto describe_norm(const memory::desc& x, dnnl::normalization_flags flags) {
  return describe<Norm>(kTraining, x, 1e-5F, flags);
}
template <typename Norm, typename Forward>
auto describe_norm_backward(const Forward& forward, const memory::desc& x,
                            dnnl::normalization_flags flags) {
  return describe_backward<Norm>(forward, dnnl::prop_kind::backward, x, x, 1e-5F, flags);
}
auto describe_eltwise(dnnl::algorithm algorithm, const memory::desc& x) {
  return describe<dnnl::eltwise_forward>(kTraining, algorithm, x, 0.0F, 0.0F);
}
auto describe_eltwise_backward(const dnnl::eltwise_forward::primitive_desc& forward,
                               dnnl::algorithm algorithm, const memory::desc& x) {
  return describe_backward<dnnl::eltwise_backward>(forward, algorithm, x, x, 0.0F, 0.0F);
}
#endif

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

enum class Direction { forward, backward };

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

// The fastest over layouts.
std::unique_ptr<Primitives> make_bound(const Operation& op, int batch, DType type,
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

struct Subject {
  Network network;
  int batch;
  std::string precision;
};

std::unique_ptr<conformance::Replica> make_replica(const Subject& subject) {
  DeviceOptions options;
  options.precision = subject.precision;
  for (const auto& row : device_table()) {
    if (std::string_view(row.name) != "cpu") continue;
    return std::make_unique<conformance::Replica>(row.make(options), subject.network, subject.batch,
                                                  true);
  }
  throw std::runtime_error("no device cpu");
}

void run(benchmark::State& state, const Subject& subject, int index, Direction direction) {
  const auto replica = make_replica(subject);
  Program& program = replica->program();
  const Plan& plan = replica->plan();
  const auto bound = make_bound(plan.operations[static_cast<std::size_t>(index)], subject.batch,
                                plan.activation, direction);
  if (!bound) return state.SkipWithError("oneDNN has no such primitive");
  const conformance::RandomBatch inputs(subject.network, subject.batch, subject.batch, 1);
  program.forward(inputs.batch(), Mode::train);
  if (direction == Direction::forward) {
    return take_turns(
        state, [&] { program.repeat_forward(index, index); }, 1, *bound);
  }
  program.backward(static_cast<int>(plan.operations.size()) - 1, index);
  take_turns(
      state, [&] { program.backward(index, index); }, 1, *bound);
}

// A bottleneck block of a stage of ResNet-50 and what stands before it.
Network make_stage(const std::string& name, int side, int channels) {
  Network network(name, {side, side, 3}, 10);
  const auto norm = [&](Network& to) -> Network& { return to.batch_norm(1e-5, 0.9); };
  norm(network.conv(4 * channels, 3, 1, 1)).relu();
  const int start = network.last();
  norm(network.conv(channels, 1)).relu();
  norm(network.conv(channels, 3, 1, 1)).relu();
  norm(network.conv(4 * channels, 1));
  network.add(start).relu().global_average_pool().dense(10);
  return network;
}

// The loss of rows of logits with its gradient, of which oneDNN computes softmax and its backward.
void run_loss(benchmark::State& state) {
  constexpr memory::dim kRows = 16, kClasses = 50257;
  const memory::desc logits({kRows, kClasses}, memory::data_type::f32, Tag::ab);
  const auto algorithm = dnnl::algorithm::softmax_log;
  const auto forward = describe<Softmax>(kTraining, algorithm, logits, logits, 1);
  Primitives bound;
  bound.add(Softmax(forward), {{DNNL_ARG_SRC, logits}, {DNNL_ARG_DST, logits}});
  bound.add(SoftmaxBackward(
                describe_backward<SoftmaxBackward>(forward, algorithm, logits, logits, logits, 1)),
            {{DNNL_ARG_DST, logits}, {DNNL_ARG_DIFF_DST, logits}, {DNNL_ARG_DIFF_SRC, logits}});
  std::vector<float> rows(static_cast<std::size_t>(kRows * kClasses), 0.5F);
  const char* isa = std::getenv("PACELINE_ISA");
  const cpu::Kernels& kernels = cpu::kernels_for(isa ? isa : "");
  take_turns(
      state,
      [&] {
        for (std::size_t i = 0; i < kRows; ++i) {
          kernels.token_loss(rows.data() + i * kClasses, kClasses, i, 1, true);
        }
      },
      1, bound);
}

}  // namespace

void register_benchmarks() {
#if defined(__SSE__)
  // Gradients that are computed in place shrink from one repetition to the next, in training not.
  _mm_setcsr(_mm_getcsr() | 0x8040);  // subnormals are zero
#endif
  std::vector<Subject> subjects;
  for (const char* precision : {"fp32", "bf16"}) {
    subjects.push_back({make_stage("stage-2", 75, 64), 4, precision});
    subjects.push_back({make_stage("stage-4", 19, 256), 8, precision});
    Network stem("stem", {150, 150, 3}, 10);
    stem.conv(64, 7, 2, 3).batch_norm(1e-5, 0.9).relu().max_pool(3, 2, 1);
    subjects.push_back({stem.global_average_pool().dense(10), 4, precision});
    subjects.push_back(
        {gpt_workload("gpt", "", {1, 12, 768, 256, 1024}, "").network, 2, precision});
  }
  for (const auto& row : workload_table()) {
    if (std::string_view(row.name) != "mnist-cnn") continue;
    subjects.push_back({row.make().network, 64, "fp32"});
  }
  for (const Subject& subject : subjects) {
    std::unique_ptr<conformance::Replica> replica;
    try {
      replica = make_replica(subject);
    } catch (const std::exception& error) {  // these loops have no bf16
      fmt::print(stderr, "{} in {}: {}\n", subject.network.name(), subject.precision, error.what());
      continue;
    }
    const auto& operations = replica->plan().operations;
    for (std::size_t i = 1; i + 1 < operations.size(); ++i) {
      for (const auto direction : {Direction::forward, Direction::backward}) {
        if (!make_bound(operations[i], 1, DType::f32, direction)) continue;
        const std::string name = subject.precision + "/" + subject.network.name() + "/" +
                                 operations[i].text() + " " + std::to_string(operations[i].kernel) +
                                 "/" + (direction == Direction::forward ? "forward" : "backward");
        benchmark::RegisterBenchmark(name.c_str(), run, subject, static_cast<int>(i), direction)
            ->UseManualTime();
      }
    }
  }
  benchmark::RegisterBenchmark("fp32/gpt/token_loss/both", run_loss)->UseManualTime();
}

}  // namespace paceline::bench
