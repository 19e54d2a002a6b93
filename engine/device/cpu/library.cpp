#include "engine/device/cpu/library.h"

#include <fmt/format.h>

#include <dnnl.hpp>
#include <vector>

#include "engine/core/error.h"
#include "engine/device/cpu/descriptors.h"
#include "engine/device/cpu/reference_code.h"

namespace paceline::cpu {

namespace {

using dnnl::memory;
using Tag = memory::format_tag;
constexpr auto kFloat = memory::data_type::f32;

Error library_error(const std::string& what, const std::string& detail) {
  return {ErrorKind::internal, "oneDNN: " + what, detail, "run paceline doctor and report it"};
}

memory::data_type to_dnnl_type(DType type) {
  return type == DType::bf16 ? memory::data_type::bf16 : kFloat;
}

bool effective_isa_includes(dnnl_cpu_isa_t wanted) {
  const auto isa = static_cast<unsigned>(dnnl::get_effective_cpu_isa());
  return (isa & static_cast<unsigned>(wanted)) == static_cast<unsigned>(wanted);
}

dnnl::primitive_attr own_scratch(bool adds = false) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (adds) {
    dnnl::post_ops sum;
    sum.append_sum(1);
    attributes.set_post_ops(sum);
  }
  return attributes;
}

memory::desc plane(const Shape& shape, const LibraryKernel::Planes& planes, Layout layout) {
  const Tag tag = layout == Layout::blocked ? Tag::nChw16c
                  : layout == Layout::nchw  ? Tag::nchw
                                            : Tag::nhwc;
  return {
      {planes.batch, shape.channels, shape.height, shape.width}, to_dnnl_type(planes.type), tag};
}

// The descriptors of one convolution: planes and plain weights as ours, `free_w` for oneDNN to
// choose the layout.
struct ConvDescriptors {
  memory::desc x, w, b, y, free_w;
  descriptors::Window window;

  ConvDescriptors(const Operation& op, const LibraryKernel::Planes& planes)
      : x(plane(op.in, planes, planes.x)),
        w({op.out.channels, op.in.channels, op.kernel, op.kernel}, kFloat, Tag::hwio),
        b({op.out.channels}, kFloat, Tag::x),
        y(plane(op.out, planes, planes.y)),
        free_w({op.out.channels, op.in.channels, op.kernel, op.kernel}, to_dnnl_type(planes.type),
               Tag::any),
        window{planes.type == DType::f32 && planes.y == Layout::blocked
                   ? dnnl::algorithm::convolution_auto  // Winograd where it is faster
                   : dnnl::algorithm::convolution_direct,
               {op.stride, op.stride},
               {op.padding, op.padding}} {}

  dnnl::convolution_forward::primitive_desc forward(const dnnl::engine& engine) const {
    return descriptors::forward(engine, window, x, free_w, b, y, own_scratch());
  }
};

// oneDNN reads a plain right operand column by column of a block, so rows of whole pages fall into
// the same sets of the first cache: such a product takes 1.7 times as long (GPT-2's 768 to 3,072
// channels, oneDNN 2.6 on Sapphire Rapids). Packing it first costs little where many rows use it.
bool rows_share_cache_sets(int m, int n) {
  constexpr int kPageFloats = 1024, kLeastRows = 256;
  return n % kPageFloats == 0 && m >= kLeastRows;
}

}  // namespace

std::string library_version() {
  const dnnl_version_t* version = dnnl_version();
  return fmt::format("oneDNN {}.{}.{}", version->major, version->minor, version->patch);
}

void check_library_threads(unsigned runtime) {
  if (runtime == DNNL_RUNTIME_OMP) return;
  const std::string name = runtime == DNNL_RUNTIME_SEQ          ? "one thread"
                           : runtime == DNNL_RUNTIME_TBB        ? "TBB"
                           : runtime == DNNL_RUNTIME_THREADPOOL ? "a thread pool"
                                                                : "SYCL or OpenCL";
  throw usage_error(
      fmt::format("{} computes by {} here, and would ignore a replica's CPUs", library_version(),
                  name),
      "",
      "load one that is built for OpenMP (-DDNNL_CPU_RUNTIME=OMP; spack: onednn cpu_runtime=omp)");
}

void check_library_threads() {
  check_library_threads(dnnl_version()->cpu_runtime);
}

bool library_has_avx512() {
  return effective_isa_includes(dnnl_cpu_isa_avx512_core);
}

