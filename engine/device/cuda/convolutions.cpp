// Convolutions and dense layers of places: their plans, what they read, and their passes.
#include <algorithm>
#include <utility>

#include "engine/core/error.h"
#include "engine/device/cuda/kernels/elementwise.h"
#include "engine/device/cuda/kernels/update.h"
#include "engine/device/cuda/program.h"

namespace paceline::cuda {

namespace {

// Whether a data gradient, in blocks of about 128 x 128 results, is over after so few rounds of the
// card that its last one, in which multiprocessors idle, counts.
bool leaves_room(const ConvShape& shape, unsigned multiprocessors) {
  constexpr std::int64_t kSide = 128, kRounds = 4;
  const auto count = [](std::int64_t results) { return (results + kSide - 1) / kSide; };
  const std::int64_t rows = std::int64_t{1} * shape.batch * shape.height * shape.width;
  return count(rows) * count(shape.in) < kRounds * multiprocessors;
}

}  // namespace

void CudaProgram::prepare_conv(const Operation& op, Prepared& prepared) {
  if (info(op.input).type != info(op.output).type) {
    throw usage_error(op.name + " reads the output of a dense layer, which is fp32", plan_.network,
                      "use fp32 or tf32");
  }
  PreparedConv& conv = prepared.conv.emplace();
  const std::size_t size = size_of(plan_.activation);
  conv.shape = conv_shape(op, plan_.batch, options_.math);
  prepare_epilogues(op, conv);
  conv.backward_weights = products_.conv({conv.shape, ConvPass::backward_weights, false});
  prepare_folded(op, conv);
  prepare_bias_gradient(op, conv);
  need_workspace(conv.forward->workspace_bytes());
  conv.beside = options_.second_stream && op.input_grad != kNone &&
                leaves_room(conv.shape, runtime_.multiprocessors());
  need_workspace(conv.backward_weights->workspace_bytes(), conv.beside);
  if (op.input_grad != kNone) {
    need_workspace(conv.backward_data->workspace_bytes());
  }
  if (conv.shape.in != op.in.channels) {
    prepare_reordered(conv);
  } else if (narrow()) {
    conv.w = narrow_parameters_.data() + offset(op.weight) * size;
    conv.dw = narrow_gradients_.data() + offset(op.weight) * size;
  } else {
    conv.w = parameter(op.weight);
    conv.dw = gradient(op.weight);
  }
  conv.bias = parameter(op.bias);
  if (narrow()) conv.bias = narrow_parameters_.data() + offset(op.bias) * size;
  if (!op.bias_cancels) need_sums<BiasGradient<float>>(op.out);
  prepared.implementation = conv.forward->implementation();
  if (conv.folded) prepared.implementation += ", of 2 x 2 pixels";
  if (conv.db) prepared.implementation += ", the bias's gradient with that of the weights";
}

std::unique_ptr<ConvPlan> CudaProgram::conv_if_offered(const ConvRequest& request) {
  try {
    return products_.conv(request);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::usage) throw;
    return nullptr;
  }
}

void CudaProgram::prepare_bias_gradient(const Operation& op, PreparedConv& conv) {
  if (op.bias_cancels || plan_.activation != DType::bf16 || !is_plain_product(conv.shape) ||
      conv.backward_weights->seconds() == 0) {
    return;
  }
  std::unique_ptr<ConvPlan> inside =
      conv_if_offered({conv.shape, ConvPass::backward_weights, false, Epilogue::left_gradient});
  if (!inside ||
      !choose_bias_inside(runtime_, products_, conv.shape, *conv.backward_weights, *inside)) {
    return;
  }
  conv.backward_weights = std::move(inside);
  conv.db = narrow_gradients_.data() + offset(op.bias) * size_of(plan_.activation);
}

