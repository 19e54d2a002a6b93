#include "engine/plan/lowering.h"

#include <fmt/format.h>

#include "engine/core/error.h"

namespace paceline {

namespace {

[[noreturn]] void refuse(const Layer& layer, const Shape& in, const std::string& why) {
  throw Error(ErrorKind::usage,
              fmt::format("layer {} cannot take {}: {}", layer.name, in.text(), why), "",
              "change the layer, or what comes before it");
}

// Outputs of a window that moves over `extent` places with `padding` on both sides.
int window_places(const Layer& layer, const Shape& in, int extent) {
  const int room = extent + 2 * layer.padding - layer.kernel;
  if (room < 0) refuse(layer, in, "it is smaller than the window");
  return room / layer.stride + 1;
}

class Lowering {
 public:
  explicit Lowering(const Network& network) : network_(network) {}

  std::vector<Operation> run() {
    const Shape sample = network_.sample();
    operations_.push_back(
        {.kind = OpKind::cast_input, .name = "input", .in = sample, .out = sample});
    for (const Layer& layer : network_.layers()) views_.push_back(lowered(layer));
    const View end = make_view(network_.last());
    if (static_cast<int>(end.shape.elements()) != network_.classes()) {
      throw Error(ErrorKind::usage,
                  fmt::format("network {} ends with {} values for {} classes", network_.name(),
                              end.shape.elements(), network_.classes()),
                  "", "give the last layer one output per class");
    }
    Operation& loss = push(OpKind::softmax_cross_entropy, "softmax_cross_entropy", end, end.shape);
    loss.smoothing = network_.label_smoothing();
    loss.softmax_twice = network_.has_softmax_twice();
    return std::move(operations_);
  }

 private:
  // What a layer gives: an operation's output, seen in this shape.
  struct View {
    int operation = 0;
    Shape shape;
  };

  View make_view(int layer) const {
    return layer == kInput ? View{0, network_.sample()} : views_[static_cast<std::size_t>(layer)];
  }

  Operation& push(OpKind kind, const std::string& name, const View& from, Shape out) {
    operations_.push_back(
        {.kind = kind, .name = name, .in = from.shape, .out = out, .from = from.operation});
    return operations_.back();
  }

  View lowered(const Layer& layer) {
    const View from = make_view(layer.from);
    if (layer.kind == LayerKind::flatten) {
      return {from.operation, {1, 1, static_cast<int>(from.shape.elements())}};
    }
    const Operation& op = parse_operation(layer, from);
    return {static_cast<int>(operations_.size()) - 1, op.out};
  }

  Operation& parse_operation(const Layer& layer, const View& from) {
    const Shape in = from.shape;
    switch (layer.kind) {
      case LayerKind::dense:
        if (in.height != 1 || in.width != 1) refuse(layer, in, "flatten it first");
        return push(OpKind::dense, layer.name, from, {1, 1, layer.units});
      case LayerKind::conv:
        return windowed(OpKind::conv, layer, from, layer.units);
      case LayerKind::max_pool:
        return windowed(OpKind::max_pool, layer, from, in.channels);
      case LayerKind::batch_norm: {
        Operation& op = push(OpKind::batch_norm, layer.name, from, in);
        op.epsilon = layer.epsilon;
        op.momentum = layer.momentum;
        return op;
      }
      case LayerKind::relu:
        return push(OpKind::relu, layer.name, from, in);
      case LayerKind::global_average_pool:
        return push(OpKind::average_pool, layer.name, from, {1, 1, in.channels});
      case LayerKind::add: {
        const View other = make_view(layer.from2);
        if (other.shape != in) refuse(layer, in, "the other summand is " + other.shape.text());
        Operation& op = push(OpKind::add, layer.name, from, in);
        op.from2 = other.operation;
        return op;
      }
      case LayerKind::dropout: {
        Operation& op = push(OpKind::dropout, layer.name, from, in);
        op.rate = layer.rate;
        op.layer = dropouts_++;
        return op;
      }
      case LayerKind::flatten:
        break;
    }
    throw Error(ErrorKind::internal, "a layer without an operation", layer.name);
  }

  // An incomplete window at the right or bottom is left out, as in Keras ("valid").
  Operation& windowed(OpKind kind, const Layer& layer, const View& from, int channels) {
    const Shape in = from.shape;
    const int height = window_places(layer, in, in.height);
    const int width = window_places(layer, in, in.width);
    if (kind == OpKind::max_pool && layer.padding >= layer.kernel) {
      refuse(layer, in, "its padding is as wide as its window");
    }
    Operation& op = push(kind, layer.name, from, {height, width, channels});
    op.kernel = layer.kernel;
    op.stride = layer.stride;
    op.padding = layer.padding;
    return op;
  }

  const Network& network_;
  std::vector<View> views_;
  std::uint32_t dropouts_ = 0;
  std::vector<Operation> operations_;
};

}  // namespace

std::vector<Operation> lower(const Network& network) {
  return Lowering(network).run();
}

}  // namespace paceline
