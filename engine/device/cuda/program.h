// The device's program: Paceline's kernels and a library's products, queued on one stream.
//
// Planes are NHWC in the plan's activation type. Parameters, gradients and moments are fp32;
// convolution weights are in the order out, row, column, in. With 16-bit planes, products read a
// 16-bit copy of the parameters, which the optimizer writes too. Their weight gradients are 16 bits
// in a separate arena, and each bucket is widened before it is reduced. The first convolution's
// channels are padded for tensor cores; see padded_channels().
//
// As on the CPU, everything except the loss and the sums of batch_norm runs over the whole batch.
// Samples missing in an incomplete batch are black images with zero loss gradient.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "engine/core/error.h"
#include "engine/device/cuda/gpu_runtime.h"
#include "engine/device/cuda/kernels/number.h"
#include "engine/device/cuda/lane.h"
#include "engine/device/cuda/products.h"
#include "engine/device/cuda/replays.h"
#include "engine/device/cuda/ways.h"
#include "engine/device/device.h"
#include "engine/plan/plan.h"

namespace paceline::cuda {

// Of kernels: who launches one includes its header.
template <typename T>
struct Dropout;
struct NormParameters;
struct NormState;
struct StepValues;

// Copies a step's input to the device, in two slots: the copy lane fills one while the program
// computes on the other.

class Staging {
 public:
  // Slots for `batch` samples of `elements`. Runtime and lanes outlive it.
  Staging(Runtime& runtime, StreamLane& compute, StreamLane& copy, int batch, std::size_t elements);

  // Queues the copy of a batch to its slot, after the slot's last use, and makes the compute lane
  // wait for it.
  void load(const Batch& batch);
  // The slot and the content of the last batch.
  int slot() const { return static_cast<int>(slot_); }
  const std::uint8_t* images() const { return current().images; }
  const std::int32_t* labels() const { return current().labels; }
  const std::uint32_t* positions() const { return current().positions; }
  const StepValues* step() const { return current().step; }

  // Blocks until the last batch is copied, so the caller may overwrite it.
  void wait_until_copied() const;

  std::size_t bytes() const { return memory_.bytes(); }

 private:
  static constexpr std::size_t kSlots = 2;
  struct Slot {
    std::uint8_t* images;
    std::int32_t* labels;
    std::uint32_t* positions;
    StepValues* step;
    std::byte* host;  // pinned: labels, positions and step, as they lie on the device
    Marker copied, used;
  };
  const Slot& current() const { return slots_[slot_]; }

  Runtime& runtime_;
  StreamLane &compute_, &copy_;
  std::size_t elements_, numbers_;  // of a sample; bytes of all labels, or positions
  Memory memory_, pinned_;
  std::array<Slot, kSlots> slots_{};
  std::size_t slot_ = 0;
};

// A convolution: its plans, and the addresses of weights and weight gradients for products.
struct PreparedConv {
  std::unique_ptr<ConvPlan> forward, backward_data, backward_weights;
  Epilogue with_forward = Epilogue::none, with_data = Epilogue::none;
  bool beside = false;  // its weight gradient runs beside its data gradient
  ConvShape shape;      // of the products
  bool folded = false;  // it reads 2 x 2 pixels as one place; see fold_shape()
  void *w = nullptr, *dw = nullptr, *bias = nullptr;
  void* db = nullptr;  // if backward_weights also writes the bias's gradient
  Memory reordered_w,
      reordered_dw;  // if the products' weights lie otherwise than the arena's; see
                     // reordered_input_
};

// The plans of a dense layer.
struct PreparedDense {
  std::unique_ptr<MatmulPlan> forward, backward_input, backward_weights;
  bool adds_bias = false, sums_bias = false;  // epilogues of forward and backward_weights
  Memory wide_x, wide_dx;                     // if it reads a 16-bit plane
};

// The loss of tokens, in pieces of rows, and the plans of their products: of whole pieces, and of
// the rest that is left.
struct PreparedTokenLoss {
  struct Piece {
    std::size_t rows = 0;
    std::unique_ptr<ConvPlan> logits, backward_data, backward_weights;
  };
  Piece whole, rest;
  std::size_t way = 0;            // run_token_loss()
  Memory logits, table_gradient;  // of a piece; in the planes' type
};

struct PreparedAttention {
  std::unique_ptr<AttentionPlan> forward, backward;
  Memory products;
};

// Rows of a batch in the order of their tokens, rows of one token in order. `scratch` has as many
// bytes as token_sort_bytes() says of the most rows.
std::size_t token_sort_bytes(std::size_t rows);
void order_tokens(Runtime& runtime, const TokenRows& batch, TokenRow* order, std::byte* scratch,
                  Stream stream);

class CudaProgram final : public Program {
 public:
  // All references outlive the program.
  CudaProgram(const Plan& plan, std::byte* gradients, Runtime& runtime, Products& products,
              StreamLane& compute, StreamLane& copy, StreamLane& comm,
              const CudaDeviceOptions& options);
  ~CudaProgram() override;

