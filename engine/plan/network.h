// A network as its workload describes it, once: layers in order, before any choice of device,
// batch or fusion.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace paceline {

// Height, width, channels of one sample; a vector of n elements is {1, 1, n}.
struct Shape {
  int height = 1, width = 1, channels = 1;
  std::size_t elements() const {
    return static_cast<std::size_t>(height) * static_cast<std::size_t>(width) *
           static_cast<std::size_t>(channels);
  }
  std::string text() const;  // "26 x 26 x 32", "512"
  friend bool operator==(const Shape&, const Shape&) = default;
};

enum class LayerKind {
  dense,
  conv,
  batch_norm,
  relu,
  max_pool,
  global_average_pool,
  add,
  flatten,
  dropout
};

constexpr int kInput = -1;  // in place of a layer: the sample itself

struct Layer {
  LayerKind kind;
  std::string name;
  int from = kInput;    // the layer that it reads
  int from2 = kInput;   // add: the other one
  int units = 0;        // dense: outputs; conv: filters
  int kernel = 0;       // conv, max_pool: side of the square window
  int stride = 1;       // conv, max_pool
  int padding = 0;      // conv: zeros on each side; max_pool: places that never win
  double rate = 0;      // dropout: share of elements set to zero in training
  double epsilon = 0;   // batch_norm: added to the variance
  double momentum = 0;  // batch_norm: what a running average keeps of itself in a step
};

// Layers form a chain; last() and from() open branches, add() joins them. The loss is always
// softmax cross-entropy over `classes` on the last layer's output.
class Network {
 public:
  Network(std::string name, Shape sample, int classes);

  Network& dense(int units);
  Network& conv(int filters, int kernel, int stride = 1, int padding = 0);
  // Over the samples of one replica, channel by channel. Running averages start at mean 0,
  // variance 1 and take the variance with n - 1 in the denominator (as cuDNN and PyTorch do).
  Network& batch_norm(double epsilon, double momentum);
  Network& relu();
  Network& max_pool(int side) { return max_pool(side, side, 0); }
  Network& max_pool(int side, int stride, int padding);
  Network& global_average_pool();
  Network& add(int other);  // element by element
  Network& flatten();
  Network& dropout(double rate);

  // What the loss wants of a class: 1 - share at the label, and share / classes everywhere more
  // (Szegedy et al., arXiv 1512.00567, section 7), in training and evaluation, as Keras has it.
  Network& smooth_labels(double share);
  // The last layer's output goes through a softmax before the loss, which takes a softmax again:
  // the mistake of guides that combine Softmax with from_logits=True. To show what it does. The
  // name says so, too: a checkpoint of the one is none of the other.
  Network& softmax_twice();
  bool has_softmax_twice() const { return softmax_twice_; }

  Network& named(std::string name);  // the layer made last
  int last() const { return last_; }
  Network& from(int layer);  // the next layer reads this one

  const std::string& name() const { return name_; }
  Shape sample() const { return sample_; }
  int classes() const { return classes_; }
  double label_smoothing() const { return label_smoothing_; }
  const std::vector<Layer>& layers() const { return layers_; }

 private:
  Network& push(Layer layer, const char* base_name);

  std::string name_;
  Shape sample_;
  int classes_;
  double label_smoothing_ = 0;
  int last_ = kInput;
  bool softmax_twice_ = false;
  std::vector<Layer> layers_;
};

}  // namespace paceline