bool library_has_amx() {
  return effective_isa_includes(dnnl_cpu_isa_avx512_core_amx);
}

// An operand: where the caller's pointer goes, and the reorder to or from the layout that the
// primitive prefers, if that is another one.
struct LibraryKernel::State {
  struct Operand {
    int argument;
    memory plain;      // the caller's layout; its address is set before each run
    memory preferred;  // the primitive's; the same object where layouts agree
    dnnl::reorder reorder;
    std::size_t offset;  // of `preferred` in the scratch area, where it is another one
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
  memory library_scratch;
  std::size_t scratch_bytes = 0;
  std::size_t library_offset = 0;
  std::string implementation;

  std::size_t reserve(std::size_t bytes) {
    constexpr std::size_t kAlignment = 64;
    const std::size_t offset = scratch_bytes;
    scratch_bytes += (bytes + kAlignment - 1) / kAlignment * kAlignment;
    return offset;
  }

  // `role` becomes the argument.
  void add_operand(int& role, int argument, const memory::desc& plain,
                   const memory::desc& preferred, bool is_output) {
    role = argument;
    Operand operand{argument, memory(plain, engine, nullptr), {}, {}, 0, is_output, false};
    operand.copied = plain != preferred;
    operand.preferred = operand.plain;
    if (operand.copied) {
      operand.offset = reserve(preferred.get_size());
      operand.preferred = memory(preferred, engine, nullptr);
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
    // Elsewhere it may be all that there is: CpuProgram says so.
    if (kGeneratesProducts && implementation.find("ref") == 0) {
      throw usage_error("oneDNN has no fast kernel for a layer of this network", implementation,
                        "use channels that are multiples of 16, or another precision");
    }
    const memory::desc wanted = descriptor.scratchpad_desc();
    library_offset = reserve(wanted.get_size());
    library_scratch = memory(wanted, engine, nullptr);
    add_argument(DNNL_ARG_SCRATCHPAD, library_scratch);
    primitive = dnnl::primitive(descriptor);
  }

  void* operand_address(int argument, const Operands& given) const {
    if (argument == left) return const_cast<void*>(given.left);
    if (argument == right) return const_cast<void*>(given.right);
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

std::size_t LibraryKernel::scratch_bytes() const {
  return state_ ? state_->scratch_bytes : 0;
}

void LibraryKernel::run(const Operands& operands, std::byte* scratch) {
  for (State::Operand& operand : state_->operands) {
    operand.plain.set_data_handle(state_->operand_address(operand.argument, operands));
    operand.preferred.set_data_handle(operand.copied ? scratch + operand.offset
                                                     : operand.plain.get_data_handle());
    if (operand.copied && !operand.is_output) {
      operand.reorder.execute(state_->stream, operand.plain, operand.preferred);
    }
  }
  state_->library_scratch.set_data_handle(scratch + state_->library_offset);
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

LibraryKernel LibraryKernel::matmul(int m, int k, int n, bool transpose_left, bool transpose_right,
                                    DType type, DType out_type, bool adds) try {
  LibraryKernel kernel;
  kernel.state_ = std::make_unique<State>();
  State& state = *kernel.state_;
  const memory::desc left({m, k}, to_dnnl_type(type), transpose_left ? Tag::ba : Tag::ab);
  const memory::desc right({k, n}, to_dnnl_type(type), transpose_right ? Tag::ba : Tag::ab);
  const memory::desc free_right({k, n}, to_dnnl_type(type), Tag::any);
  const memory::desc out({m, n}, to_dnnl_type(out_type), Tag::ab);
  const bool packs = type == DType::f32 && !transpose_right && rows_share_cache_sets(m, n);
  const auto descriptor =
      descriptors::matmul(state.engine, left, packs ? free_right : right, out, own_scratch(adds));
  state.add_operand(state.left, DNNL_ARG_SRC, left, left, false);
  state.add_operand(state.right, DNNL_ARG_WEIGHTS, right, descriptor.weights_desc(), false);
  state.add_operand(state.out, DNNL_ARG_DST, out, out, true);
  state.finish(descriptor);
  return kernel;
} catch (const dnnl::error& error) {
  throw library_error(error.what(), fmt::format("matmul {} x {} x {}", m, k, n));
}

LibraryKernel LibraryKernel::conv_forward(const Operation& op, const Planes& planes) try {
  LibraryKernel kernel;
  kernel.state_ = std::make_unique<State>();
  State& state = *kernel.state_;
  const ConvDescriptors d(op, planes);
  const auto descriptor = d.forward(state.engine);
  state.add_operand(state.left, DNNL_ARG_SRC, d.x, d.x, false);
  state.add_operand(state.right, DNNL_ARG_WEIGHTS, d.w, descriptor.weights_desc(), false);
  state.add_operand(state.bias, DNNL_ARG_BIAS, d.b, d.b, false);
  state.add_operand(state.out, DNNL_ARG_DST, d.y, d.y, true);
  state.finish(descriptor);
  return kernel;
} catch (const dnnl::error& error) {
  throw library_error(error.what(), op.text() + " forward");
}

LibraryKernel LibraryKernel::conv_backward_data(const Operation& op, const Planes& planes) try {
  LibraryKernel kernel;
  kernel.state_ = std::make_unique<State>();
  State& state = *kernel.state_;
  const ConvDescriptors d(op, planes);
  const auto descriptor = descriptors::backward_data(state.engine, d.window, d.x, d.free_w, d.y,
                                                     own_scratch(), d.forward(state.engine));
  state.add_operand(state.left, DNNL_ARG_DIFF_DST, d.y, d.y, false);
  state.add_operand(state.right, DNNL_ARG_WEIGHTS, d.w, descriptor.weights_desc(), false);
  state.add_operand(state.out, DNNL_ARG_DIFF_SRC, d.x, d.x, true);
  state.finish(descriptor);
  return kernel;
} catch (const dnnl::error& error) {
  throw library_error(error.what(), op.text() + " backward data");
}

LibraryKernel LibraryKernel::conv_backward_data_1x1(const Operation& op, const Planes& planes,
                                                    bool adds) try {
  LibraryKernel kernel;
  kernel.state_ = std::make_unique<State>();
  State& state = *kernel.state_;
  const memory::desc dy = plane(op.out, planes, planes.y), dx = plane(op.in, planes, planes.x);
  const memory::dims extents{op.in.channels, op.out.channels, 1, 1};
  const memory::desc plain_w(extents, kFloat, Tag::oihw);  // "out" is the layer's input here
  const memory::desc free_w(extents, to_dnnl_type(planes.type), Tag::any);
  const dnnl::primitive_attr attributes = own_scratch(adds);
  const descriptors::Window window{dnnl::algorithm::convolution_direct, {1, 1}, {0, 0}};
  const auto descriptor =
      descriptors::forward(state.engine, window, dy, free_w, memory::desc(), dx, attributes);
  state.add_operand(state.left, DNNL_ARG_SRC, dy, dy, false);
  state.add_operand(state.right, DNNL_ARG_WEIGHTS, plain_w, descriptor.weights_desc(), false);
  state.add_operand(state.out, DNNL_ARG_DST, dx, dx, true);
  state.finish(descriptor);
  return kernel;
} catch (const dnnl::error& error) {
  throw library_error(error.what(), op.text() + " backward data");
}

LibraryKernel LibraryKernel::conv_backward_weights(const Operation& op, const Planes& planes) try {
  LibraryKernel kernel;
  kernel.state_ = std::make_unique<State>();
  State& state = *kernel.state_;
  const ConvDescriptors d(op, planes);
  const memory::desc free_dw({op.out.channels, op.in.channels, op.kernel, op.kernel}, kFloat,
                             Tag::any);
  const auto descriptor = descriptors::backward_weights(state.engine, d.window, d.x, free_dw,
                                                        op.bias_cancels ? memory::desc() : d.b, d.y,
                                                        own_scratch(), d.forward(state.engine));
  state.add_operand(state.left, DNNL_ARG_DIFF_DST, d.y, d.y, false);
  state.add_operand(state.right, DNNL_ARG_SRC, d.x, d.x, false);
  state.add_operand(state.out, DNNL_ARG_DIFF_WEIGHTS, d.w, descriptor.diff_weights_desc(), true);
  if (!op.bias_cancels) {
    state.add_operand(state.bias_out, DNNL_ARG_DIFF_BIAS, d.b, d.b, true);
  }
  state.finish(descriptor);
  return kernel;
} catch (const dnnl::error& error) {
  throw library_error(error.what(), op.text() + " backward weights");
}

}  // namespace paceline::cpu
