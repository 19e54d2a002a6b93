#include "engine/device/cpu/library.h"

#include <fmt/format.h>

#include <dnnl.hpp>
#include <vector>

#include "engine/core/error.h"
#include "engine/core/log.h"

namespace paceline::cpu {

namespace {

using dnnl::memory;
using Tag = memory::format_tag;
constexpr auto kFloat = memory::data_type::f32;

Error library_error(const std::string& what, const std::string& detail) {
  return {ErrorKind::internal, "oneDNN: " + what, detail, "run paceline doctor and report it"};
}

}  // namespace

std::string library_version() {
  const dnnl_version_t* version = dnnl_version();
  return fmt::format("oneDNN {}.{}.{}", version->major, version->minor, version->patch);
}

// An operand: where the caller's pointer goes, and the reorder to or from the layout that the
// primitive prefers, if that is another one.
struct LibraryKernel::State {
  struct Operand {
    int argument;
    memory plain;      // the caller's layout; its address is set before each run
    memory preferred;  // the primitive's; the same object where layouts agree
    dnnl::reorder reorder;
    Memory storage;  // of `preferred`, where it is another one
    bool is_output;
    bool copied;
  };

  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  dnnl::primitive primitive;
  std::vector<memory> memories;  // keeps what `arguments` points to
  std::vector<dnnl_exec_arg_t> arguments;
  std::vector<Operand> operands;
  int left = 0, right = 0, bias = 0, out = 0, bias_out = 0;
  Memory scratch;
  std::string implementation;

  void add_operand(int argument, const memory::desc& plain, const memory::desc& preferred,
                   bool is_output) {
    Operand operand{argument, memory(plain, engine, nullptr), {}, {}, {}, is_output, false};
    operand.copied = plain != preferred;
    operand.preferred = operand.plain;
    if (operand.copied) {
      operand.storage = host_memory(preferred.get_size());
      operand.preferred = memory(preferred, engine, operand.storage.data());
      operand.reorder = is_output ? dnnl::reorder(operand.preferred, operand.plain)
                                  : dnnl::reorder(operand.plain, operand.preferred);
    }
    add_argument(argument, operand.preferred);
    operands.push_back(std::move(operand));
  }

  void add_argument(int argument, const memory& value) {
    memories.push_back(value);
    arguments.push_back({argument, value.get()});
  }

  template <typename Descriptor>
  void finish(const Descriptor& descriptor) {
    implementation = descriptor.impl_info_str();
    if (implementation.find("ref") == 0) {
      throw library_error("only its reference code would run this", implementation);
    }
    const memory::desc wanted = descriptor.scratchpad_desc();
    scratch = host_memory(wanted.get_size());
    add_argument(DNNL_ARG_SCRATCHPAD, memory(wanted, engine, scratch.data()));
    primitive = dnnl::primitive(descriptor);
  }

  void* address_of(int argument, const Operands& given) const {
    if (argument == left) return const_cast<float*>(given.left);
    if (argument == right) return const_cast<float*>(given.right);
    if (argument == bias) return const_cast<float*>(given.bias);
    if (argument == out) return given.out;
    return given.bias_out;
  }
};

LibraryKernel::LibraryKernel() = default;
LibraryKernel::~LibraryKernel() = default;
LibraryKernel::LibraryKernel(LibraryKernel&&) noexcept = default;
LibraryKernel& LibraryKernel::operator=(LibraryKernel&&) noexcept = default;

const std::string& LibraryKernel::implementation() const {
  return state_->implementation;
}

void LibraryKernel::run(const Operands& operands) {
  for (State::Operand& operand : state_->operands) {
    operand.plain.set_data_handle(state_->address_of(operand.argument, operands));
    if (!operand.copied) {
      operand.preferred.set_data_handle(operand.plain.get_data_handle());
    } else if (!operand.is_output) {
      operand.reorder.execute(state_->stream, operand.plain, operand.preferred);
    }
  }
  // The C call: the C++ one makes a new argument list each time.
  const dnnl_status_t status =
      dnnl_primitive_execute(state_->primitive.get(), state_->stream.get(),
                             static_cast<int>(state_->arguments.size()), state_->arguments.data());
  if (status != dnnl_success) throw library_error("a kernel failed", state_->implementation);
  for (State::Operand& operand : state_->operands) {
    if (operand.copied && operand.is_output) {
      operand.reorder.execute(state_->stream, operand.preferred, operand.plain);
    }
  }
  state_->stream.wait();
}

namespace {

dnnl::primitive_attr own_scratch() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

// The descriptors of one convolution: plain as ours, free for oneDNN to choose weights' layout.
struct ConvDescriptors {
  memory::desc x, w, b, y, free_w;
  memory::dims strides, padding;

