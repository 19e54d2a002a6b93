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

constexpr unsigned kTokenThreads = 128;  // the fastest of those tried on an H200

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

void CudaProgram::prepare_layer_norm(const Operation& op, Prepared& prepared) {
  need_sums<LayerNormParameters<float>>(op.in);
  const std::size_t rows = whole_batch() * places(op);
  prepared.forward_way =
      choose_layer_norm(runtime_, products_, rows, op.in.channels, options_.math);
  if (prepared.forward_way > 0) prepared.implementation += ", rows are read once";
  if (op.input_grad == kNone) return;
  prepared.way = choose_layer_norm_gradient(runtime_, products_, rows, op.in.channels,
                                            options_.math, op.adds_input_grad);
  if (prepared.way == 0) return;
  prepared.implementation += ", gradients in one pass";
  const std::size_t blocks = most_layer_norm_blocks(runtime_);
  need_sums<BlockSums>(blocks, op.in.channels);
  const std::size_t sums = BlockSums::kSums * blocks * static_cast<std::size_t>(op.in.channels);
  block_sum_floats_ = std::max(block_sum_floats_, sums);
}

void CudaProgram::prepare_token_loss(const Operation& op, Prepared& prepared) {
  PreparedTokenLoss& loss = prepared.loss.emplace();
  const std::size_t size = size_of(plan_.activation);
  const auto classes = static_cast<std::size_t>(op.out.channels);
  const std::size_t rows =
      logit_rows(count_labels(), classes * size, runtime_.free_bytes(), options_.most_logit_rows);
  loss.whole = loss_piece(op, rows);
  if (count_labels() % rows != 0) loss.rest = loss_piece(op, count_labels() % rows);
  loss.way = choose_token_loss(runtime_, products_, rows, op.out.channels, options_.math);
  loss.logits = own(rows * classes * size);
  loss.table_gradient = own(classes * static_cast<std::size_t>(op.in.channels) * size);
  prepared.implementation = loss.whole.logits->implementation();
  if (loss.way > 0) prepared.implementation += "; rows are read once";
}

PreparedTokenLoss::Piece CudaProgram::loss_piece(const Operation& op, std::size_t rows) {
  const ConvShape shape = logits_shape(op, rows, options_.math);
  PreparedTokenLoss::Piece piece{rows, products_.conv({shape, ConvPass::forward}),
                                 products_.conv({shape, ConvPass::backward_data}),
                                 products_.conv({shape, ConvPass::backward_weights})};
  for (const auto* plan : {&piece.logits, &piece.backward_data, &piece.backward_weights}) {
    need_workspace((*plan)->workspace_bytes());
  }
  return piece;
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
      return run_layer_norm(runtime_, prepared.forward_way,
                            LayerNorm<T>{tensor<T>(op.input), tensor<T>(op.output),
                                         parameter(op.weight), parameter(op.bias), tensor(op.saved),
                                         op.out.channels, static_cast<float>(op.epsilon)},
                            rows, compute_.stream());
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
      return run_layer_norm_gradient(
          runtime_, prepared.way,
          LayerNormWork<T>{tensor<T>(op.input), dy,
                           op.input_grad == kNone ? nullptr : tensor<T>(op.input_grad),
                           parameter(op.weight), tensor(op.saved), gradient(op.weight),
                           gradient(op.bias), rows, op.out.channels, op.adds_input_grad},
          sum_memory(), compute_.stream());
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
  for (std::size_t first = 0; first < count_labels(); first += loss.whole.rows) {
    const bool fits = first + loss.whole.rows <= count_labels();
    const PreparedTokenLoss::Piece& piece = fits ? loss.whole : loss.rest;
    T* x = tensor<T>(op.input) + first * width;
    T* dx = tensor<T>(op.output) + first * width;
    piece.logits->run({x, table, loss.logits.data(), workspace_.data()}, stream);
    run_token_loss(runtime_, loss.way,
                   TokenLoss<T>{reinterpret_cast<T*>(loss.logits.data()), token_rows(context),
                                first, row_losses(counted_rows(first, piece.rows, context)),
                                op.out.channels, loss_scale(), scale, trains},
                   piece.rows, stream);
    if (!trains) continue;
    piece.backward_weights->run(
        {x, loss.table_gradient.data(), loss.logits.data(), workspace_.data()}, stream);
    float* sum = gradient(op.weight);
    run_vectors(Convert<float, T>{reinterpret_cast<const T*>(loss.table_gradient.data()), sum,
                                  elements, first == 0 ? nullptr : sum},
                elements);
    piece.backward_data->run({dx, table, loss.logits.data(), workspace_.data()}, stream);
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
