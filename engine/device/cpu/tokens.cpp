// The operations of networks of tokens, in fp32 or bf16: products by oneDNN, the rest by our loops.
#include <algorithm>
#include <cmath>
#include <vector>

#include "engine/core/error.h"
#include "engine/device/cpu/program.h"

namespace paceline::cpu {

namespace {

// More rows of logits at a time need more memory, fewer read and write the gradient of the tokens'
// table more often.
constexpr std::size_t kMostLossRows = 256;

std::size_t places(const Operation& op) {
  return static_cast<std::size_t>(op.out.height) * static_cast<std::size_t>(op.out.width);
}
std::size_t channels(const Operation& op) {
  return static_cast<std::size_t>(op.out.channels);
}
std::size_t weights_of_product(const Operation& op) {
  return static_cast<std::size_t>(op.in.channels) * channels(op);
}

}  // namespace

bool CpuProgram::is_of_tokens(const Operation& op) {
  return op.kind == OpKind::embedding || op.kind == OpKind::layer_norm || op.kind == OpKind::gelu ||
         op.kind == OpKind::attention || op.kind == OpKind::token_cross_entropy ||
         (op.kind == OpKind::dense && op.in.height > 1);
}

void CpuProgram::prepare_tokens(const Operation& op, Prepared& prepared) {
  const DType type = type_at(op.output);
  const auto threads = static_cast<std::size_t>(parallel_.threads());
  const std::size_t rows = whole_batch() * places(op);
  if (op.kind == OpKind::dense) {
    prepare_dense_tokens(op, prepared);
  } else if (op.kind == OpKind::token_cross_entropy) {
    const int in = op.in.channels, out = op.out.channels;
    const DType product = widens(type) ? DType::f32 : type;
    prepared.rows = piece_rows(rows, kMostLossRows);
    prepared.losses.resize(prepared.rows);
    const int m = static_cast<int>(prepared.rows);
    prepared.forward = LibraryKernel::matmul(m, in, out, false, true, product);
    prepared.backward_input = LibraryKernel::matmul(m, out, in, false, false, product, product);
    prepared.backward_weight = LibraryKernel::matmul(out, m, in, true, false, product);
    prepared.more_weight =
        LibraryKernel::matmul(out, m, in, true, false, product, DType::f32, true);
    const std::size_t logits = prepared.rows * channels(op);
    prepared.space = whole_lines(logits * sizeof(float));
    if (widens(type)) {
      prepared.space += prepared.rows * static_cast<std::size_t>(in) * sizeof(float);
    } else if (type == DType::bf16) {
      prepared.space += whole_lines(logits * sizeof(Bf16)) + weights_of_product(op) * sizeof(Bf16);
    }
    prepared.implementation = prepared.forward.implementation();
  } else if (op.kind == OpKind::attention) {
    const std::size_t width = channels(op) / static_cast<std::size_t>(op.heads);
    prepared.space = threads * whole_lines(attention_scratch(places(op), width) * sizeof(float));
  } else if (op.kind == OpKind::layer_norm) {
    prepared.space = threads * whole_lines(2 * channels(op) * sizeof(float));
  }
}

void CpuProgram::prepare_dense_tokens(const Operation& op, Prepared& prepared) {
  const DType type = type_at(op.output);
  const int in = op.in.channels, out = op.out.channels;
  Operation convolution = op;
  convolution.kernel = convolution.stride = 1;
  convolution.padding = 0;
  if (widens(type) && Pointwise::supports(convolution, kernels_)) {
    const int batch = plan().batch;
    prepared.own_forward.emplace(convolution, batch, Pointwise::Pass::forward, kernels_, parallel_);
    prepared.own_backward_weight.emplace(convolution, batch, kernels_, parallel_);
    if (op.input_grad != kNone) {
      prepared.own_backward_input.emplace(convolution, batch, Pointwise::Pass::backward_data,
                                          kernels_, parallel_);
    }
    return;
  }
  const auto m = static_cast<int>(whole_batch() * places(op));
  prepared.forward = LibraryKernel::matmul(m, in, out, false, false, type, type);
  prepared.backward_weight = LibraryKernel::matmul(in, m, out, true, false, type);
  if (op.input_grad != kNone) {
    prepared.backward_input =
        LibraryKernel::matmul(m, out, in, false, true, type, type, op.adds_input_grad);
  }
  if (type == DType::bf16) prepared.space = weights_of_product(op) * sizeof(Bf16);
  prepared.implementation = prepared.forward.implementation();
}

template <typename T>
void CpuProgram::tokens_forward(const Operation& op, Prepared& prepared) {
  const TokenKernels<T>& kernels = kernels_.tokens<T>();
  switch (op.kind) {
    case OpKind::embedding:
      return embed<T>(op);
    case OpKind::dense:
      return rows_forward<T>(op, prepared);
    case OpKind::gelu:
      return over_elements(op.out.elements(), [&](std::size_t begin, std::size_t end) {
        kernels.gelu(tensor<T>(op.input) + begin, tensor<T>(op.output) + begin, end - begin);
      });
    case OpKind::layer_norm:
      return parallel_.ranges(
          whole_batch() * places(op), 16, kLeast / channels(op) + 1,
          [&](std::size_t begin, std::size_t end) {
            const std::size_t at = begin * channels(op);
            kernels.layer_norm({tensor<T>(op.input) + at, tensor<T>(op.output) + at, end - begin,
                                channels(op), parameter(op.weight), parameter(op.bias),
                                tensor<float>(op.saved) + 2 * begin,
                                static_cast<float>(op.epsilon)});
          });
    case OpKind::attention:
      return attend<T>(op, prepared, false);
    case OpKind::token_cross_entropy:
      return token_loss<T>(op, prepared);
    default:
      throw internal_error("not an operation on tokens", op.text());
  }
}

template <typename T>
void CpuProgram::tokens_backward(const Operation& op, Prepared& prepared) {
  switch (op.kind) {
    case OpKind::embedding:
      return embedding_backward<T>(op);
    case OpKind::dense:
      return rows_backward<T>(op, prepared);
    case OpKind::gelu:
      if (op.input_grad == kNone) return;
      return over_elements(op.out.elements(), [&](std::size_t begin, std::size_t end) {
        kernels_.tokens<T>().gelu_backward(
            tensor<T>(op.input) + begin, tensor<T>(op.output_grad) + begin,
            tensor<T>(op.input_grad) + begin, end - begin, op.adds_input_grad);
      });
    case OpKind::layer_norm:
      return layer_norm_backward<T>(op, prepared);
    case OpKind::attention:
      return attend<T>(op, prepared, true);
    case OpKind::token_cross_entropy:  // forward did it
      return;
    default:
      throw internal_error("not an operation on tokens", op.text());
  }
}

template <typename T>
void CpuProgram::embed(const Operation& op) {
  const std::size_t width = channels(op), bytes = op.in.elements();
  const float *tokens = parameter(op.weight), *positions = parameter(op.bias);
  parallel_.ranges(
      samples() * places(op), 1, kLeast / width + 1, [&](std::size_t begin, std::size_t end) {
        for (std::size_t row = begin; row < end; ++row) {
          const std::size_t place = row % places(op);
          const std::size_t token = token_at(batch().images + row / places(op) * bytes, place);
          kernels_.tokens<T>().embed(tokens + token * width, positions + place * width,
                                     tensor<T>(op.output) + row * width, width);
        }
      });
  clear_missing_rows<T>(op.output);
}

// Each thread adds some of the channels, so that no two add to one number.
template <typename T>
void CpuProgram::embedding_backward(const Operation& op) {
  const std::size_t width = channels(op), bytes = op.in.elements();
  float *tokens = gradient(op.weight), *positions = gradient(op.bias);
  parallel_.ranges(width, kLine, 1, [&](std::size_t begin, std::size_t end) {
    const auto add_row = kernels_.tokens<T>().add_row;
    for (std::size_t place = 0; place < places(op); ++place) {
      std::fill(positions + place * width + begin, positions + place * width + end, 0.0F);
    }
    for (std::size_t row = 0; row < samples() * places(op); ++row) {
      const std::size_t place = row % places(op);
      const std::size_t token = token_at(batch().images + row / places(op) * bytes, place);
      const T* dy = tensor<T>(op.output_grad) + row * width + begin;
      add_row(dy, positions + place * width + begin, end - begin);
      add_row(dy, tokens + token * width + begin, end - begin);
    }
  });
}

template <typename T>
const void* CpuProgram::weights_as(const Operation& op, std::size_t count, std::byte* space) {
  const float* weights = parameter(op.weight);
  if (std::is_same_v<T, float>) return weights;
  T* copy = reinterpret_cast<T*>(space);
  parallel_.ranges(count, kLine, kLeast, [&](std::size_t begin, std::size_t end) {
    kernels_.tokens<T>().convert(weights + begin, copy + begin, end - begin);
  });
  return copy;
}

template <typename T>
void CpuProgram::column_sums(const T* x, float* sums, std::size_t rows, std::size_t columns) {
  parallel_.ranges(columns, kLine, kLeast / rows + 1, [&](std::size_t begin, std::size_t end) {
    std::fill(sums + begin, sums + end, 0.0F);
    for (std::size_t row = 0; row < rows; ++row) {
      kernels_.tokens<T>().add_row(x + row * columns + begin, sums + begin, end - begin);
    }
  });
}

template <typename T>
void CpuProgram::rows_forward(const Operation& op, Prepared& prepared) {
  const std::size_t columns = channels(op);
  if constexpr (std::is_same_v<T, Bf16>) {
    if (prepared.own_forward) {
      prepared.own_forward->run({.x = tensor<T>(op.input),
                                 .w = parameter(op.weight),
                                 .bias = parameter(op.bias),
                                 .y = tensor<T>(op.output)},
                                scratch_.data());
      if (!op.relu) return;
      return over_elements(op.out.elements(), [&](std::size_t begin, std::size_t end) {
        T* y = tensor<T>(op.output) + begin;
        kernels_.plane<T>().relu(y, y, end - begin);
      });
    }
  }
  prepared.forward.run({.left = tensor<T>(op.input),
                        .right = weights_as<T>(op, weights_of_product(op), space(prepared)),
                        .out = tensor<T>(op.output)},
                       scratch_.data());
  parallel_.ranges(whole_batch() * places(op), 1, kLeast / columns + 1,
                   [&](std::size_t begin, std::size_t end) {
                     T* rows = tensor<T>(op.output) + begin * columns;
                     kernels_.tokens<T>().add_bias(rows, parameter(op.bias), end - begin, columns);
                     if (op.relu) {
                       const std::size_t count = (end - begin) * columns;
                       kernels_.plane<T>().relu(rows, rows, count);
                     }
                   });
}

template <typename T>
void CpuProgram::rows_backward(const Operation& op, Prepared& prepared) {
  T* dy = tensor<T>(op.output_grad);
  if (op.relu) {
    over_elements(op.out.elements(), [&](std::size_t begin, std::size_t end) {
      kernels_.plane<T>().relu_backward(tensor<T>(op.output) + begin, dy + begin, dy + begin,
                                        end - begin, false);
    });
  }
  column_sums(dy, gradient(op.bias), whole_batch() * places(op), channels(op));
  if constexpr (std::is_same_v<T, Bf16>) {
    if (prepared.own_backward_weight) {
      prepared.own_backward_weight->run(tensor<T>(op.input), dy, gradient(op.weight),
                                        scratch_.data());
      if (!prepared.own_backward_input) return;
      return prepared.own_backward_input->run({.x = dy,
                                               .w = parameter(op.weight),
                                               .y = tensor<T>(op.input_grad),
                                               .adds = op.adds_input_grad},
                                              scratch_.data());
    }
  }
  prepared.backward_weight.run(
      {.left = tensor<T>(op.input), .right = dy, .out = gradient(op.weight)}, scratch_.data());
  if (op.input_grad == kNone) return;
  prepared.backward_input.run({.left = dy,
                               .right = weights_as<T>(op, weights_of_product(op), space(prepared)),
                               .out = tensor<T>(op.input_grad)},
                              scratch_.data());
}

// Each thread sums its rows; the sums are added in the order of threads.
template <typename T>
void CpuProgram::layer_norm_backward(const Operation& op, Prepared& prepared) {
  const std::size_t width = channels(op);
  const std::size_t stride = whole_lines(2 * width * sizeof(float)) / sizeof(float);
  auto* sums = reinterpret_cast<float*>(space(prepared));
  parallel_.each([&](int thread) {
    const auto [begin, end] = parallel_.share(whole_batch() * places(op), 16, thread);
    float* mine = sums + static_cast<std::size_t>(thread) * stride;
    std::fill_n(mine, 2 * width, 0.0F);
    const std::size_t at = begin * width;
    kernels_.tokens<T>().layer_norm_backward(
        {tensor<T>(op.input) + at, tensor<T>(op.output_grad) + at, tensor<T>(op.input_grad) + at,
         end - begin, width, parameter(op.weight), tensor<float>(op.saved) + 2 * begin, mine,
         mine + width, op.adds_input_grad});
  });
  for (std::size_t c = 0; c < width; ++c) {
    float scale = 0, offset = 0;
    for (int t = 0; t < parallel_.threads(); ++t) {
      scale += sums[static_cast<std::size_t>(t) * stride + c];
      offset += sums[static_cast<std::size_t>(t) * stride + width + c];
    }
    gradient(op.weight)[c] = scale;
    gradient(op.bias)[c] = offset;
  }
}

template <typename T>
void CpuProgram::attend(const Operation& op, Prepared& prepared, bool backward) {
  const auto heads = static_cast<std::size_t>(op.heads);
  const std::size_t all = channels(op), width = all / heads;
  const std::size_t stride = whole_lines(attention_scratch(places(op), width) * sizeof(float));
  parallel_.each([&](int thread) {
    const auto [begin, end] = parallel_.share(whole_batch() * heads, 1, thread);
    auto* scratch =
        reinterpret_cast<float*>(space(prepared) + static_cast<std::size_t>(thread) * stride);
    for (std::size_t unit = begin; unit < end; ++unit) {
      const std::size_t row = unit / heads * places(op), head = unit % heads;
      const std::size_t in = row * 3 * all + head * width, out = row * all + head * width;
      const T* q = tensor<T>(op.input) + in;
      const AttentionWork<T> work{q,
                                  q + all,
                                  q + 2 * all,
                                  tensor<T>(op.output) + out,
                                  tensor<float>(op.saved) + row * heads + head,
                                  places(op),
                                  width,
                                  3 * all,
                                  all,
                                  heads,
                                  1 / std::sqrt(static_cast<float>(width)),
                                  scratch};
      if (!backward) {
        kernels_.tokens<T>().attention(work);
        continue;
      }
      T* dq = tensor<T>(op.input_grad) + in;
      kernels_.tokens<T>().attention_backward(
          {work, tensor<T>(op.output_grad) + out, dq, dq + all, dq + 2 * all});
    }
  });
}

// The gradients too: logits are not kept.
template <typename T>
void CpuProgram::token_loss(const Operation& op, Prepared& prepared) {
  const std::size_t classes = channels(op), context = places(op), rows = prepared.rows;
  const auto width = static_cast<std::size_t>(op.in.channels);
  const std::size_t all = whole_batch() * context, mine = samples() * context;
  const bool trains = mode() == Mode::train;
  const float scale =
      1 / (static_cast<float>(batch().global_samples) * static_cast<float>(context));
  // Operands of the products: as they are, or widened to fp32; slopes are rounded, or as they are.
  const bool widened = widens(type_at(op.output));
  const bool rounds = !std::is_same_v<T, float> && !widened;
  auto* logits = reinterpret_cast<float*>(space(prepared));
  std::byte* behind = space(prepared) + whole_lines(rows * classes * sizeof(float));
  const void* table = rounds ? weights_as<T>(op, weights_of_product(op),
                                             behind + whole_lines(rows * classes * sizeof(T)))
                             : parameter(op.weight);
  auto* wide = reinterpret_cast<float*>(behind);
  std::vector<TokenLoss>& losses = prepared.losses;
  LossSums sums;
  for (std::size_t first = 0; first < all; first += rows) {
    const T* plane = tensor<T>(op.input) + first * width;
    const void* x = plane;
    if (widened) {
      parallel_.ranges(rows * width, kLine, kLeast, [&](std::size_t begin, std::size_t end) {
        kernels_.tokens<T>().widen(plane + begin, wide + begin, end - begin);
      });
      x = wide;
    }
    prepared.forward.run({.left = x, .right = table, .out = logits}, scratch_.data());
    parallel_.ranges(rows, 1, kLeast / classes + 1, [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) {
        const std::size_t row = first + i;
        float* own = logits + i * classes;
        losses[i] = {};
        if (row >= mine) {
          std::fill_n(own, classes, 0.0F);
        } else {
          const std::size_t label =
              token_at(batch().images + row / context * 2 * (context + 1), row % context + 1);
          losses[i] = kernels_.token_loss(own, classes, label, scale, trains);
        }
        if (trains && rounds) {
          kernels_.tokens<T>().convert(own, reinterpret_cast<T*>(behind) + i * classes, classes);
        }
      }
    });
    for (std::size_t i = 0; i < rows && first + i < mine; ++i) {
      sums.loss += losses[i].loss;
      sums.correct += losses[i].before == 0 && losses[i].is_number;
      sums.top5 += losses[i].before < kTop && losses[i].is_number;
    }
    if (!trains) continue;
    const void* slopes = rounds ? behind : static_cast<const void*>(logits);
    (first == 0 ? prepared.backward_weight : prepared.more_weight)
        .run({.left = slopes, .right = x, .out = gradient(op.weight)}, scratch_.data());
    T* dx = tensor<T>(op.output) + first * width;
    prepared.backward_input.run(
        {.left = slopes, .right = table, .out = widened ? static_cast<void*>(wide) : dx},
        scratch_.data());
    if (!widened) continue;
    parallel_.ranges(rows * width, kLine, kLeast, [&](std::size_t begin, std::size_t end) {
      kernels_.tokens<T>().convert(wide + begin, dx + begin, end - begin);
    });
  }
  add_sums(sums);
}

template void CpuProgram::tokens_forward<float>(const Operation& op, Prepared& prepared);
template void CpuProgram::tokens_forward<Bf16>(const Operation& op, Prepared& prepared);
template void CpuProgram::tokens_backward<float>(const Operation& op, Prepared& prepared);
template void CpuProgram::tokens_backward<Bf16>(const Operation& op, Prepared& prepared);

}  // namespace paceline::cpu