  using Program::forward;
  void load(const Batch& batch) override;
  void forward(Mode mode) override;
  void repeat_forward(int from, int to) override;
  void backward(int from, int to) override;
  void accumulate(Accumulate which, std::size_t begin, std::size_t end) override;
  void measure_gradients(const UpdateRule& rule) override;
  void update(const UpdateRule& rule, std::size_t begin, std::size_t end) override;
  void run_step(const UpdateRule* rule, const std::function<void()>& queue,
                const std::function<void()>& undo_bookkeeping) override;
  void wait_for_input() override { staging_.wait_until_copied(); }
  LossSums take_sums() override;

  std::byte* gradients() override { return gradients_; }
  std::vector<double> read_parameter(int index) const override;
  std::vector<double> read_gradient(int index) const override;
  void write_parameter(int index, std::span<const double> values) override;
  void write_gradient(int index, std::span<const double> values) override;
  std::vector<double> read_statistic(int index) const override;
  void write_statistic(int index, std::span<const double> values) override;
  void reserve(Optimizer optimizer, bool accumulates) override;
  ProgramState state(Optimizer optimizer) override;
  void state_written() override {
    copies_stale_ = true;
    rule_set_.reset();  // the count of skipped steps, too
  }
  void to_canonical(int index, std::span<const std::byte> own, std::byte* canonical) const override;
  void from_canonical(int index, std::span<const std::byte> canonical,
                      std::byte* own) const override;

  std::size_t scratch_bytes() const override;
  std::vector<std::string> implementations() const override;

 private:
  struct Prepared {
    std::optional<PreparedConv> conv;
    std::optional<PreparedDense> dense;
    std::optional<PreparedTokenLoss> loss;
    std::optional<PreparedAttention> attention;
    Memory norm_vectors;
    Memory token_order, token_sort;  // of an embedding: TokenRow; see order_tokens()
    std::vector<NormState> norms;    // the operation's own, and its branch's or null pointers
    unsigned statistics_blocks = 0, gradient_blocks = 0;
    std::size_t forward_way = 0, way = 0;  // of ways.h; `way` of the gradient
    // Forward is done by the product before it; backward by the one behind it.
    bool forward_inside = false, backward_inside = false;
    std::string implementation;
    unsigned first_piece = 0, pieces = 0;  // pieces of its gradients
  };

  // Setting up.
  void prepare(const Operation& op, Prepared& prepared);
  void prepare_conv(const Operation& op, Prepared& prepared);
  void prepare_dense(const Operation& op, Prepared& prepared);
  // With the epilogue of `shape` if the library supports it; `has_epilogue` says whether.
  std::unique_ptr<MatmulPlan> matmul(MatmulShape shape, bool& has_epilogue);
  // The forward plan, and that of the data gradient.
  void prepare_epilogues(const Operation& op, PreparedConv& conv);
  std::unique_ptr<ConvPlan> conv_plan(ConvRequest request);
  std::unique_ptr<ConvPlan> conv_if_offered(const ConvRequest& request);  // or null
  // The bias's gradient with that of the weights, if that is measured to be faster.
  void prepare_bias_gradient(const Operation& op, PreparedConv& conv);
  // Of one that reads the sample: its input in 2 x 2 pixels, if that is measured to be faster.
  void prepare_folded(const Operation& op, PreparedConv& conv);
  void prepare_reordered(PreparedConv& conv);
  WeightLayout weight_layout(const Operation& op, const PreparedConv& conv) const;
  void prepare_norm(const Operation& op, Prepared& prepared);
  void prepare_attention(const Operation& op, Prepared& prepared);
  void prepare_token_loss(const Operation& op, Prepared& prepared);
  PreparedTokenLoss::Piece loss_piece(const Operation& op, std::size_t rows);
  void make_pieces();
  Memory own(std::size_t bytes);
  void need_workspace(std::size_t bytes, bool beside = false) {
    std::size_t& most = beside ? second_workspace_bytes_ : workspace_bytes_;
    most = std::max(most, bytes);
  }
  // Of so many rows, or of a plane.
  template <typename Row>
  void need_sums(std::size_t rows, int channels, unsigned blocks = Row::kBlocks);
  template <typename Row>
  void need_sums(const Shape& shape, unsigned blocks = Row::kBlocks) {
    const auto places =
        static_cast<std::size_t>(shape.height) * static_cast<std::size_t>(shape.width);
    need_sums<Row>(whole_batch() * places, shape.channels, blocks);
  }
  void prepare_layer_norm(const Operation& op, Prepared& prepared);
  Math dense_math() const { return options_.math == Math::fp32 ? Math::fp32 : Math::tf32; }
  bool narrow() const { return size_of(plan_.activation) == 2; }

