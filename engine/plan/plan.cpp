#include "engine/plan/plan.h"

#include <algorithm>
#include <numeric>

#include "engine/core/text.h"

namespace paceline {

constexpr EnumName<OpKind> kOpKindNames[] = {
    {OpKind::cast_input, "cast_input"},
    {OpKind::embedding, "embedding"},
    {OpKind::dense, "dense"},
    {OpKind::conv, "conv"},
    {OpKind::batch_norm, "batch_norm"},
    {OpKind::relu, "relu"},
    {OpKind::max_pool, "max_pool"},
    {OpKind::average_pool, "average_pool"},
    {OpKind::add, "add"},
    {OpKind::dropout, "dropout"},
    {OpKind::layer_norm, "layer_norm"},
    {OpKind::gelu, "gelu"},
    {OpKind::attention, "attention"},
    {OpKind::softmax_cross_entropy, "softmax_cross_entropy"},
    {OpKind::token_cross_entropy, "token_cross_entropy"}};

const char* to_string(OpKind kind) {
  return name_in(kOpKindNames, kind);
}

std::string Operation::text() const {
  return name + (branch ? " + " + branch->name : "") + (add ? " + add" : "") +
         (relu ? " + relu" : "") + (pool ? " + max_pool" : "") + (dropout ? " + dropout" : "");
}

std::size_t piece_rows(std::size_t rows, std::size_t most) {
  std::size_t part = std::min(rows, most);
  while (rows % part != 0) --part;
  return part;
}

double forward_flops(const Operation& op) {
  if (op.kind == OpKind::attention) {
    const double places = op.in.height;
    return 4 * places * places * op.out.channels;
  }
  if (op.kind == OpKind::dense || op.kind == OpKind::token_cross_entropy) {
    return 2.0 * static_cast<double>(op.in.elements()) * static_cast<double>(op.out.channels);
  }
  if (op.kind != OpKind::conv) return 0;
  const int height = (op.in.height + 2 * op.padding - op.kernel) / op.stride + 1;
  const int width = (op.in.width + 2 * op.padding - op.kernel) / op.stride + 1;
  return 2.0 * op.kernel * op.kernel * op.in.channels * op.out.channels * height * width;
}

double backward_flops(const Operation& op) {
  return forward_flops(op) * (op.input_grad == kNone ? 1 : 2);
}

namespace {

bool has_parameters(const Operation& op) {
  return op.kind == OpKind::embedding || op.kind == OpKind::dense || op.kind == OpKind::conv ||
         op.kind == OpKind::batch_norm || op.kind == OpKind::layer_norm;
}

// Adds tensors with their lifetimes, parameters and statistics to a plan's fused operations.
class Planner {
 public:
  explicit Planner(Plan& plan) : plan_(plan), count_(static_cast<int>(plan.operations.size())) {}

  void run() {
    for (int i = 0; i < count_; ++i) add_forward_tensors(i);
    find_cancelled_biases();
    for (int i = count_ - 1; i >= 0; --i) {
      add_gradient_tensors(i);
      add_parameters(i);
    }
    for (Operation& op : plan_.operations) {
      if (op.tied != kNone) op.weight = operation(op.tied).weight;
    }
    for (const ParameterInfo& parameter : plan_.parameters) {
      plan_.parameter_count += parameter.elements;
    }
    plan_.activation_bytes = place_tensors(plan_.tensors);
    for (const Operation& op : plan_.operations) {
      plan_.flops_per_sample += forward_flops(op) + backward_flops(op);
    }
  }

 private:
  Operation& operation(int index) { return plan_.operations[static_cast<std::size_t>(index)]; }
  TensorInfo& tensor(int index) { return plan_.tensors[static_cast<std::size_t>(index)]; }
  int backward_time(int operation) const { return 2 * count_ - 1 - operation; }

