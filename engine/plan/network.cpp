#include "engine/plan/network.h"

#include <fmt/format.h>

#include <algorithm>

namespace paceline {

std::string Shape::text() const {
  if (height == 1 && width == 1) return std::to_string(channels);
  return fmt::format("{} x {} x {}", height, width, channels);
}

Network::Network(std::string name, Shape sample, int classes)
    : name_(std::move(name)), sample_(sample), classes_(classes) {}

Network& Network::add(Layer layer, const char* base_name) {
  const auto same = std::count_if(layers_.begin(), layers_.end(),
                                  [&](const Layer& other) { return other.kind == layer.kind; });
  layer.name = same == 0 ? base_name : fmt::format("{}_{}", base_name, same);
  layers_.push_back(std::move(layer));
  return *this;
}

Network& Network::dense(int units) {
  return add({.kind = LayerKind::dense, .name = "", .units = units}, "dense");
}

Network& Network::conv(int filters, int kernel, int stride, int padding) {
  return add({.kind = LayerKind::conv,
              .name = "",
              .units = filters,
              .kernel = kernel,
              .stride = stride,
              .padding = padding},
             "conv2d");
}

Network& Network::relu() {
  return add({.kind = LayerKind::relu, .name = ""}, "relu");
}

Network& Network::max_pool(int side) {
  return add({.kind = LayerKind::max_pool, .name = "", .kernel = side, .stride = side},
             "max_pooling2d");
}

Network& Network::flatten() {
  return add({.kind = LayerKind::flatten, .name = ""}, "flatten");
}

Network& Network::dropout(double rate) {
  return add({.kind = LayerKind::dropout, .name = "", .rate = rate}, "dropout");
}

}  // namespace paceline