void CudaProgram::prepare_folded(const Operation& op, PreparedConv& conv) {
  const auto reads_sample = [](const Operation& other) {
    return other.from == 0 || other.from2 == 0;
  };
  if (op.kind != OpKind::conv || op.from != 0 || conv.backward_data ||
      std::ranges::count_if(plan_.operations, reads_sample) != 1) {
    return;
  }
  const std::optional<ConvShape> shape = fold_shape(conv.shape, op.in.channels);
  if (!shape || conv.forward->seconds() == 0) return;
  std::unique_ptr<ConvPlan> forward = conv_if_offered({*shape, ConvPass::forward});
  std::unique_ptr<ConvPlan> weights = conv_if_offered({*shape, ConvPass::backward_weights});
  if (!forward || !weights) return;
  const double plain = conv.forward->seconds() + conv.backward_weights->seconds();
  const bool is_measured = forward->seconds() > 0 && weights->seconds() > 0;
  if (!is_measured || forward->seconds() + weights->seconds() >= plain) return;
  conv.folded = true;
  conv.shape = *shape;
  conv.forward = std::move(forward);
  conv.backward_weights = std::move(weights);
}

void CudaProgram::prepare_reordered(PreparedConv& conv) {
  const ConvShape& shape = conv.shape;
  const auto bytes = [&](auto... sides) {
    return (size_of(plan_.activation) * ... * static_cast<std::size_t>(sides));
  };
  conv.reordered_w = own(bytes(shape.out, shape.kernel, shape.kernel, shape.in));
  conv.reordered_dw = own(conv.reordered_w.bytes());
  conv.w = conv.reordered_w.data();
  conv.dw = conv.reordered_dw.data();
  reordered_ = &conv;
  if (!reordered_input_.data()) {
    reordered_input_ = own(bytes(shape.batch, shape.height, shape.width, shape.in));
  }
}

WeightLayout CudaProgram::weight_layout(const Operation& op, const PreparedConv& conv) const {
  return {op.kernel, op.in.channels, conv.shape.in, conv.folded ? 2 : 1};
}

void CudaProgram::prepare_epilogues(const Operation& op, PreparedConv& conv) {
  const ConvShape& shape = conv.shape;
  const auto inside = [&](int other) -> Prepared& {
    return prepared_[static_cast<std::size_t>(other)];
  };
  ConvRequest forward{shape, ConvPass::forward};
  if (is_plain_product(shape) && !op.bias_cancels && !op.relu) {
    const int behind = epilogue_behind(plan_, index(op));
    forward.epilogue = behind == kNone                          ? Epilogue::bias
                       : operation(behind).kind == OpKind::gelu ? Epilogue::bias_gelu
                                                                : Epilogue::bias_add;
    if (behind != kNone) inside(behind).forward_inside = true;
  }
  conv.with_forward = forward.epilogue;
  conv.forward = conv_plan(forward);
  if (op.input_grad == kNone) return;
  ConvRequest data{shape, ConvPass::backward_data, op.adds_input_grad};
  const int gelu = gelu_before(plan_, index(op));
  if (is_plain_product(shape) && gelu != kNone) {
    data.epilogue = Epilogue::gelu_gradient;
    inside(gelu).backward_inside = true;
  }
  conv.with_data = data.epilogue;
  conv.backward_data = conv_plan(data);
}

std::unique_ptr<ConvPlan> CudaProgram::conv_plan(ConvRequest request) {
  if (request.epilogue == Epilogue::none) return products_.conv(request);
  ConvRequest plain = request;
  plain.epilogue = Epilogue::none;
  return products_.conv_with(request, product_apart(runtime_, request, products_.conv(plain)));
}

// To what convolutions read, and to what anything else reads.
void CudaProgram::cast_input(const Operation& op) {
  const std::uint8_t* bytes = image_type_ == DType::u8 ? staging_.images() : nullptr;
  const auto* floats = bytes ? nullptr : reinterpret_cast<const float*>(staging_.images());
  const std::size_t missing = whole_batch() - samples();
  const auto pad = [&](std::byte* to, int channels) {
    const auto places = static_cast<std::size_t>(op.in.height * op.in.width);
    with_type(info(op.output).type, [&](auto type) {
      using T = decltype(type);
      run(CastInput<T>{bytes, floats, reinterpret_cast<T*>(to), samples() * places,
                       missing * places, op.in.channels, channels},
          whole_batch() * places);
    });
  };
  const auto fold = [&](std::byte* to, const ConvShape& shape, int padding) {
    with_type(info(op.output).type, [&](auto type) {
      using T = decltype(type);
      run(FoldInput<T>{bytes, floats, reinterpret_cast<T*>(to), samples(), missing, op.in.height,
                       op.in.width, op.in.channels, padding, shape.height, shape.width, shape.in},
          whole_batch() * static_cast<std::size_t>(shape.height) *
              static_cast<std::size_t>(shape.width));
    });
  };
  bool others = false;
  for (const Operation& reader : plan_.operations) {
    if (reader.from != 0 && reader.from2 != 0) continue;
    others = others || reader.kind != OpKind::conv || !reordered_;
    if (reordered_ && reordered_->folded)
      fold(reordered_input_.data(), reordered_->shape, reader.padding);
  }
  if (reordered_ && !reordered_->folded) pad(reordered_input_.data(), reordered_->shape.in);
  if (others) pad(tensor<std::byte>(op.output), op.in.channels);
}