  // Planes keep the type in which the sample's cast or a convolution wrote them; all places of a
  // network of tokens are planes.
  DType output_type(const Operation& op) {
    const bool vector = op.kind == OpKind::dense && op.in.height == 1;
    if (vector || op.kind == OpKind::average_pool || op.kind == OpKind::softmax_cross_entropy) {
      return plan_.real;
    }
    if (op.kind == OpKind::dense) return plan_.activation;
    const bool starts = op.input == kNone || op.kind == OpKind::conv;
    return starts ? plan_.activation : tensor(op.input).type;
  }

  int add_tensor(const std::string& name, const Shape& shape, DType type, int first, int last) {
    const std::size_t bytes =
        shape.elements() * size_of(type) * static_cast<std::size_t>(plan_.batch);
    plan_.tensors.push_back({name, shape, type, first, last, bytes, 0});
    return static_cast<int>(plan_.tensors.size()) - 1;
  }

  void extend_life(int index, int time) { tensor(index).last = std::max(tensor(index).last, time); }

  void add_forward_tensors(int i) {
    Operation& op = operation(i);
    op.keeps_input = op.kind == OpKind::gelu || op.kind == OpKind::attention || has_parameters(op);
    op.keeps_output =
        op.kind == OpKind::softmax_cross_entropy || op.kind == OpKind::attention ||
        (op.kind != OpKind::batch_norm && (op.kind == OpKind::relu || op.relu) && op.pool == 0);
    needs_gradient_.push_back(has_parameters(op));
    if (op.from != kNone) {
      op.input = operation(op.from).output;
      extend_life(op.input, op.keeps_input ? backward_time(i) : i);
      if (needs_gradient_[static_cast<std::size_t>(op.from)]) needs_gradient_.back() = true;
    }
    if (op.from2 != kNone) {
      op.input2 = operation(op.from2).output;
      extend_life(op.input2, op.branch ? backward_time(i) : i);
      if (needs_gradient_[static_cast<std::size_t>(op.from2)]) needs_gradient_.back() = true;
    }
    const Shape& written = op.kind == OpKind::token_cross_entropy ? op.in : op.out;
    op.output =
        add_tensor(op.name, written, output_type(op), i, op.keeps_output ? backward_time(i) : i);
    if (op.kind == OpKind::max_pool || op.kind == OpKind::dropout || op.pool > 0) {
      op.saved = add_tensor(op.name + ".saved", op.out, DType::u8, i, backward_time(i));
    } else if (op.kind == OpKind::batch_norm && op.relu) {
      const Shape bits{op.out.height, op.out.width, (op.out.channels + 7) / 8};
      op.saved = add_tensor(op.name + ".signs", bits, DType::u8, i, backward_time(i));
    } else if (op.kind == OpKind::layer_norm || op.kind == OpKind::attention) {
      const Shape sums{op.in.height, op.in.width, op.kind == OpKind::attention ? op.heads : 2};
      op.saved = add_tensor(op.name + ".sums", sums, plan_.real, i, backward_time(i));
    }
  }

  // Marks biases whose only reader is a batch_norm, which subtracts the mean of each channel.
  void find_cancelled_biases() {
    std::vector<int> readers(plan_.operations.size(), 0);
    for (const Operation& op : plan_.operations) {
      for (const int from : {op.from, op.from2}) {
        if (from != kNone) ++readers[static_cast<std::size_t>(from)];
      }
    }
    const auto mark = [&](int from) {
      Operation& source = operation(from);
      const bool linear = source.kind == OpKind::conv || source.kind == OpKind::dense;
      const bool only = readers[static_cast<std::size_t>(from)] == 1;
      source.bias_cancels = linear && only && !source.fused();
    };
    for (const Operation& op : plan_.operations) {
      if (op.kind != OpKind::batch_norm) continue;
      mark(op.from);
      if (op.branch) mark(op.from2);
    }
  }

