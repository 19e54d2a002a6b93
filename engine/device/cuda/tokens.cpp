// The operations of networks of tokens; dense layers of places are convolutions of 1 x 1.
#include "engine/device/cuda/kernels/tokens.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "engine/device/cuda/kernels/attention.h"
#include "engine/device/cuda/kernels/elementwise.h"
#include "engine/device/cuda/program.h"

namespace paceline::cuda {

namespace {

// The fastest of those tried on an H200. A layer norm's row is short: the threads of one warp
// hardly wait for each other.
constexpr unsigned kLogitThreads = 256, kNormThreads = 32, kTokenThreads = 128;

std::size_t places(const Operation& op) {
  return static_cast<std::size_t>(op.out.height) * static_cast<std::size_t>(op.out.width);
}

template <typename T, int Width>
void attend(Runtime& runtime, const AttentionRequest& request, const AttentionOperands& o,
            Stream stream) {
  const AttentionShape shape{static_cast<std::size_t>(request.samples),
                             static_cast<std::size_t>(request.places),
                             static_cast<std::size_t>(request.heads)};
  const Grid grid{shape.blocks(), AttentionShape::kThreads, AttentionBlock<Width>::shared_bytes()};
  const float scale = 1 / std::sqrt(static_cast<float>(Width));
  const auto *x = static_cast<const T*>(o.qkv), *dy = static_cast<const T*>(o.out_gradient);
  auto *y = static_cast<T*>(o.out), *dx = static_cast<T*>(o.qkv_gradient);
  auto *sums = static_cast<float*>(o.sums), *products = static_cast<float*>(o.products);
  if (!request.backward) {
    return runtime.launch(Attention<T, Width>{shape, x, y, sums, scale}, grid, stream);
  }
  const bool adds = request.accumulates;
  runtime.launch(AttentionQueryGradient<T, Width>{shape, x, y, dy, dx, sums, products, scale, adds},
                 grid, stream);
  runtime.launch(
      AttentionKeyGradient<T, Width, false>{shape, x, dy, dx, sums, products, scale, adds}, grid,
      stream);
  runtime.launch(
      AttentionKeyGradient<T, Width, true>{shape, x, dy, dx, sums, products, scale, adds}, grid,
      stream);
}

// It lives longer than a program: the library keeps the way that it chose.
AttentionWork own_attention(Runtime& runtime, const AttentionRequest& request) {
  return [&runtime, request](const AttentionOperands& operands, Stream stream) {
    with_type(stored_as(request.math), [&](auto type) {
      using T = decltype(type);
      if constexpr (std::is_same_v<T, float> || std::is_same_v<T, Bf16>) {
        request.width == 32 ? attend<T, 32>(runtime, request, operands, stream)
                            : attend<T, 64>(runtime, request, operands, stream);
      }
    });
  };
}

// An H200 orders so many by comparing all in 0.3 ms, and four times as long twice as many.
constexpr std::size_t kMostCompared = 32'768;

unsigned count_tiles(std::size_t rows) {
  return static_cast<unsigned>((rows + TokenDigits::kTile - 1) / TokenDigits::kTile);
}

}  // namespace

std::size_t token_sort_bytes(std::size_t rows) {
  if (rows <= kMostCompared) return 0;
  return rows * sizeof(TokenRow) + count_tiles(rows) * TokenDigits::kThreads * sizeof(unsigned);
}

void order_tokens(Runtime& runtime, const TokenRows& batch, TokenRow* order, std::byte* scratch,
                  Stream stream) {
  if (token_sort_bytes(batch.rows) == 0) {
    constexpr unsigned kRows = TokenOrder::kThreads;
    return runtime.launch(TokenOrder{batch, order},
                          {static_cast<unsigned>((batch.rows + kRows - 1) / kRows), kRows,
                           TokenOrder::shared_bytes()},
                          stream);
  }
  const unsigned tiles = count_tiles(batch.rows);
  auto* const half = reinterpret_cast<TokenRow*>(scratch);
  auto* const counts = reinterpret_cast<unsigned*>(half + batch.rows);
  const Grid each{tiles, TokenDigits::kThreads, TokenDigits::shared_bytes()};
  const auto sort = [&](const TokenDigits& from, TokenRow* to) {
    runtime.launch(TokenCounts{from, counts}, each, stream);
    runtime.launch(TokenPlaces{counts, tiles},
                   {1, TokenDigits::kThreads, TokenDigits::kThreads * sizeof(unsigned)}, stream);
    runtime.launch(TokenSort{from, counts, to}, each, stream);
  };
  sort({batch, nullptr, 0}, half);
  sort({batch, half, 8}, order);
}

bool CudaProgram::is_of_tokens(OpKind kind) {
  return kind == OpKind::embedding || kind == OpKind::layer_norm || kind == OpKind::gelu ||
         kind == OpKind::attention || kind == OpKind::token_cross_entropy;
}

void CudaProgram::prepare_attention(const Operation& op, Prepared& prepared) {
  PreparedAttention& attention = prepared.attention.emplace();
  AttentionRequest request{.samples = plan_.batch,
                           .places = op.out.height * op.out.width,
                           .heads = op.heads,
                           .width = op.out.channels / op.heads,
                           .math = options_.math};
  const auto make = [&] {
    auto plan = products_.attention(request, own_attention(runtime_, request));
    need_workspace(plan->workspace_bytes());
    return plan;
  };
  attention.forward = make();
  prepared.implementation = attention.forward->implementation();
  if (op.input_grad == kNone) return;
  request.backward = true;
  request.accumulates = op.adds_input_grad;
  attention.backward = make();
  prepared.implementation += "; backward " + attention.backward->implementation();
  attention.products = own(count_labels() * static_cast<std::size_t>(op.heads) * sizeof(float));
}

void CudaProgram::prepare_token_loss(const Operation& op, Prepared& prepared) {
  PreparedTokenLoss& loss = prepared.loss.emplace();
  loss.rows = logit_rows(count_labels());
  const ConvShape shape = logits_shape(op, loss.rows, options_.math);
  loss.logits = products_.conv({shape, ConvPass::forward, false});
  loss.backward_data = products_.conv({shape, ConvPass::backward_data, false});
  loss.backward_weights = products_.conv({shape, ConvPass::backward_weights, false});
  for (const auto* plan : {&loss.logits, &loss.backward_data, &loss.backward_weights}) {
    need_workspace((*plan)->workspace_bytes());
  }
  const std::size_t size = size_of(plan_.activation);
  const auto classes = static_cast<std::size_t>(op.out.channels);
  loss.piece = own(loss.rows * classes * size);
  loss.table_gradient = own(classes * static_cast<std::size_t>(op.in.channels) * size);
  prepared.implementation = loss.logits->implementation();
}

TokenRows CudaProgram::token_rows(std::size_t context) const {
  return {reinterpret_cast<const std::uint16_t*>(staging_.images()), samples() * context, context};
}

template <typename T>
void CudaProgram::tokens_forward(const Operation& op, Prepared& prepared) {
  const std::size_t rows = whole_batch() * places(op), count = whole_batch() * op.out.elements();
  const auto channels = static_cast<std::size_t>(op.out.channels);
  switch (op.kind) {
    case OpKind::embedding:
      return run(Embed<T>{token_rows(places(op)), parameter(op.weight), parameter(op.bias),
                          tensor<T>(op.output), (whole_batch() - samples()) * places(op), channels},
                 count);
    case OpKind::layer_norm:
      return runtime_.launch(
          LayerNorm<T>{tensor<T>(op.input), tensor<T>(op.output), parameter(op.weight),
                       parameter(op.bias), tensor(op.saved), op.out.channels,
                       static_cast<float>(op.epsilon)},
          {static_cast<unsigned>(rows), kNormThreads, kNormThreads * sizeof(float)},
          compute_.stream());
    case OpKind::gelu:
      if (prepared.forward_inside) return;
      return run_vectors(Gelu<T>{tensor<T>(op.input), nullptr, tensor<T>(op.output), count}, count);
    case OpKind::attention:
      return attend(op, *prepared.attention, false);
    case OpKind::token_cross_entropy:
      return token_loss<T>(op, prepared);
    default:
      throw internal_error("not an operation on tokens", op.text());
  }
}

template <typename T>
void CudaProgram::tokens_backward(const Operation& op, Prepared& prepared) {
  const std::size_t rows = whole_batch() * places(op), count = whole_batch() * op.out.elements();
  if (op.kind == OpKind::token_cross_entropy) return;  // forward did it
  const T* dy = tensor<T>(op.output_grad);
  switch (op.kind) {
    case OpKind::embedding:
      run(PositionGradient<T>{dy, gradient(op.bias), samples(), op.out.elements()},
          op.out.elements());
      return token_gradient<T>(op, prepared);
    case OpKind::layer_norm:
      run_sums(LayerNormParameters<T>{tensor<T>(op.input), dy, tensor(op.saved),
                                      gradient(op.weight), gradient(op.bias), op.out.channels},
               rows, op.out.channels);
      if (op.input_grad == kNone) return;
      return runtime_.launch(
          LayerNormGradient<T>{tensor<T>(op.input), dy, tensor<T>(op.input_grad),
                               parameter(op.weight), tensor(op.saved), op.out.channels,
                               op.adds_input_grad},
          {static_cast<unsigned>(rows), kNormThreads, kNormThreads * sizeof(float)},
          compute_.stream());
    case OpKind::gelu:
      if (op.input_grad == kNone || prepared.backward_inside) return;
      return run_vectors(
          Gelu<T>{tensor<T>(op.input), dy, tensor<T>(op.input_grad), count, op.adds_input_grad},
          count);
    case OpKind::attention:
      if (op.input_grad == kNone) return;
      return attend(op, *prepared.attention, true);
    default:
      throw internal_error("not an operation on tokens", op.text());
  }
}

template <typename T>
void CudaProgram::token_gradient(const Operation& op, Prepared& prepared) {
  if (samples_ == 0) return;
  const TokenRows batch = token_rows(places(op));
  auto* order = reinterpret_cast<TokenRow*>(prepared.token_order.data());
  order_tokens(runtime_, batch, order, prepared.token_sort.data(), compute_.stream());
  runtime_.launch(TokenGradient<T>{order, tensor<T>(op.output_grad), gradient(op.weight),
                                   batch.rows, op.out.channels},
                  {static_cast<unsigned>(batch.rows), kTokenThreads, 0}, compute_.stream());
}

void CudaProgram::attend(const Operation& op, const PreparedAttention& attention, bool backward) {
  AttentionOperands operands{.qkv = tensor<std::byte>(op.input),
                             .out = tensor<std::byte>(op.output),
                             .sums = tensor(op.saved),
                             .workspace = workspace_.data()};
  if (!backward) return attention.forward->run(operands, compute_.stream());
  operands.out_gradient = tensor<std::byte>(op.output_grad);
  operands.products = floats(attention.products);
  operands.qkv_gradient = tensor<std::byte>(op.input_grad);
  attention.backward->run(operands, compute_.stream());
}

// The gradients too: logits are not kept.
template <typename T>
void CudaProgram::token_loss(const Operation& op, Prepared& prepared) {
  PreparedTokenLoss& loss = *prepared.loss;
  const auto context = static_cast<std::size_t>(op.in.height);
  const auto width = static_cast<std::size_t>(op.in.channels);
  const std::size_t elements = width * static_cast<std::size_t>(op.out.channels);
  const bool trains = mode_ == Mode::train;
  const float scale = 1 / (static_cast<float>(global_samples_) * static_cast<float>(context));
  void* table = narrow() ? static_cast<void*>(narrow_parameters_.data() +
                                              offset(op.weight) * size_of(plan_.activation))
                         : parameter(op.weight);
  const Stream stream = compute_.stream();
  for (std::size_t first = 0; first < count_labels(); first += loss.rows) {
    T* x = tensor<T>(op.input) + first * width;
    T* dx = tensor<T>(op.output) + first * width;
    loss.logits->run({x, table, loss.piece.data(), workspace_.data()}, stream);
    runtime_.launch(
        TokenLoss<T>{reinterpret_cast<T*>(loss.piece.data()), token_rows(context), first,
                     row_losses(counted_rows(first, loss.rows, context)), op.out.channels,
                     loss_scale(), scale, trains},
        {static_cast<unsigned>(loss.rows), kLogitThreads, kLogitThreads * sizeof(double)}, stream);
    if (!trains) continue;
    loss.backward_weights->run(
        {x, loss.table_gradient.data(), loss.piece.data(), workspace_.data()}, stream);
    float* sum = gradient(op.weight);
    run_vectors(Convert<float, T>{reinterpret_cast<const T*>(loss.table_gradient.data()), sum,
                                  elements, first == 0 ? nullptr : sum},
                elements);
    loss.backward_data->run({dx, table, loss.piece.data(), workspace_.data()}, stream);
  }
}

// How many rows of a piece have a label.
int CudaProgram::counted_rows(std::size_t first, std::size_t rows, std::size_t context) const {
  const std::size_t all = samples() * context;
  return static_cast<int>(first >= all ? 0 : std::min(rows, all - first));
}

template void CudaProgram::tokens_forward<float>(const Operation& op, Prepared& prepared);
template void CudaProgram::tokens_forward<Bf16>(const Operation& op, Prepared& prepared);
template void CudaProgram::tokens_backward<float>(const Operation& op, Prepared& prepared);
template void CudaProgram::tokens_backward<Bf16>(const Operation& op, Prepared& prepared);

}  // namespace paceline::cuda