  // On the compute lane, or another stream.
  template <typename Kernel>
  void run(const Kernel& kernel, std::size_t items, Stream stream = nullptr);
  template <typename Kernel>
  void run_vectors(const Kernel& kernel, std::size_t elements) {
    run(kernel, (elements + kVector - 1) / kVector);
  }
  template <typename Row>
  void run_sums(const Row& row, std::size_t rows, int channels, unsigned blocks = Row::kBlocks) {
    launch_sums(runtime_, row, make_tiling(runtime_, rows, channels, blocks), sum_memory(),
                compute_.stream());
  }
  SumMemory sum_memory() const {
    return {floats(partials_), reinterpret_cast<unsigned*>(counters_.data()), floats(block_sums_)};
  }

  // One operation.
  void run_forward(const Operation& op, Prepared& prepared);
  void run_backward(const Operation& op, Prepared& prepared);
  template <typename T>
  void planes_forward(const Operation& op, Prepared& prepared);
  template <typename T>
  void planes_backward(const Operation& op, Prepared& prepared);
  void cast_input(const Operation& op);
  void conv_forward(const Operation& op, Prepared& prepared);
  void conv_backward(const Operation& op, Prepared& prepared);
  // What `stream` is given from now on waits for what `other` was given so far.
  void follow(Stream stream, Stream other);
  void dense_forward(const Operation& op, Prepared& prepared);
  void dense_backward(const Operation& op, Prepared& prepared);
  template <typename T>
  void dropout_forward(const Operation& op);
  template <typename T>
  void dropout_backward(const Operation& op);
  template <typename T>
  void norm_forward(const Operation& op, Prepared& prepared);
  template <typename T>
  void norm_backward(const Operation& op, Prepared& prepared);
  template <typename T, bool kBranch>
  void norm_backward_by(const Operation& op, Prepared& prepared);
  template <typename T>
  void norm_pool_backward(const Operation& op, Prepared& prepared);
  template <typename T>
  void add_backward(const Operation& op);
  static bool is_of_tokens(OpKind kind);
  template <typename T>
  void tokens_forward(const Operation& op, Prepared& prepared);
  template <typename T>
  void tokens_backward(const Operation& op, Prepared& prepared);
  template <typename T>
  void token_gradient(const Operation& op, Prepared& prepared);
  void attend(const Operation& op, const PreparedAttention& attention, bool backward);
  template <typename T>
  void token_loss(const Operation& op, Prepared& prepared);
  TokenRows token_rows(std::size_t context) const;
  RowLosses row_losses(int rows) const;
  int counted_rows(std::size_t first, std::size_t rows, std::size_t context) const;
  const float* loss_scale() const;  // on the device; null without one
  void loss_forward(const Operation& op);
  void loss_backward(const Operation& op);
  void finish_gradients(int from, int to);
  template <typename Norm>
  NormParameters norm_parameters(const Norm& norm, int from) const;
  template <typename T>
  Dropout<T> make_dropout(const Operation& op, T* y) const;

  void prepare_state(Optimizer optimizer);
  void reserve_kept();
  void set_rule(const UpdateRule& rule);
  static void add_rule(Replays::Key& key, const UpdateRule& rule);
  void update_range(const UpdateRule& rule, std::size_t begin, std::size_t end);
  void mark_decay();
  void refresh_copies();
  void refresh_reordered(const Operation& op, Prepared& prepared);