  ConvDescriptors(const Operation& op, int batch)
      : x({batch, op.in.channels, op.in.height, op.in.width}, kFloat, Tag::nhwc),
        w({op.out.channels, op.in.channels, op.kernel, op.kernel}, kFloat, Tag::hwio),
        b({op.out.channels}, kFloat, Tag::x),
        y({batch, op.out.channels, op.out.height, op.out.width}, kFloat, Tag::nhwc),
        free_w({op.out.channels, op.in.channels, op.kernel, op.kernel}, kFloat, Tag::any),
        strides{op.stride, op.stride},
        padding{op.padding, op.padding} {}
};

constexpr auto kAlgorithm = dnnl::algorithm::convolution_direct;

dnnl::convolution_forward::primitive_desc forward_descriptor(const ConvDescriptors& d,
                                                             const dnnl::engine& engine) {
  return {{dnnl::prop_kind::forward_training, kAlgorithm, d.x, d.free_w, d.b, d.y, d.strides,
           d.padding, d.padding},
          own_scratch(),
          engine};
}

}  // namespace

LibraryKernel LibraryKernel::matmul(int m, int k, int n, bool transpose_left,
                                    bool transpose_right) try {
  LibraryKernel kernel;
  kernel.state_ = std::make_unique<State>();
  State& state = *kernel.state_;
  const memory::desc left({m, k}, kFloat, transpose_left ? Tag::ba : Tag::ab);
  const memory::desc right({k, n}, kFloat, transpose_right ? Tag::ba : Tag::ab);
  const memory::desc out({m, n}, kFloat, Tag::ab);
  const dnnl::matmul::primitive_desc descriptor({left, right, out}, own_scratch(), state.engine);
  state.left = DNNL_ARG_SRC;
  state.right = DNNL_ARG_WEIGHTS;
  state.out = DNNL_ARG_DST;
  state.add_operand(state.left, left, left, false);
  state.add_operand(state.right, right, right, false);
  state.add_operand(state.out, out, out, true);
  state.finish(descriptor);
  return kernel;
} catch (const dnnl::error& error) {
  throw library_error(error.what(), fmt::format("matmul {} x {} x {}", m, k, n));
}

LibraryKernel LibraryKernel::conv_forward(const Operation& op, int batch) try {
  LibraryKernel kernel;
  kernel.state_ = std::make_unique<State>();
  State& state = *kernel.state_;
  const ConvDescriptors d(op, batch);
  const auto descriptor = forward_descriptor(d, state.engine);
  state.left = DNNL_ARG_SRC;
  state.right = DNNL_ARG_WEIGHTS;
  state.bias = DNNL_ARG_BIAS;
  state.out = DNNL_ARG_DST;
  state.add_operand(state.left, d.x, d.x, false);
  state.add_operand(state.right, d.w, descriptor.weights_desc(), false);
  state.add_operand(state.bias, d.b, d.b, false);
  state.add_operand(state.out, d.y, d.y, true);
  state.finish(descriptor);
  return kernel;
} catch (const dnnl::error& error) {
  throw library_error(error.what(), op.text() + " forward");
}

LibraryKernel LibraryKernel::conv_backward_data(const Operation& op, int batch) try {
  LibraryKernel kernel;
  kernel.state_ = std::make_unique<State>();
  State& state = *kernel.state_;
  const ConvDescriptors d(op, batch);
  const dnnl::convolution_backward_data::primitive_desc descriptor(
      {kAlgorithm, d.x, d.free_w, d.y, d.strides, d.padding, d.padding}, own_scratch(),
      state.engine, forward_descriptor(d, state.engine));
  state.left = DNNL_ARG_DIFF_DST;
  state.right = DNNL_ARG_WEIGHTS;
  state.out = DNNL_ARG_DIFF_SRC;
  state.add_operand(state.left, d.y, d.y, false);
  state.add_operand(state.right, d.w, descriptor.weights_desc(), false);
  state.add_operand(state.out, d.x, d.x, true);
  state.finish(descriptor);
  return kernel;
} catch (const dnnl::error& error) {
  throw library_error(error.what(), op.text() + " backward data");
}

LibraryKernel LibraryKernel::conv_backward_weights(const Operation& op, int batch) try {
  LibraryKernel kernel;
  kernel.state_ = std::make_unique<State>();
  State& state = *kernel.state_;
  const ConvDescriptors d(op, batch);
  const dnnl::convolution_backward_weights::primitive_desc descriptor(
      {kAlgorithm, d.x, d.free_w, d.b, d.y, d.strides, d.padding, d.padding}, own_scratch(),
      state.engine, forward_descriptor(d, state.engine));
  state.left = DNNL_ARG_DIFF_DST;
  state.right = DNNL_ARG_SRC;
  state.out = DNNL_ARG_DIFF_WEIGHTS;
  state.bias_out = DNNL_ARG_DIFF_BIAS;
  state.add_operand(state.left, d.y, d.y, false);
  state.add_operand(state.right, d.x, d.x, false);
  state.add_operand(state.out, d.w, descriptor.diff_weights_desc(), true);
  state.add_operand(state.bias_out, d.b, d.b, true);
  state.finish(descriptor);
  return kernel;
} catch (const dnnl::error& error) {
  throw library_error(error.what(), op.text() + " backward weights");
}

}  // namespace paceline::cpu
