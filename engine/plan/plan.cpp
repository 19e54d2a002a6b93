#include "engine/plan/plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/core/error.h"
#include "engine/plan/memory_plan.h"

namespace paceline {

const char* name_of(OpKind kind) {
  switch (kind) {
    case OpKind::cast_input:
      return "cast_input";
    case OpKind::dense:
      return "dense";
    case OpKind::conv:
      return "conv";
    case OpKind::relu:
      return "relu";
    case OpKind::max_pool:
      return "max_pool";
    case OpKind::dropout:
      return "dropout";
    case OpKind::softmax_cross_entropy:
      return "softmax_cross_entropy";
  }
  return "?";
}

std::string Operation::text() const {
  return name + (relu ? " + relu" : "") + (pool ? " + max_pool" : "") +
         (dropout ? " + dropout" : "");
}

double forward_flops(const Operation& op) {
  if (op.kind == OpKind::dense) {
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

std::string Plan::text() const {
  std::string text = fmt::format("{}: {} operations, {} parameters, {:.2f} MFLOP a sample", network,
                                 operations.size(), parameter_count, flops_per_sample / 1e6);
  for (const Operation& op : operations) {
    text += fmt::format("\n  {:<28} {:>14} -> {}", op.text(), op.in.text(), op.out.text());
  }
  return text;
}

namespace {

[[noreturn]] void refuse(const Layer& layer, const Shape& in, const std::string& why) {
  throw Error(ErrorKind::usage,
              fmt::format("layer {} cannot take {}: {}", layer.name, in.text(), why));
}

// One operation a layer, with shapes; flatten only changes the view.
class Lowering {
 public:
  explicit Lowering(const Network& network) : network_(network), shape_(network.sample()) {}

  std::vector<Operation> run() {
    push(OpKind::cast_input, "input", shape_);
    for (const Layer& layer : network_.layers()) lower(layer);
    if (static_cast<int>(shape_.elements()) != network_.classes()) {
      throw Error(ErrorKind::usage,
                  fmt::format("network {} ends with {} values for {} classes", network_.name(),
                              shape_.elements(), network_.classes()));
    }
    push(OpKind::softmax_cross_entropy, "softmax_cross_entropy", shape_);
    return std::move(operations_);
  }

 private:
  Operation& push(OpKind kind, const std::string& name, Shape out) {
    Operation op{.kind = kind, .name = name, .in = shape_, .out = out};
    operations_.push_back(op);
    shape_ = out;
    return operations_.back();
  }

  void lower(const Layer& layer) {
    switch (layer.kind) {
      case LayerKind::flatten:
        shape_ = {1, 1, static_cast<int>(shape_.elements())};
        return;
      case LayerKind::dense:
        if (shape_.height != 1 || shape_.width != 1) refuse(layer, shape_, "flatten it first");
        push(OpKind::dense, layer.name, {1, 1, layer.units});
        return;
      case LayerKind::conv:
        return lower_conv(layer);
      case LayerKind::relu:
        push(OpKind::relu, layer.name, shape_);
        return;
      case LayerKind::max_pool:
        return lower_pool(layer);
      case LayerKind::dropout: {
        Operation& op = push(OpKind::dropout, layer.name, shape_);
        op.rate = layer.rate;
        op.layer = dropouts_++;
        return;
      }
    }
  }

  void lower_conv(const Layer& layer) {
    const int rows = shape_.height + 2 * layer.padding - layer.kernel;
    const int columns = shape_.width + 2 * layer.padding - layer.kernel;
    if (rows < 0 || columns < 0) refuse(layer, shape_, "it is smaller than the window");
    const int height = rows / layer.stride + 1, width = columns / layer.stride + 1;
    Operation& op = push(OpKind::conv, layer.name, {height, width, layer.units});
    op.kernel = layer.kernel;
    op.stride = layer.stride;
    op.padding = layer.padding;
  }

  // An incomplete window at the right or bottom is left out, as in Keras ("valid").
  void lower_pool(const Layer& layer) {
    const Shape out{shape_.height / layer.kernel, shape_.width / layer.kernel, shape_.channels};
    if (out.height < 1 || out.width < 1) refuse(layer, shape_, "it is smaller than the window");
    Operation& op = push(OpKind::max_pool, layer.name, out);
    op.kernel = layer.kernel;
    op.stride = layer.kernel;
  }

  const Network& network_;
  Shape shape_;
  std::uint32_t dropouts_ = 0;
  std::vector<Operation> operations_;
};

// The operation that does `op` and `next` in one, where there is such a one.
std::optional<Operation> fused(const Operation& op, const Operation& next) {
  Operation both = op;
  const bool linear = op.kind == OpKind::dense || op.kind == OpKind::conv;
  if (linear && next.kind == OpKind::relu && !op.relu && !op.pool) {
    both.relu = true;
  } else if (op.kind == OpKind::conv && next.kind == OpKind::max_pool && op.relu && !op.pool) {
    both.pool = next.kernel;
  } else if (op.kind == OpKind::dense && next.kind == OpKind::dropout && op.relu && !op.dropout) {
    both.dropout = true;
    both.rate = next.rate;
    both.layer = next.layer;
  } else {
    return std::nullopt;
  }
  both.out = next.out;
  return both;
}

// Tries the longest fusion first: conv + relu + max_pool may be supported where conv + relu is not.
std::vector<Operation> fuse(const std::vector<Operation>& operations, const Supports& supports,
                            std::vector<std::string>* notes) {
  std::vector<Operation> result;
  for (std::size_t i = 0; i < operations.size();) {
    std::vector<Operation> candidates{operations[i]};
    for (std::size_t j = i + 1; j < operations.size(); ++j) {
      const auto both = fused(candidates.back(), operations[j]);
      if (!both) break;
      candidates.push_back(*both);
    }
    std::size_t taken = candidates.size();
    for (; taken > 1; --taken) {
      const Support support = supports(candidates[taken - 1]);
      if (support) break;
      if (notes) {
        notes->push_back(
            fmt::format("{} not fused: {}", candidates[taken - 1].text(), support.because()));
      }
    }
    if (taken == 1) {
      if (const Support support = supports(candidates[0]); !support) {
        throw Error(ErrorKind::usage,
                    fmt::format("{} cannot run here: {}", candidates[0].text(), support.because()),
                    "", "choose another device");
      }
    }
    result.push_back(candidates[taken - 1]);
    i += taken;
  }
  return result;
}

class Planner {
 public:
  Planner(Plan& plan) : plan_(plan), count_(static_cast<int>(plan.operations.size())) {}

  void run() {
    for (int i = 0; i < count_; ++i) add_tensors(i);
    for (int i = count_ - 1; i >= 0; --i) add_parameters(i);
    for (const ParameterInfo& parameter : plan_.parameters) {
      plan_.parameter_count += parameter.elements;
    }
    plan_.activation_bytes = place_tensors(plan_.tensors);
    for (const Operation& op : plan_.operations) {
      plan_.flops_per_sample += forward_flops(op) + backward_flops(op);
    }
  }

 private:
  int backward_time(int operation) const { return 2 * count_ - 1 - operation; }

  int add(const std::string& name, const Shape& shape, DType type, int first, int last) {
    const std::size_t bytes =
        shape.elements() * size_of(type) * static_cast<std::size_t>(plan_.batch);
    plan_.tensors.push_back({name, shape, type, first, last, bytes, 0});
    return static_cast<int>(plan_.tensors.size()) - 1;
  }

  void live_until(int tensor, int time) {
    TensorInfo& info = plan_.tensors[static_cast<std::size_t>(tensor)];
    info.last = std::max(info.last, time);
  }

  void add_tensors(int i) {
    Operation& op = plan_.operations[static_cast<std::size_t>(i)];
    op.keeps_input = op.kind == OpKind::dense || op.kind == OpKind::conv;
    op.keeps_output = op.kind == OpKind::relu || op.kind == OpKind::softmax_cross_entropy ||
                      (op.relu && op.pool == 0);
    if (i > 0) {
      const Operation& before = plan_.operations[static_cast<std::size_t>(i) - 1];
      op.input = before.output;
      live_until(op.input, op.keeps_input ? backward_time(i) : i);
      if (needs_gradient_ || has_parameters(before)) {
        needs_gradient_ = true;
        op.input_grad =
            add(before.name + ".grad", op.in, plan_.real, backward_time(i), backward_time(i - 1));
        plan_.operations[static_cast<std::size_t>(i) - 1].output_grad = op.input_grad;
      }
    }
    op.output = add(op.name, op.out, plan_.real, i, op.keeps_output ? backward_time(i) : i);
    if (op.kind == OpKind::max_pool || op.kind == OpKind::dropout || op.pool > 0) {
      op.saved = add(op.name + ".saved", op.out, DType::u8, i, backward_time(i));
    }
  }

  static bool has_parameters(const Operation& op) {
    return op.kind == OpKind::dense || op.kind == OpKind::conv;
  }

  int add_parameter(const std::string& name, std::vector<int> shape, int fan_in, int fan_out) {
    constexpr std::size_t kAlign = 16;  // elements: every parameter begins on a cache line
    ParameterInfo info{name, std::move(shape), plan_.arena_elements, 1, fan_in, fan_out};
    for (const int extent : info.shape) info.elements *= static_cast<std::size_t>(extent);
    plan_.arena_elements += (info.elements + kAlign - 1) / kAlign * kAlign;
    plan_.parameters.push_back(std::move(info));
    return static_cast<int>(plan_.parameters.size()) - 1;
  }

  void add_parameters(int i) {
    Operation& op = plan_.operations[static_cast<std::size_t>(i)];
    if (!has_parameters(op)) return;
    const int in = op.kind == OpKind::dense ? static_cast<int>(op.in.elements()) : op.in.channels;
    const int out = op.out.channels;
    const int window = op.kind == OpKind::dense ? 1 : op.kernel * op.kernel;
    std::vector<int> shape{in, out};
    if (op.kind == OpKind::conv) shape = {op.kernel, op.kernel, in, out};
    op.bias = add_parameter(op.name + "/bias", {out}, 0, 0);
    op.weight = add_parameter(op.name + "/kernel", shape, in * window, out * window);
    plan_.ready.push_back({i, plan_.arena_elements});
  }

  Plan& plan_;
  int count_;
  bool needs_gradient_ = false;
};

}  // namespace

Plan make_plan(const Network& network, int batch, DType real, const Supports& supports,
               std::vector<std::string>* notes) {
  Plan plan;
  plan.network = network.name();
  plan.sample = network.sample();
  plan.classes = network.classes();
  plan.batch = batch;
  plan.real = real;
  plan.operations = fuse(Lowering(network).run(), supports, notes);
  Planner(plan).run();
  return plan;
}

}  // namespace paceline