  template <typename T = float>
  T* tensor(int index) const {
    return reinterpret_cast<T*>(activations_.data() + info(index).offset);
  }
  const TensorInfo& info(int tensor) const {
    return plan_.tensors[static_cast<std::size_t>(tensor)];
  }
  const Operation& operation(int index) const {
    return plan_.operations[static_cast<std::size_t>(index)];
  }
  int index(const Operation& op) const { return static_cast<int>(&op - plan_.operations.data()); }
  std::size_t offset(int parameter) const {
    return plan_.parameters[static_cast<std::size_t>(parameter)].offset;
  }
  float* parameter(int index) const { return floats(parameters_) + offset(index); }
  float* gradient(int index) const { return reinterpret_cast<float*>(gradients_) + offset(index); }
  float* statistic(int index) const {
    return floats(statistics_) + plan_.statistics[static_cast<std::size_t>(index)].offset;
  }
  static float* floats(const Memory& memory) { return reinterpret_cast<float*>(memory.data()); }
  void* conv_input(const Operation& op, const PreparedConv& conv) const;

  // Copies device memory from and to the host, with the lane drained. canonical: in a parameter's
  // canonical layout.
  std::vector<double> read(const float* data, std::size_t count) const;
  void write(float* data, std::span<const double> values);
  std::vector<double> read_canonical(const float* data, int parameter) const;
  void write_canonical(float* data, int parameter, std::span<const double> values);
  const Operation* conv_of_weight(int parameter) const;

  std::size_t whole_batch() const { return static_cast<std::size_t>(plan_.batch); }
  std::size_t count_labels() const {
    return whole_batch() * static_cast<std::size_t>(plan_.labels_per_sample);
  }
  std::size_t samples() const { return static_cast<std::size_t>(samples_); }

  const Plan& plan_;
  std::byte* gradients_;
  Runtime& runtime_;
  Products& products_;
  StreamLane& compute_;
  StreamLane second_;  // forks from the compute lane and comes back within an operation
  OwnedEvent forked_;
  CudaDeviceOptions options_;
  Staging staging_;

  const PreparedConv* reordered_ = nullptr;  // of those that read reordered_input_ in one shape
  std::size_t own_bytes_ = 0, workspace_bytes_ = 0, second_workspace_bytes_ = 0;
  std::size_t partial_floats_ = 0, tiles_ = 0, block_sum_floats_ = 0;
  Memory activations_, parameters_, statistics_, first_moments_, second_moments_;
  Memory narrow_parameters_, narrow_gradients_;  // with 16-bit planes
  Memory reordered_input_;                       // the sample as convolutions read it
  Memory workspace_, second_workspace_, partials_, counters_, block_sums_;
  Memory pieces_;  // GradientPiece
  Memory sums_, host_sums_, row_loss_, row_correct_;
  Memory loss_scale_;          // fp16
  Memory rule_;                // UpdateRule
  Memory decays_;              // one byte per kDecayGroup elements of the arena
  Memory square_sums_, clip_;  // double; ClipState
  Memory kept_gradients_;      // stored gradients of earlier batches
  std::vector<Prepared> prepared_;
  bool copies_stale_ = true, has_state_ = false;
  std::size_t update_way_ = 0;  // run_update()
  std::optional<UpdateRule> rule_set_;

  int samples_ = 0, global_samples_ = 0;
  DType image_type_ = DType::u8;
  Mode mode_ = Mode::train;
  double sample_count_ = 0;
  Replays replays_;  // last, so that its graphs are destroyed before the memory that they use
};

// The work of a product's epilogue by kernels of ours, behind the product without it.
ConvApart product_apart(Runtime& runtime, const ConvRequest& request,
                        std::shared_ptr<ConvPlan> product);

// What a product can do in its epilogue, or kNone. Nothing else reads what lies between.
int epilogue_behind(const Plan& plan, int product);  // the GELU or the addition right behind it
int gelu_before(const Plan& plan, int product);      // whose gradient it can compute

template <typename Kernel>
void CudaProgram::run(const Kernel& kernel, std::size_t items, Stream stream) {
  if (items == 0) return;
  launch_over(runtime_, kernel, items, stream ? stream : compute_.stream());
}

template <typename Row>
void CudaProgram::need_sums(std::size_t rows, int channels, unsigned blocks) {
  const auto t = make_tiling(runtime_, rows, channels, blocks);
  partial_floats_ =
      std::max(partial_floats_, Row::kSums * t.splits * static_cast<std::size_t>(channels));
  tiles_ = std::max<std::size_t>(tiles_, t.tiles());
}

}  // namespace paceline::cuda
