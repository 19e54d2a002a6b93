#include "engine/device/cuda/ways.h"

#include <fmt/format.h>

#include <array>
#include <type_traits>

#include "engine/device/cuda/gpu_runtime.h"
#include "engine/device/cuda/kernels/elementwise.h"
#include "engine/device/cuda/kernels/norm.h"

namespace paceline::cuda {

namespace {

constexpr unsigned kLogitThreads = 256;  // the fastest of those tried on an H200

// By way. Rows of a block that keeps those of a layer norm, 0: it reads one again; blocks a
// multiprocessor of a layer norm's one pass, 0: two passes; threads of a block that keeps a row of
// logits, 0: they are read twice; blocks a multiprocessor of a batch norm.
constexpr std::array kLayerNormRows = {0U, 1U, 4U};
constexpr std::array kLayerNormBlocks = {0U, 2U, 3U};
constexpr std::array kKeepingThreads = {0U, 512U, 1024U};
constexpr std::array kNormBlocks = {2U, 3U, kMostNormBlocks};

// Zeroed memory that ways are tried out with, from when the first of them runs.
auto lazy_memory(Runtime& runtime, std::size_t bytes) {
  return [&runtime, bytes, memory = std::make_shared<Memory>()] {
    if (!memory->data()) *memory = runtime.device_memory(bytes);
    return memory->data();
  };
}

auto lazy_sums(Runtime& runtime, std::size_t sums, int channels, unsigned blocks,
               std::size_t block_sums) {
  const auto columns = static_cast<std::size_t>(channels);
  const std::size_t partials = sums * blocks * runtime.multiprocessors() * columns;
  const std::size_t floats = partials + block_sums + columns;
  return [partials, block_sums, memory = lazy_memory(runtime, floats * sizeof(float))] {
    auto* const first = reinterpret_cast<float*>(memory());
    float* const of_blocks = first + partials;
    return SumMemory{first, reinterpret_cast<unsigned*>(of_blocks + block_sums), of_blocks};
  };
}

template <typename T>
T* at(const Operands& o, int index) {
  return static_cast<T*>(o.tensors.at(static_cast<std::size_t>(index)));
}

TensorSize plane(std::size_t rows, std::size_t columns, Math math) {
  return {rows * columns, stored_as(math)};
}

// 14 of a value for each channel, of which each sum writes some.
TensorSize vectors(std::size_t columns) {
  return {14 * columns, DType::f32, TensorSize::Use::added_to};
}
NormState norm_state(float* all, std::size_t channels) {
  const auto vector = [&](std::size_t i) { return all + i * channels; };
  return {vector(0), vector(1), vector(2), vector(3), vector(4), vector(5), vector(6)};
}
NormParameters norm_parameters(float* all, std::size_t channels) {
  const auto vector = [&](std::size_t i) { return all + i * channels; };
  return {.gamma = vector(7),
          .beta = vector(8),
          .bias = vector(9),
          .running_mean = vector(10),
          .running_variance = vector(11),
          .gamma_gradient = vector(12),
          .beta_gradient = vector(13),
          .epsilon = 1e-3F,
          .keep = 0.9F};
}

// `make` makes the row of operands.
template <typename Make>
unsigned choose_blocks(Runtime& runtime, Products& products, OwnWays own, int channels,
                       std::size_t sums, const Make& make) {
  own.ways = kNormBlocks.size();
  own.run = [&runtime, make, channels, rows = own.terms,
             memory = lazy_sums(runtime, sums, channels, kMostNormBlocks, 0)](
                std::size_t way, const Operands& o, Stream stream) {
    launch_sums(runtime, make(o), make_tiling(runtime, rows, channels, kNormBlocks.at(way)),
                memory(), stream);
  };
  return kNormBlocks.at(products.own_way(own));
}

}  // namespace

template <typename T>
void run_layer_norm_gradient(Runtime& runtime, std::size_t way, const LayerNormWork<T>& w,
                             const SumMemory& memory, Stream stream) {
  const unsigned blocks = kLayerNormBlocks.at(way) * runtime.multiprocessors();
  if constexpr (std::is_same_v<T, Bf16>) {
    if (blocks > 0 && w.dx) {
      using OnePass = LayerNormOnePass<T>;
      const BlockSums row{memory.of_blocks, blocks, w.dgamma, w.dbeta, w.channels};
      runtime.launch(
          OnePass{w.x, w.dy, w.dx, w.gamma, w.sums, memory.of_blocks, w.rows, w.channels, w.adds},
          {blocks, OnePass::kThreads, OnePass::shared_bytes()}, stream);
      return launch_sums(runtime, row, make_tiling(runtime, blocks, w.channels, row.kBlocks),
                         memory, stream);
    }
  }
  const LayerNormParameters<T> row{w.x, w.dy, w.sums, w.dgamma, w.dbeta, w.channels};
  launch_sums(runtime, row, make_tiling(runtime, w.rows, w.channels, row.kBlocks), memory, stream);
  if (!w.dx) return;
  runtime.launch(LayerNormGradient<T>{w.x, w.dy, w.dx, w.gamma, w.sums, w.channels, w.adds},
                 {static_cast<unsigned>(w.rows), kNormThreads, kNormThreads * sizeof(float)},
                 stream);
}
template void run_layer_norm_gradient(Runtime&, std::size_t, const LayerNormWork<float>&,
                                      const SumMemory&, Stream);
template void run_layer_norm_gradient(Runtime&, std::size_t, const LayerNormWork<Bf16>&,
                                      const SumMemory&, Stream);

unsigned most_layer_norm_blocks(const Runtime& runtime) {
  return kLayerNormBlocks.back() * runtime.multiprocessors();
}

template <typename T>
void run_token_loss(Runtime& runtime, std::size_t way, const TokenLoss<T>& work, std::size_t rows,
                    Stream stream) {
  const auto blocks = static_cast<unsigned>(rows);
  const unsigned threads = kKeepingThreads.at(way);
  if (threads == 0) {
    return runtime.launch(work, {blocks, kLogitThreads, work.shared_bytes(kLogitThreads)}, stream);
  }
  const TokenLossKept<T> kept{work};
  runtime.launch(kept, {blocks, threads, kept.shared_bytes(threads)}, stream);
}
template void run_token_loss(Runtime&, std::size_t, const TokenLoss<float>&, std::size_t, Stream);
template void run_token_loss(Runtime&, std::size_t, const TokenLoss<Bf16>&, std::size_t, Stream);

template <typename T>
void run_layer_norm(Runtime& runtime, std::size_t way, const LayerNorm<T>& work, std::size_t rows,
                    Stream stream) {
  if (way == 0) {
    return runtime.launch(
        work, {static_cast<unsigned>(rows), kNormThreads, kNormThreads * sizeof(float)}, stream);
  }
  const unsigned each = kLayerNormRows.at(way), threads = each * WarpRows::kLanes;
  const auto blocks = static_cast<unsigned>((rows + each - 1) / each);
  runtime.launch(LayerNormKept<T>(work, rows), {blocks, threads, threads * sizeof(float)}, stream);
}
template void run_layer_norm(Runtime&, std::size_t, const LayerNorm<float>&, std::size_t, Stream);
template void run_layer_norm(Runtime&, std::size_t, const LayerNorm<Bf16>&, std::size_t, Stream);

std::size_t choose_layer_norm(Runtime& runtime, Products& products, std::size_t rows, int channels,
                              Math math) {
  if (channels > WarpRows::kMostChannels) return 0;
  using Use = TensorSize::Use;
  const DType type = stored_as(math);
  const auto columns = static_cast<std::size_t>(channels);
  const auto run = [&runtime, rows, channels, type](std::size_t way, const Operands& o,
                                                    Stream stream) {
    const auto run_as = [&](auto value) {
      using T = decltype(value);
      run_layer_norm(runtime, way,
                     LayerNorm<T>{at<T>(o, 0), at<T>(o, 1), at<float>(o, 2), at<float>(o, 3),
                                  at<float>(o, 4), channels, 1e-5F},
                     rows, stream);
    };
    type == DType::f32 ? run_as(float{}) : run_as(Bf16{});
  };
  return products.own_way({fmt::format("layer_norm {}x{} {}", rows, channels, to_string(type)),
                           {{rows * columns, type},
                            {rows * columns, type, Use::written},
                            {columns, DType::f32},
                            {columns, DType::f32},
                            {2 * rows, DType::f32, Use::written}},
                           math,
                           columns,
                           kLayerNormRows.size(),
                           run});
}

std::size_t choose_layer_norm_gradient(Runtime& runtime, Products& products, std::size_t rows,
                                       int channels, Math math, bool adds) {
  // In 32 bits two blocks would not fit on a multiprocessor.
  if (math != Math::bf16 || channels > WarpRows::kMostChannels) return 0;
  using Use = TensorSize::Use;
  using Parameters = LayerNormParameters<float>;
  const DType type = stored_as(math);
  const auto columns = static_cast<std::size_t>(channels);
  const std::size_t of_blocks = BlockSums::kSums * most_layer_norm_blocks(runtime) * columns;
  const auto run =
      [&runtime, rows, channels, adds,
       memory = lazy_sums(runtime, Parameters::kSums, channels, Parameters::kBlocks, of_blocks)](
          std::size_t way, const Operands& o, Stream stream) {
        using T = Bf16;
        run_layer_norm_gradient(runtime, way,
                                LayerNormWork<T>{at<T>(o, 0), at<T>(o, 1), at<T>(o, 2),
                                                 at<float>(o, 3), at<float>(o, 4), at<float>(o, 5),
                                                 at<float>(o, 6), rows, channels, adds},
                                memory(), stream);
      };
  return products.own_way({fmt::format("layer_norm gradient {}x{} {}{}", rows, channels,
                                       to_string(type), adds ? " adds" : ""),
                           {{rows * columns, type},
                            {rows * columns, type},
                            {rows * columns, type, adds ? Use::added_to : Use::written},
                            {columns, DType::f32},
                            {2 * rows, DType::f32},
                            {columns, DType::f32, Use::written},
                            {columns, DType::f32, Use::written}},
                           math,
                           rows,
                           kLayerNormBlocks.size(),
                           run});
}

std::size_t choose_token_loss(Runtime& runtime, Products& products, std::size_t rows, int classes,
                              Math math) {
  constexpr std::size_t kMostRows = 2048;  // some rounds of the card
  const std::size_t tried = std::min(rows, kMostRows);
  const auto columns = static_cast<std::size_t>(classes);
  // The sums of rows, then a number for each row: its tokens, all of them 0, and its results.
  struct Numbers {
    double sums[3];
    unsigned finished;
  };
  const std::size_t each = (tried + 2) * sizeof(float);
  const auto run = [&runtime, tried, classes, math, each,
                    memory = lazy_memory(runtime, sizeof(Numbers) + 3 * each)](
                       std::size_t way, const Operands& o, Stream stream) {
    auto* const numbers = reinterpret_cast<Numbers*>(memory());
    auto* const tokens = reinterpret_cast<std::byte*>(numbers + 1);
    const RowLosses losses{reinterpret_cast<float*>(tokens + each),
                           reinterpret_cast<std::uint8_t*>(tokens + 2 * each), numbers->sums,
                           &numbers->finished, static_cast<int>(tried)};
    const TokenRows batch{reinterpret_cast<const std::uint16_t*>(tokens), tried, tried};
    const auto run_as = [&](auto value) {
      using T = decltype(value);
      run_token_loss(runtime, way,
                     TokenLoss<T>{at<T>(o, 0), batch, 0, losses, classes, nullptr, 1, true}, tried,
                     stream);
    };
    stored_as(math) == DType::f32 ? run_as(float{}) : run_as(Bf16{});
  };
  return products.own_way(
      {fmt::format("loss of tokens {}x{} {}", tried, classes, to_string(stored_as(math))),
       {{tried * columns, stored_as(math), TensorSize::Use::added_to}},
       math,
       columns,
       kKeepingThreads.size(),
       run});
}

template <typename T>
void run_pool_gradient(Runtime& runtime, std::size_t way, const AveragePoolBackward<T>& work,
                       Stream stream) {
  const std::size_t count = work.samples * static_cast<std::size_t>(work.places * work.channels);
  if (way == 0) return launch_over(runtime, work, count, stream);
  launch_over(runtime, AveragePoolByVector<T>{work}, count / kVector, stream);
}
template void run_pool_gradient(Runtime&, std::size_t, const AveragePoolBackward<float>&, Stream);
template void run_pool_gradient(Runtime&, std::size_t, const AveragePoolBackward<Bf16>&, Stream);
template void run_pool_gradient(Runtime&, std::size_t, const AveragePoolBackward<Half>&, Stream);

std::size_t choose_pool_gradient(Runtime& runtime, Products& products,
                                 const AveragePoolBackward<float>& sizes, Math math) {
  if (sizes.channels % kVector != 0) return 0;
  const DType type = stored_as(math);
  const std::size_t sums = sizes.samples * static_cast<std::size_t>(sizes.channels);
  const auto run = [&runtime, sizes, type](std::size_t way, const Operands& o, Stream stream) {
    with_type(type, [&](auto value) {
      using T = decltype(value);
      run_pool_gradient(runtime, way,
                        AveragePoolBackward<T>{at<float>(o, 0), at<T>(o, 1), sizes.samples,
                                               sizes.places, sizes.channels, sizes.adds},
                        stream);
    });
  };
  return products.own_way(
      {fmt::format("average_pool gradient {}x{}x{} {}{}", sizes.samples, sizes.places,
                   sizes.channels, to_string(type), sizes.adds ? " adds" : ""),
       {{sums, DType::f32},
        {sums * static_cast<std::size_t>(sizes.places), type,
         sizes.adds ? TensorSize::Use::added_to : TensorSize::Use::written}},
       math,
       1,
       2,
       run});
}

template <typename T>
void run_update(Runtime& runtime, std::size_t way, const UpdateWork<T>& work, Stream stream) {
  if (way == 0) return launch_over(runtime, Update<T, false>{work}, work.count, stream);
  launch_over(runtime, Update<T, true>{work}, (work.count + kVector - 1) / kVector, stream);
}
template void run_update(Runtime&, std::size_t, const UpdateWork<float>&, Stream);
template void run_update(Runtime&, std::size_t, const UpdateWork<Bf16>&, Stream);
template void run_update(Runtime&, std::size_t, const UpdateWork<Half>&, Stream);

std::size_t choose_update(Runtime& runtime, Products& products, Optimizer optimizer,
                          std::size_t elements, Math math) {
  constexpr std::size_t kMost = std::size_t{16} << 20;  // more than any cache holds
  const std::size_t tried = std::min(elements, kMost);
  const DType type = stored_as(math);
  const TensorSize arena{tried, DType::f32, TensorSize::Use::added_to};
  const auto run = [&runtime, optimizer, arena, type,
                    memory = lazy_memory(runtime, sizeof(UpdateRule) + tried / kDecayGroup + 1)](
                       std::size_t way, const Operands& o, Stream stream) {
    auto* const rule = reinterpret_cast<UpdateRule*>(memory());
    UpdateRule its{.optimizer = optimizer};
    runtime.launch(SetRule{its, rule, nullptr}, {1, 1, 0}, stream);
    // A random number may have no root.
    const bool has_root = optimizer == Optimizer::adagrad || optimizer == Optimizer::adam;
    const int arenas = state_arenas(optimizer);
    if (has_root) runtime.fill(at<float>(o, arenas), 0, arena.bytes(), stream);
    with_type(type, [&](auto value) {
      using T = decltype(value);
      run_update(runtime, way,
                 UpdateWork<T>{at<float>(o, 0), arenas > 0 ? at<float>(o, 1) : nullptr,
                               arenas > 1 ? at<float>(o, 2) : nullptr, at<float>(o, 3),
                               type == DType::f32 ? nullptr : at<T>(o, 4), rule, nullptr, nullptr,
                               reinterpret_cast<const std::uint8_t*>(rule + 1), arena.elements},
                 stream);
    });
  };
  return products.own_way(
      {fmt::format("update {} {} {}", to_string(optimizer), tried, to_string(type)),
       {arena, arena, arena, {tried, DType::f32}, {tried, type, arena.use}},
       math,
       1,
       2,
       run});
}

bool choose_bias_inside(Runtime& runtime, Products& products, const ConvShape& shape,
                        ConvPlan& plain, ConvPlan& inside) {
  using T = Bf16;
  using Row = BiasGradient<T>;
  const std::size_t rows = std::size_t{1} * shape.batch * shape.height * shape.width;
  const auto in = static_cast<std::size_t>(shape.in), out = static_cast<std::size_t>(shape.out);
  const std::size_t workspace = std::max(plain.workspace_bytes(), inside.workspace_bytes());
  const auto run = [&, rows, out, sums = lazy_sums(runtime, Row::kSums, shape.out, Row::kBlocks, 0),
                    memory = lazy_memory(runtime, workspace),
                    narrow = lazy_memory(runtime, 2 * out)](std::size_t way, const Operands& o,
                                                            Stream stream) {
    T* const dy = at<T>(o, 0);
    float* const db = at<float>(o, 3);
    ConvOperands operands{at<T>(o, 1), at<T>(o, 2), dy, memory()};
    if (way == 0) {
      plain.run(operands, stream);
      return launch_sums(runtime, Row{dy, db, shape.out},
                         make_tiling(runtime, rows, shape.out, Row::kBlocks), sums(), stream);
    }
    operands.bias = narrow();
    inside.run(operands, stream);
    launch_over(runtime, Convert<float, T>{reinterpret_cast<T*>(narrow()), db, out},
                (out + kVector - 1) / kVector, stream);
  };
  const OwnWays ways{fmt::format("gradients of weights and bias {}x{} to {} {}", rows, in, out,
                                 to_string(stored_as(shape.math))),
                     {plane(rows, out, shape.math),
                      plane(rows, in, shape.math),
                      {out * in, stored_as(shape.math), TensorSize::Use::written},
                      {out, DType::f32, TensorSize::Use::written}},
                     shape.math,
                     rows,
                     2,
                     run};
  return products.own_way(ways) == 1;
}

unsigned choose_statistics_blocks(Runtime& runtime, Products& products, std::size_t rows,
                                  int channels, Math math) {
  unsigned blocks = 0;
  const auto columns = static_cast<std::size_t>(channels);
  const std::string name =
      fmt::format("batch_norm statistics {}x{} {}", rows, channels, to_string(stored_as(math)));
  with_type(stored_as(math), [&](auto value) {
    using T = decltype(value);
    blocks = choose_blocks(
        runtime, products,
        {name, {plane(rows, columns, math), vectors(columns)}, math, rows, 0, {}}, channels,
        NormStatistics<T>::kSums, [rows, channels, columns](const Operands& o) {
          float* const v = at<float>(o, 1);
          return NormStatistics<T>{at<T>(o, 0), rows, channels, norm_state(v, columns),
                                   norm_parameters(v, columns)};
        });
  });
  return blocks;
}

unsigned choose_gradient_blocks(Runtime& runtime, Products& products, std::size_t rows,
                                int channels, Math math, bool has_branch, bool masks) {
  unsigned blocks = 0;
  const auto columns = static_cast<std::size_t>(channels);
  const std::string name =
      fmt::format("batch_norm gradients {}x{} {}{}{}", rows, channels, to_string(stored_as(math)),
                  has_branch ? " + branch" : "", masks ? " masked" : "");
  const TensorSize all = plane(rows, columns, math), none{1, DType::f32};
  const TensorSize signs{rows * columns / 32 + 1, DType::f32};  // a bit each element
  const OwnWays own{name,
                    {all, all, vectors(columns), has_branch ? all : none,
                     has_branch ? vectors(columns) : none, signs},
                    math,
                    rows,
                    0,
                    {}};
  with_type(stored_as(math), [&](auto value) {
    using T = decltype(value);
    const auto choose = [&]<bool kBranch>() {
      using Row = NormGradientSums<T, kBranch>;
      blocks = choose_blocks(runtime, products, own, channels, Row::kSums,
                             [rows, channels, columns, masks](const Operands& o) {
                               float *const v = at<float>(o, 2), *const v2 = at<float>(o, 4);
                               const auto* const passed =
                                   masks ? at<const std::uint8_t>(o, 5) : nullptr;
                               return Row{at<T>(o, 0),
                                          at<T>(o, 3),
                                          at<T>(o, 1),
                                          passed,
                                          rows,
                                          channels,
                                          norm_state(v, columns),
                                          norm_state(v2, columns),
                                          norm_parameters(v, columns),
                                          norm_parameters(v2, columns)};
                             });
    };
    has_branch ? choose.template operator()<true>() : choose.template operator()<false>();
  });
  return blocks;
}

}  // namespace paceline::cuda