  // Backward runs from the last operation to the first: of several readers of an output the last
  // one writes its gradient, the others add to it.
  void add_gradient_tensors(int i) {
    Operation& op = operation(i);
    if (op.kind == OpKind::token_cross_entropy) {
      op.input_grad = operation(op.from).output_grad = op.output;
      return extend_life(op.output, backward_time(op.from));
    }
    const bool has_gradient = op.kind == OpKind::softmax_cross_entropy || op.output_grad != kNone;
    if (!has_gradient) return;
    if (op.from2 != kNone && needs_gradient_[static_cast<std::size_t>(op.from2)]) {
      const bool adds = op.kind == OpKind::add || (op.add && !op.branch);
      op.input2_grad = add_gradient(i, op.from2, adds && operation(op.from2).output_grad == kNone,
                                    op.adds_input2_grad);
    }
    if (op.from != kNone && needs_gradient_[static_cast<std::size_t>(op.from)]) {
      const bool shares = op.kind == OpKind::add
                              ? is_final_gradient(i)
                              : op.kind == OpKind::gelu && operation(op.from).output_grad == kNone;
      op.input_grad = add_gradient(i, op.from, shares, op.adds_input_grad);
    }
  }

  // The gradient of what operation i reads. If it `shares`, it is that of the operation's output.
  int add_gradient(int i, int source, bool shares, bool& adds) {
    int& written = operation(source).output_grad;
    adds = written != kNone;
    if (!shares) return find_gradient(source, i);
    written = operation(i).output_grad;
    extend_life(written, backward_time(source));
    return written;
  }

  // Whether the first summand may share the gradient of an addition's sum, as nothing changes it
  // before what made that summand has read it:
  // - only the addition reads the summand;
  // - what made it does not change its own gradient in place, and passes it on to no other;
  // - the second summand and its other readers, which add to the gradient, come before it.
  bool is_final_gradient(int addition) {
    const Operation& op = operation(addition);
    const Operation& source = operation(op.from);
    if (source.fused() || source.kind == OpKind::gelu || source.kind == OpKind::add) return false;
    if (op.from2 >= op.from) return false;
    for (int i = 0; i < count_; ++i) {
      if (i == addition) continue;
      const Operation& reader = operation(i);
      if (reader.from == op.from || reader.from2 == op.from) return false;
      if (i >= op.from && (reader.from == op.from2 || reader.from2 == op.from2)) return false;
    }
    return true;
  }

  int find_gradient(int source, int reader) {
    Operation& op = operation(source);
    if (op.output_grad == kNone) {
      const TensorInfo& output = tensor(op.output);
      op.output_grad = add_tensor(op.name + ".grad", output.shape, output.type,
                                  backward_time(reader), backward_time(source));
    }
    return op.output_grad;
  }

  // Every array begins at a multiple of kAlignment bytes, also in copies of 16 bits an element.
  static int add_array(std::vector<ParameterInfo>& arrays, std::size_t& arena, ParameterInfo info) {
    constexpr std::size_t kAlign = 128;  // elements
    info.offset = arena;
    info.elements = 1;
    for (const int extent : info.shape) info.elements *= static_cast<std::size_t>(extent);
    arena += (info.elements + kAlign - 1) / kAlign * kAlign;
    arrays.push_back(std::move(info));
    return static_cast<int>(arrays.size()) - 1;
  }

  int add_parameter(ParameterInfo info) {
    return add_array(plan_.parameters, plan_.arena_elements, std::move(info));
  }
  int add_statistic(ParameterInfo info) {
    return add_array(plan_.statistics, plan_.statistics_elements, std::move(info));
  }

  template <typename Norm>
  void add_scale_and_offset(Norm& norm, int channels) {
    norm.bias = add_parameter({.name = norm.name + "/beta", .shape = {channels}});
    norm.weight = add_parameter({.name = norm.name + "/gamma", .shape = {channels}, .initial = 1});
  }

