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

Network& Network::push(Layer layer, const char* base_name) {
  const auto same = std::ranges::count(layers_, layer.kind, &Layer::kind);
  layer.name = same == 0 ? base_name : fmt::format("{}_{}", base_name, same);
  layer.from = last_;
  layers_.push_back(std::move(layer));
  last_ = static_cast<int>(layers_.size()) - 1;
  return *this;
}

Network& Network::embedding(int width, double deviation) {
  return push({.kind = LayerKind::embedding, .name = "", .units = width, .deviation = deviation},
              "embedding");
}

Network& Network::dense(int units, double deviation) {
  return push({.kind = LayerKind::dense, .name = "", .units = units, .deviation = deviation},
              "dense");
}

Network& Network::conv(int filters, int kernel, int stride, int padding) {
  return push({.kind = LayerKind::conv,
               .name = "",
               .units = filters,
               .kernel = kernel,
               .stride = stride,
               .padding = padding},
              "conv2d");
}

Network& Network::batch_norm(double epsilon, double momentum) {
  return push({.kind = LayerKind::batch_norm, .name = "", .epsilon = epsilon, .momentum = momentum},
              "batch_normalization");
}

Network& Network::relu() {
  return push({.kind = LayerKind::relu, .name = ""}, "relu");
}

Network& Network::max_pool(int side, int stride, int padding) {
  return push({.kind = LayerKind::max_pool,
               .name = "",
               .kernel = side,
               .stride = stride,
               .padding = padding},
              "max_pooling2d");
}

Network& Network::global_average_pool() {
  return push({.kind = LayerKind::global_average_pool, .name = ""}, "global_average_pooling2d");
}

Network& Network::add(int other) {
  return push({.kind = LayerKind::add, .name = "", .from2 = other}, "add");
}

Network& Network::flatten() {
  return push({.kind = LayerKind::flatten, .name = ""}, "flatten");
}

Network& Network::dropout(double rate) {
  return push({.kind = LayerKind::dropout, .name = "", .rate = rate}, "dropout");
}

Network& Network::layer_norm(double epsilon) {
  return push({.kind = LayerKind::layer_norm, .name = "", .epsilon = epsilon},
              "layer_normalization");
}

Network& Network::gelu() {
  return push({.kind = LayerKind::gelu, .name = ""}, "gelu");
}

Network& Network::attention(int heads) {
  return push({.kind = LayerKind::attention, .name = "", .heads = heads}, "attention");
}

Network& Network::set_loss(const LossConfig& config) {
  if (config.double_softmax && !loss_.double_softmax) name_ += ", softmax twice";
  loss_ = config;
  return *this;
}

Network& Network::set_context(int tokens) {
  sample_ = token_sample(tokens);
  return *this;
}

Network& Network::resize_head(int classes) {
  classes_ = classes;
  layers_.at(static_cast<std::size_t>(last_)).units = classes;
  return *this;
}

Network& Network::named(std::string name) {
  layers_.back().name = std::move(name);
  return *this;
}

Network& Network::from(int layer) {
  last_ = layer;
  return *this;
}

}  // namespace paceline
