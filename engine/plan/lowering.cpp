#include <fmt/format.h>

#include <algorithm>

#include "engine/core/error.h"
#include "engine/plan/plan.h"

namespace paceline {

namespace {

[[noreturn]] void refuse(const Layer& layer, const Shape& in, const std::string& why) {
  throw usage_error(fmt::format("layer {} cannot take {}: {}", layer.name, in.text(), why), "",
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
    if (!network_.reads_tokens()) {
      operations_.push_back(
          {.kind = OpKind::cast_input, .name = "input", .in = sample, .out = sample});
    }
    for (const Layer& layer : network_.layers()) views_.push_back(lowered(layer));
    const View end = make_view(network_.last());
    if (network_.reads_tokens()) {
      push_token_loss(end);
      return std::move(operations_);
    }
    if (static_cast<int>(end.shape.elements()) != network_.classes()) {
      throw usage_error(fmt::format("network {} ends with {} values for {} classes",
                                    network_.name(), end.shape.elements(), network_.classes()),
                        "", "give the last layer one output per class");
    }
    push(OpKind::softmax_cross_entropy, "softmax_cross_entropy", end, end.shape).loss =
        network_.loss();
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

  void push_token_loss(const View& end) {
    const Operation& embedding = operations_.front();
    if (end.shape != embedding.out) {
      throw usage_error(fmt::format("network {} ends with {} where its embedding has {}",
                                    network_.name(), end.shape.text(), embedding.out.text()),
                        "", "give the last layer the embedding's width");
    }
    const LossConfig& loss = network_.loss();
    if (loss.label_smoothing != 0 || loss.double_softmax) {
      throw usage_error("the loss of tokens has neither label smoothing nor a second softmax",
                        network_.name(), "leave label_smoothing and double_softmax out");
    }
    Operation& op = push(OpKind::token_cross_entropy, "token_cross_entropy", end,
                         {end.shape.height, 1, network_.classes()});
    op.tied = 0;
  }

  View lowered(const Layer& layer) {
    if (layer.kind == LayerKind::embedding) return {push_embedding(layer), operations_.front().out};
    const View from = make_view(layer.from);
    if (layer.kind == LayerKind::flatten) {
      return {from.operation, {1, 1, static_cast<int>(from.shape.elements())}};
    }
    const Operation& op = parse_operation(layer, from);
    return {static_cast<int>(operations_.size()) - 1, op.out};
  }

  int push_embedding(const Layer& layer) {
    const Shape sample = network_.sample();
    if (!operations_.empty() || sample != token_sample(sample.height - 1)) {
      refuse(layer, sample, "an embedding is the first layer, of a sample of tokens");
    }
    operations_.push_back({.kind = OpKind::embedding,
                           .name = layer.name,
                           .in = sample,
                           .out = {sample.height - 1, 1, layer.units},
                           .deviation = layer.deviation});
    return 0;
  }

  Operation& parse_operation(const Layer& layer, const View& from) {
    const Shape in = from.shape;
    switch (layer.kind) {
      case LayerKind::dense: {
        const bool places = network_.reads_tokens();
        if ((in.height != 1 && !places) || in.width != 1) refuse(layer, in, "flatten it first");
        Operation& op = push(OpKind::dense, layer.name, from, {in.height, 1, layer.units});
        op.deviation = layer.deviation;
        return op;
      }
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
      case LayerKind::layer_norm: {
        Operation& op = push(OpKind::layer_norm, layer.name, from, in);
        op.epsilon = layer.epsilon;
        return op;
      }
      case LayerKind::gelu:
        return push(OpKind::gelu, layer.name, from, in);
      case LayerKind::attention: {
        if (layer.heads < 1 || in.channels % (3 * layer.heads) != 0) {
          refuse(layer, in,
                 fmt::format("{} heads need equal queries, keys and values", layer.heads));
        }
        Operation& op =
            push(OpKind::attention, layer.name, from, {in.height, in.width, in.channels / 3});
        op.heads = layer.heads;
        return op;
      }
      case LayerKind::embedding:
      case LayerKind::flatten:
        break;
    }
    throw internal_error("a layer without an operation", layer.name);
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

// An operation that stands for several: those at `members`, of which the last gives the output.
struct Candidate {
  Operation op;
  std::vector<int> members;
  int last() const { return members.back(); }
};

class Fuser {
 public:
  Fuser(const std::vector<Operation>& operations, const Supports& supports,
        std::vector<std::string>* notes)
      : operations_(operations),
        supports_(supports),
        notes_(notes),
        readers_(operations.size()),
        taken_(operations.size(), false) {
    for (std::size_t i = 0; i < operations.size(); ++i) {
      for (const int from : {operations[i].from, operations[i].from2}) {
        if (from != kNone) readers_[at(from)].push_back(static_cast<int>(i));
      }
    }
  }

  std::vector<Operation> run() {
    std::vector<Candidate> chosen(operations_.size());
    for (const bool last_pass : {false, true}) {
      for (int i = 0; i < static_cast<int>(operations_.size()); ++i) {
        if (taken_[at(i)] || (!last_pass && waits(i))) continue;
        const Candidate best = longest_supported(i);
        for (const int member : best.members) taken_[at(member)] = true;
        chosen[at(best.last())] = best;
      }
    }
    return in_order(chosen);
  }

 private:
  static std::size_t at(int index) { return static_cast<std::size_t>(index); }
  const Operation& op(int index) const { return operations_[at(index)]; }

  // A summand's batch_norm, which the later summand may take in.
  bool waits(int i) const {
    if (op(i).kind != OpKind::batch_norm || readers_[at(i)].size() != 1) return false;
    const Operation& reader = op(readers_[at(i)][0]);
    return reader.kind == OpKind::add && std::max(reader.from, reader.from2) != i;
  }

  std::vector<Candidate> followed(const Candidate& so_far) const {
    const auto& readers = readers_[at(so_far.last())];
    if (readers.size() != 1 || taken_[at(readers[0])]) return {};
    const int index = readers[0];
    const Operation& next = op(index);
    const Operation& first = so_far.op;
    Candidate both = so_far;
    both.members.push_back(index);
    both.op.out = next.out;
    const bool linear = first.kind == OpKind::dense || first.kind == OpKind::conv;
    const bool norm = first.kind == OpKind::batch_norm;
    if (next.kind == OpKind::relu && (linear || norm) && !first.relu && !first.pool) {
      both.op.relu = true;
    } else if (next.kind == OpKind::max_pool && first.kind == OpKind::conv && first.relu &&
               !first.pool && next.stride == next.kernel && next.padding == 0) {
      both.op.pool = next.kernel;
    } else if (next.kind == OpKind::max_pool && norm && first.relu && !first.add && !first.pool) {
      both.op.pool = next.kernel;
      both.op.kernel = next.kernel;
      both.op.stride = next.stride;
      both.op.padding = next.padding;
    } else if (next.kind == OpKind::dropout && first.kind == OpKind::dense && first.relu &&
               !first.dropout && first.out.height == 1) {
      both.op.dropout = true;
      both.op.rate = next.rate;
      both.op.layer = next.layer;
    } else if (next.kind == OpKind::add && norm && !first.relu && !first.add) {
      return with_add(both, next, so_far.last());
    } else {
      return {};
    }
    return {both};
  }

  // The summand that is computed later takes the other in.
  std::vector<Candidate> with_add(Candidate both, const Operation& add, int mine) const {
    const int other = add.from == mine ? add.from2 : add.from;
    if (other >= mine) return {};
    both.op.add = true;
    both.op.from2 = other;
    const Operation& norm = op(other);
    if (norm.kind != OpKind::batch_norm || readers_[at(other)].size() != 1) return {both};
    Candidate with_branch = both;
    with_branch.members.insert(with_branch.members.begin(), other);
    with_branch.op.from2 = norm.from;
    with_branch.op.branch = {.name = norm.name, .epsilon = norm.epsilon, .momentum = norm.momentum};
    return {with_branch, both};
  }

  void add_longest_first(const Candidate& candidate, std::vector<Candidate>& all) const {
    for (const Candidate& longer : followed(candidate)) add_longest_first(longer, all);
    all.push_back(candidate);
  }

  Candidate longest_supported(int i) {
    std::vector<Candidate> all;
    add_longest_first({op(i), {i}}, all);
    for (const Candidate& candidate : all) {
      const Support support = supports_(candidate.op);
      if (support) return candidate;
      if (candidate.members.size() == 1) {
        throw usage_error(
            fmt::format("{} cannot run here: {}", candidate.op.text(), support.because()), "",
            "choose another device or precision");
      }
      if (notes_) {
        notes_->push_back(fmt::format("{} not fused: {}", candidate.op.text(), support.because()));
      }
    }
    throw internal_error("an operation without a candidate", op(i).name);
  }

  std::vector<Operation> in_order(const std::vector<Candidate>& chosen) const {
    std::vector<Operation> result;
    std::vector<int> moved(operations_.size(), kNone);
    for (const Candidate& candidate : chosen) {
      if (candidate.members.empty()) continue;
      for (const int member : candidate.members)
        moved[at(member)] = static_cast<int>(result.size());
      result.push_back(candidate.op);
    }
    for (Operation& op : result) {
      if (op.from != kNone) op.from = moved[at(op.from)];
      if (op.from2 != kNone) op.from2 = moved[at(op.from2)];
      if (op.tied != kNone) op.tied = moved[at(op.tied)];
    }
    return result;
  }

  const std::vector<Operation>& operations_;
  const Supports& supports_;
  std::vector<std::string>* notes_;
  std::vector<std::vector<int>> readers_;
  std::vector<bool> taken_;
};

}  // namespace

std::vector<Operation> lower(const Network& network) {
  return Lowering(network).run();
}

std::vector<Operation> fuse(const std::vector<Operation>& operations, const Supports& supports,
                            std::vector<std::string>* notes) {
  return Fuser(operations, supports, notes).run();
}

}  // namespace paceline