  template <typename Norm>
  void add_norm_parameters(Norm& norm, int channels) {
    add_scale_and_offset(norm, channels);
    norm.mean = add_statistic({.name = norm.name + "/moving_mean", .shape = {channels}});
    norm.variance =
        add_statistic({.name = norm.name + "/moving_variance", .shape = {channels}, .initial = 1});
  }

  void add_linear_parameters(Operation& op) {
    const bool dense = op.kind == OpKind::dense;
    const int in = op.in.channels;
    const int out = op.out.channels, window = dense ? 1 : op.kernel * op.kernel;
    const std::vector<int> shape =
        dense ? std::vector<int>{in, out} : std::vector<int>{op.kernel, op.kernel, in, out};
    op.bias = add_parameter({.name = op.name + "/bias", .shape = {out}});
    op.weight = add_parameter({.name = op.name + "/kernel",
                               .shape = shape,
                               .fan_in = in * window,
                               .fan_out = out * window,
                               .deviation = op.deviation});
  }

  void add_tables(Operation& op) {
    const int width = op.out.channels;
    op.bias = add_parameter({.name = op.name + "/positions",
                             .shape = {op.out.height, width},
                             .deviation = op.deviation});
    op.weight = add_parameter(
        {.name = op.name + "/tokens", .shape = {plan_.classes, width}, .deviation = op.deviation});
  }

  void add_parameters(int i) {
    Operation& op = operation(i);
    if (!has_parameters(op)) return;
    if (op.kind == OpKind::batch_norm) {
      add_norm_parameters(op, op.out.channels);
      if (op.branch) add_norm_parameters(*op.branch, op.out.channels);
    } else if (op.kind == OpKind::embedding) {
      add_tables(op);
    } else if (op.kind == OpKind::layer_norm) {
      add_scale_and_offset(op, op.out.channels);
    } else {
      add_linear_parameters(op);
    }
    plan_.ready.push_back({i, plan_.arena_elements});
  }

  Plan& plan_;
  int count_;
  std::vector<bool> needs_gradient_;
};

// Bytes. Suits a GPU's memory transactions; its matrix products are timed with it.
constexpr std::size_t kAlignment = 256;

// The lowest offset at which `tensor` overlaps none of `placed` while both live.
std::size_t lowest_gap(const TensorInfo& tensor, std::vector<const TensorInfo*> placed) {
  std::erase_if(placed, [&](const TensorInfo* other) {
    return tensor.first > other->last || other->first > tensor.last;
  });
  std::ranges::sort(placed,
                    [](const TensorInfo* a, const TensorInfo* b) { return a->offset < b->offset; });
  std::size_t offset = 0;
  for (const TensorInfo* other : placed) {
    if (offset + tensor.bytes <= other->offset) break;
    offset = std::max(offset, other->offset + other->bytes);
  }
  return offset;
}

}  // namespace

Plan make_plan(const Network& network, int batch, Precision precision, const Supports& supports,
               std::vector<std::string>* notes) {
  Plan plan;
  plan.network = network.name();
  plan.sample = network.sample();
  plan.classes = network.classes();
  if (network.reads_tokens()) plan.labels_per_sample = network.sample().height - 1;
  plan.batch = batch;
  plan.real = precision.real;
  plan.activation = precision.activation;
  plan.operations = fuse(lower(network), supports, notes);
  Planner(plan).run();
  return plan;
}

std::size_t place_tensors(std::vector<TensorInfo>& tensors) {
  std::vector<std::size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(
      order, [&](std::size_t a, std::size_t b) { return tensors[a].bytes > tensors[b].bytes; });
  std::vector<const TensorInfo*> placed;
  std::size_t size = 0;
  for (const std::size_t index : order) {
    TensorInfo& tensor = tensors[index];
    tensor.bytes = (tensor.bytes + kAlignment - 1) / kAlignment * kAlignment;
    tensor.offset = lowest_gap(tensor, placed);
    placed.push_back(&tensor);
    size = std::max(size, tensor.offset + tensor.bytes);
  }
  return size;
}

}  // namespace paceline
