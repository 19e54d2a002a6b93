// A network as a workload describes it: layers in order, independent of device, batch and fusion.
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

constexpr int kInput = -1;  // instead of a layer: the sample itself

struct Layer {
  LayerKind kind;
  std::string name;
  int from = kInput;    // the layer that it reads
  int from2 = kInput;   // add: the second summand
  int units = 0;        // dense: outputs; conv: filters
  int kernel = 0;       // conv, max_pool: side of the square window
  int stride = 1;       // conv, max_pool
  int padding = 0;      // conv: zeros on each side; max_pool: places that never win
  double rate = 0;      // dropout: share of elements set to zero in training
  double epsilon = 0;   // batch_norm: added to the variance
  double momentum = 0;  // batch_norm: share of a running average that stays in each step
};

// Softmax cross-entropy, in training and evaluation.
struct LossConfig {
  // The target is 1 - smoothing + smoothing / classes for the label, and smoothing / classes for
  // other classes (Szegedy et al., arXiv 1512.00567, section 7), as in Keras.
  double label_smoothing = 0;
  // Applies a softmax to the last layer before the loss, which applies another one: the mistake of
  // guides that combine Softmax with from_logits=True, for demonstration.
  bool double_softmax = false;
};

// Layers form a chain. last() and from() create branches, add() joins them. The loss is always
// softmax cross-entropy over `classes`, applied to the last layer.
class Network {
 public:
  Network(std::string name, Shape sample, int classes);

  Network& dense(int units);
  Network& conv(int filters, int kernel, int stride = 1, int padding = 0);
  // Statistics are over the samples of one replica, by channel. Running averages start with mean 0
  // and variance 1, and use the variance with n - 1 in the denominator (like cuDNN and PyTorch).
  Network& batch_norm(double epsilon, double momentum);
  Network& relu();
  Network& max_pool(int side) { return max_pool(side, side, 0); }
  Network& max_pool(int side, int stride, int padding);
  Network& global_average_pool();
  Network& add(int other);  // element-wise
  Network& flatten();
  Network& dropout(double rate);

  // A second softmax changes the network's name, so that checkpoints are not interchangeable.
  Network& set_loss(const LossConfig& config);

  // Gives the last layer, a dense one, an output for each of so many classes.
  Network& resize_head(int classes);

  Network& named(std::string name);  // names the most recent layer
  int last() const { return last_; }
  Network& from(int layer);  // the next layer reads `layer`

  const std::string& name() const { return name_; }
  Shape sample() const { return sample_; }
  int classes() const { return classes_; }
  const LossConfig& loss() const { return loss_; }
  const std::vector<Layer>& layers() const { return layers_; }

 private:
  Network& push(Layer layer, const char* base_name);

  std::string name_;
  Shape sample_;
  int classes_;
  int last_ = kInput;
  LossConfig loss_;
  std::vector<Layer> layers_;
};

}  // namespace paceline
