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

enum class LayerKind { dense, conv, relu, max_pool, flatten, dropout };

struct Layer {
  LayerKind kind;
  std::string name;
  int units = 0;    // dense: outputs; conv: filters
  int kernel = 0;   // conv, max_pool: side of the square window
  int stride = 1;   // conv; a pooling window moves by its own side
  int padding = 0;  // conv: zeros on each side
  double rate = 0;  // dropout: share of elements set to zero in training
};

// The loss is always softmax cross-entropy over `classes` on the last layer's output.
class Network {
 public:
  Network(std::string name, Shape sample, int classes);

  Network& dense(int units);
  Network& conv(int filters, int kernel, int stride = 1, int padding = 0);
  Network& relu();
  Network& max_pool(int side);
  Network& flatten();
  Network& dropout(double rate);

  const std::string& name() const { return name_; }
  Shape sample() const { return sample_; }
  int classes() const { return classes_; }
  const std::vector<Layer>& layers() const { return layers_; }

 private:
  Network& add(Layer layer, const char* base_name);

  std::string name_;
  Shape sample_;
  int classes_;
  std::vector<Layer> layers_;
};

}  // namespace paceline
