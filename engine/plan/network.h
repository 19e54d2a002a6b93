// A network as a workload describes it: layers in order, independent of device, batch and fusion.
#pragma once

#include <cstddef>
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

// A sample of a network of tokens: context + 1 of them, two bytes each, low byte first. The network
// reads the first `context`; the label of each is the token behind it.
inline Shape token_sample(int context) {
  return {context + 1, 1, 2};
}
inline std::size_t token_at(const std::uint8_t* sample, std::size_t place) {
  return sample[2 * place] | std::size_t{sample[2 * place + 1]} << 8;
}

enum class LayerKind {
  embedding,
  dense,
  conv,
  batch_norm,
  relu,
  max_pool,
  global_average_pool,
  add,
  flatten,
  dropout,
  layer_norm,
  gelu,
  attention
};

constexpr int kInput = -1;  // instead of a layer: the sample itself

struct Layer {
  LayerKind kind;
  std::string name;
  int from = kInput;    // the layer that it reads
  int from2 = kInput;   // add: the second summand
  int units = 0;        // dense, embedding: outputs; conv: filters
  int kernel = 0;       // conv, max_pool: side of the square window
  int stride = 1;       // conv, max_pool
  int padding = 0;      // conv: zeros on each side; max_pool: places that never win
  double rate = 0;      // dropout: share of elements set to zero in training
  double epsilon = 0;   // batch_norm, layer_norm: added to the variance
  double momentum = 0;  // batch_norm: share of a running average that stays in each step
  int heads = 0;        // attention
  // dense, embedding: standard deviation of normal initial values; 0: Glorot's.
  double deviation = 0;
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

// Layers form a chain. last() and from() create branches, add() joins them. The loss is softmax
// cross-entropy over `classes`: of the last layer, or, behind an embedding, of the products of each
// place with the tokens' embeddings ("tied" weights: Press and Wolf, arXiv 1608.05859).
class Network {
 public:
  Network(std::string name, Shape sample, int classes);

  // Of a token and of its place: two tables, added. The first layer of a network of tokens.
  Network& embedding(int width, double deviation);
  // Of a vector, or of each place of a network of tokens.
  Network& dense(int units, double deviation = 0);
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
  // Over the channels of each place (Ba, Kiros and Hinton, arXiv 1607.06450).
  Network& layer_norm(double epsilon);
  // 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))): Hendrycks and Gimpel, arXiv 1606.08415.
  Network& gelu();
  // Each place has a query, a key and a value, in this order, for `heads` heads, and sees itself
  // and the places before it (Vaswani et al., arXiv 1706.03762, section 3.2).
  Network& attention(int heads);

  // A second softmax changes the network's name, so that checkpoints are not interchangeable.
  Network& set_loss(const LossConfig& config);

  Network& set_context(int tokens);  // of a network of tokens

  // Gives the last layer, a dense one, an output for each of so many classes.
  Network& resize_head(int classes);

  Network& named(std::string name);  // names the most recent layer
  int last() const { return last_; }
  Network& from(int layer);  // the next layer reads `layer`

  const std::string& name() const { return name_; }
  Shape sample() const { return sample_; }
  int classes() const { return classes_; }
  bool reads_tokens() const { return !layers_.empty() && layers_[0].kind == LayerKind::embedding; }
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