void* CudaProgram::conv_input(const Operation& op, const PreparedConv& conv) const {
  return conv.reordered_w.data() ? reordered_input_.data() : tensor<std::byte>(op.input);
}

void CudaProgram::conv_forward(const Operation& op, Prepared& prepared) {
  PreparedConv& conv = *prepared.conv;
  std::byte* y = tensor<std::byte>(op.output);
  ConvOperands operands{conv_input(op, conv), conv.w, y, workspace_.data(), conv.bias};
  if (has_before(conv.with_forward)) {
    const Operation& behind = operation(epilogue_behind(plan_, index(op)));
    operands.before =
        conv.with_forward == Epilogue::bias_gelu ? y : tensor<std::byte>(behind.input2);
    operands.y = tensor<std::byte>(behind.output);
  }
  conv.forward->run(operands, compute_.stream());
  if (conv.with_forward != Epilogue::none || (op.bias_cancels && !op.relu)) return;
  const std::size_t count = whole_batch() * op.out.elements();
  with_type(plan_.activation, [&](auto type) {
    using T = decltype(type);
    run_vectors(AddBias<T>{reinterpret_cast<T*>(y), static_cast<const T*>(conv.bias), count,
                           op.out.channels, op.relu},
                count);
  });
}

void CudaProgram::conv_backward(const Operation& op, Prepared& prepared) {
  PreparedConv& conv = *prepared.conv;
  std::byte* dy = tensor<std::byte>(op.output_grad);
  const std::size_t count = whole_batch() * op.out.elements();
  with_type(plan_.activation, [&](auto type) {
    using T = decltype(type);
    T* gradient_of_y = reinterpret_cast<T*>(dy);
    if (op.relu) {
      run_vectors(
          ReluBackward<T>{tensor<T>(op.output), gradient_of_y, gradient_of_y, count, 1, false},
          count);
    }
    if (!op.bias_cancels && !conv.db) {
      run_sums(BiasGradient<T>{gradient_of_y, gradient(op.bias), op.out.channels},
               count / static_cast<std::size_t>(op.out.channels), op.out.channels);
    }
  });
  const Stream compute = compute_.stream(), stream = conv.beside ? second_.stream() : compute;
  if (conv.beside) follow(stream, compute);
  const Memory& workspace = conv.beside ? second_workspace_ : workspace_;
  conv.backward_weights->run({conv_input(op, conv), conv.dw, dy, workspace.data(), conv.db},
                             stream);
  if (conv.reordered_dw.data()) {
    with_type(plan_.activation, [&](auto type) {
      using T = decltype(type);
      const std::size_t weights = conv.reordered_dw.bytes() / sizeof(T);
      run(RestoreGradients<T>{static_cast<const T*>(conv.dw), gradient(op.weight), weights,
                              weight_layout(op, conv)},
          weights, stream);
    });
  }
  if (!conv.backward_data) return;
  ConvOperands operands{tensor<std::byte>(op.input_grad), conv.w, dy, workspace_.data()};
  if (conv.with_data == Epilogue::gelu_gradient) {
    operands.before = tensor<std::byte>(operation(op.from).input);
  }
  conv.backward_data->run(operands, compute);
  // Before the next operation: the plan gives memory of this one's inputs to later ones.
  if (conv.beside) follow(compute, stream);
}

void CudaProgram::follow(Stream stream, Stream other) {
  runtime_.record(forked_, other);
  runtime_.wait(stream, forked_);
}

}  // namespace paceline::cuda
