#include "tests/conformance/device/cases.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>

#include "engine/core/hash.h"
#include "workloads/workload.h"

namespace paceline::conformance {

namespace {

class Cases {
 public:
  Network& add(const char* name, Shape sample, int classes) {
    cases_.push_back({name, Network(name, sample, classes)});
    return cases_.back().network;
  }
  std::vector<NetworkCase> take() { return std::move(cases_); }

 private:
  std::vector<NetworkCase> cases_;
};

Network& norm(Network& network) {
  return network.batch_norm(1e-3, 0.9);
}

// conv + batch_norm + ReLU.
Network& unit(Network& network, int filters, int kernel, int stride = 1) {
  return norm(network.conv(filters, kernel, stride, kernel / 2)).relu();
}

// A residual block of two convolutions; with a stride or other filters, a down-sampling branch.
Network& block(Network& network, int filters, int stride, bool down) {
  const int start = network.last();
  int other = start;
  if (down) {
    norm(network.conv(filters, 1, stride));
    other = network.last();
    network.from(start);
  }
  norm(unit(network, filters, 3, stride).conv(filters, 3, 1, 1));
  return network.add(other).relu();
}

void add_norm_cases(Cases& cases) {
  norm(cases.add("norm_of_the_input", {6, 5, 3}, 3)).flatten().dense(3);
  norm(cases.add("norm_of_a_dense", {4, 4, 1}, 5).flatten().dense(24)).relu().dense(5);
  norm(cases.add("norm", {7, 6, 2}, 3).conv(5, 3)).flatten().dense(3);
  unit(cases.add("norm_relu", {7, 6, 2}, 3), 5, 3).flatten().dense(3);
  unit(unit(cases.add("norm_16_32", {9, 8, 3}, 4), 16, 3), 32, 3, 2).global_average_pool().dense(4);
  unit(unit(cases.add("norm_33_21", {6, 6, 2}, 4), 33, 3), 21, 1).global_average_pool().dense(4);
  unit(unit(cases.add("norm_64_33", {6, 6, 3}, 4), 64, 3), 33, 1).global_average_pool().dense(4);
}

void add_residual_cases(Cases& cases) {
  block(unit(cases.add("residual", {7, 6, 3}, 4), 5, 3), 5, 1, false)
      .global_average_pool()
      .dense(4);
  block(unit(cases.add("residual_down", {9, 7, 3}, 4), 6, 3), 7, 2, true).flatten().dense(4);
  block(block(unit(cases.add("residual_16_32", {8, 8, 3}, 4), 16, 3), 16, 1, false), 32, 2, true)
      .global_average_pool()
      .dense(4);
  block(block(unit(cases.add("residual_32", {6, 7, 3}, 4), 32, 3), 32, 1, true), 32, 1, false)
      .global_average_pool()
      .dense(4);
  norm(cases.add("residual_of_the_input", {6, 6, 4}, 3).conv(4, 3, 1, 1))
      .add(kInput)
      .relu()
      .flatten()
      .dense(3);
  Network& both = cases.add("two_of_the_input", {8, 8, 3}, 3).conv(4, 3, 2, 1);
  const int strided = both.last();
  both.from(kInput).conv(4, 3, 1, 1).max_pool(2).add(strided).flatten().dense(3);
  Network& plain = cases.add("add_without_norm", {6, 5, 2}, 3).conv(4, 3, 1, 1);
  const int start = plain.last();
  plain.relu().conv(4, 3, 1, 1).add(start).flatten().dense(3);
  Network& twice = cases.add("add_to_itself", {4, 5, 2}, 3).conv(4, 1);
  twice.add(twice.last()).flatten().dense(3);
}

// Every operation as one of several readers of an output.
void add_shared_cases(Cases& cases) {
  Network& planes = cases.add("shared_planes", {7, 6, 2}, 3).conv(8, 3);
  const int plane = planes.last();
  int sum = planes.relu().last();
  const auto add_branch = [&](Network& network) { sum = network.add(sum).last(); };
  add_branch(planes.from(plane).max_pool(3, 1, 1));
  add_branch(norm(planes.from(plane)));
  add_branch(planes.from(plane).conv(8, 3, 1, 1));
  add_branch(planes.from(plane));
  planes.relu().global_average_pool();
  sum = planes.last();
  add_branch(planes.from(plane).global_average_pool());
  planes.dense(3);

  Network& vectors = cases.add("shared_vectors", {4, 5, 1}, 3).flatten().dense(16);
  const int vector = vectors.last();
  sum = vectors.relu().last();
  add_branch(vectors.from(vector).dropout(0.3));
  add_branch(vectors.from(vector).dense(16));
  add_branch(vectors.from(vector).dense(16).relu().dropout(0.2));
  add_branch(norm(vectors.from(vector)));
  vectors.dense(3);
}

void add_window_cases(Cases& cases) {
  cases.add("conv_1x1_strided", {7, 8, 3}, 3).conv(6, 1, 2).relu().flatten().dense(3);
  unit(cases.add("conv_3x3_strided", {9, 8, 16}, 3), 32, 3, 2).flatten().dense(3);
  cases.add("pool_3_strided_padded", {9, 8, 2}, 3)
      .conv(5, 3)
      .max_pool(3, 2, 1)
      .relu()
      .flatten()
      .dense(3);
  cases.add("smoothed_labels", {4, 5, 1}, 7)
      .set_loss({.label_smoothing = 0.1})
      .flatten()
      .dense(9)
      .dense(7);
  cases.add("softmax_twice", {4, 5, 1}, 6)
      .flatten()
      .dense(24)
      .relu()
      .dense(6)
      .set_loss({.double_softmax = true});
  cases.add("average", {5, 6, 2}, 3).conv(7, 3).relu().global_average_pool().dense(3);
  norm(cases.add("resnet_stem", {23, 21, 3}, 4).conv(16, 7, 2, 3))
      .relu()
      .max_pool(3, 2, 1)
      .global_average_pool()
      .dense(4);
  norm(cases.add("norm_pool_of_5", {9, 10, 2}, 3).conv(5, 3))
      .relu()
      .max_pool(3, 2, 1)
      .flatten()
      .dense(3);
  norm(cases.add("norm_pool_apart", {11, 10, 2}, 3).conv(8, 3))
      .relu()
      .max_pool(2, 3, 0)
      .flatten()
      .dense(3);
}

// Layer norm, attention and a second part behind a layer norm, each added to what it read.
void transformer_block(Network& network, int width, int heads) {
  int start = network.last();
  network.layer_norm(1e-5).dense(3 * width, 0.2).attention(heads).dense(width, 0.2).add(start);
  start = network.last();
  network.layer_norm(1e-5).dense(4 * width, 0.2).gelu().dense(width, 0.2).add(start);
}

void add_token_cases(Cases& cases) {
  cases.add("embedding", token_sample(7), 11).embedding(16, 0.3);
  cases.add("layer_norm_of_20", token_sample(5), 13).embedding(20, 0.3).layer_norm(1e-5);
  cases.add("dense_of_places", token_sample(6), 12)
      .embedding(24, 0.3)
      .dense(40, 0.2)
      .relu()
      .dropout(0.2)
      .dense(33, 0.2)
      .gelu()
      .dense(24, 0.2);
  cases.add("attention", token_sample(9), 8).embedding(96, 0.5).attention(1).dense(96, 0.2);
  Network& shared = cases.add("shared_places", token_sample(4), 9).embedding(96, 0.4);
  const int start = shared.last();
  int sum = shared.gelu().last();
  sum = shared.from(start).layer_norm(1e-5).add(sum).last();
  sum = shared.from(start).dense(96, 0.2).add(sum).last();
  shared.from(start).attention(1).dense(96, 0.2).add(sum);
  // x + f(x) with an f of one operation; a sum of sums; what skips several of them.
  Network& sums = cases.add("sums_of_places", token_sample(4), 9).embedding(32, 0.4);
  const int first = sums.last();
  sums.dense(32, 0.2).add(first);
  const int second = sums.last();
  sums.layer_norm(1e-5).dense(32, 0.2).gelu().dense(32, 0.2).add(second).add(first);
  const int third = sums.last();
  sums.from(second).dense(32, 0.2).add(third);
  // More places than devices take at a time.
  Network& blocks = cases.add("transformer", token_sample(40), 37).embedding(64, 0.3);
  transformer_block(blocks, 64, 2);
  transformer_block(blocks, 64, 1);
  blocks.layer_norm(1e-5);
}

// Of the workloads those that the reference runs in no time.
void add_small_workloads(std::vector<NetworkCase>& cases) {
  constexpr double kSmall = 50e6;  // operations a sample
  for (const auto& row : workload_table()) {
    const Network network = row.make().network;
    const Plan plan = make_plan(network, 1, DType::f64, [](const Operation& op) {
      return op.fused() ? Support::no("") : Support::yes();
    });
    if (plan.flops_per_sample < kSmall) cases.push_back({row.name, network});
  }
}

int index_in(const std::vector<ParameterInfo>& arrays, const std::string& name) {
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    if (arrays[i].name == name) return static_cast<int>(i);
  }
  throw std::runtime_error("no array " + name);
}

}  // namespace

std::vector<NetworkCase> network_cases() {
  Cases made;
  const auto add = [&](const char* name, Shape sample, int classes) -> Network& {
    return made.add(name, sample, classes);
  };
  add("dense", {5, 4, 1}, 3).flatten().dense(7).dense(3);
  add("dense_relu", {5, 4, 2}, 10).flatten().dense(33).relu().dense(10);
  add("dense_relu_dropout", {5, 5, 1}, 10).flatten().dense(37).relu().dropout(0.3).dense(10);
  add("dropout_alone", {5, 4, 1}, 5)
      .flatten()
      .dense(20)
      .dropout(0.2)
      .dense(19)
      .dropout(0.4)
      .dense(5);
  // Rates that are 0 and 1 in the 16 bits that decide.
  add("dropout_of_nearly_none", {5, 4, 1}, 5).flatten().dense(20).relu().dropout(1e-6).dense(5);
  add("dropout_of_nearly_all", {5, 4, 1}, 5).flatten().dense(20).dropout(0.999995).dense(5);
  add("dropout_of_the_input", {5, 4, 1}, 5).flatten().dropout(0.5).dense(5);
  add("conv", {6, 7, 1}, 3).conv(4, 3).flatten().dense(3);
  add("conv_1x1", {4, 5, 3}, 3).conv(6, 1).relu().flatten().dense(3);
  add("conv_padded_strided", {9, 8, 3}, 4)
      .conv(5, 3, 2, 1)
      .relu()
      .conv(6, 3)
      .relu()
      .flatten()
      .dense(4);
  add("conv_5x5_padded", {7, 6, 2}, 4).conv(3, 5, 1, 2).relu().flatten().dense(4);
  add("pool_2", {9, 8, 2}, 3).conv(4, 3).relu().max_pool(2).conv(5, 2).relu().flatten().dense(3);
  add("pool_3", {10, 11, 2}, 3).conv(4, 3, 1, 1).relu().max_pool(3).flatten().dense(3);
  add("pool_without_relu", {8, 8, 1}, 3).conv(4, 3).max_pool(2).relu().flatten().dense(3);
  add("pool_of_the_input", {8, 6, 1}, 3).max_pool(2).conv(4, 3, 1, 1).relu().flatten().dense(3);
  add("stem_16", {12, 14, 1}, 5).conv(16, 3).relu().max_pool(2).flatten().dense(5);
  add("stem_32_odd", {13, 15, 1}, 5)
      .conv(32, 3)
      .relu()
      .max_pool(2)
      .flatten()
      .dense(8)
      .relu()
      .dense(5);
  add("stem_of_8_filters", {12, 12, 1}, 5).conv(8, 3).relu().max_pool(2).flatten().dense(5);
  add("stem_pool_3", {14, 14, 1}, 5).conv(16, 3).relu().max_pool(3).flatten().dense(5);
  add("small_mnist_cnn", {14, 14, 1}, 10)
      .conv(32, 3)
      .relu()
      .max_pool(2)
      .flatten()
      .dense(64)
      .relu()
      .dense(10);
  add_norm_cases(made);
  add_residual_cases(made);
  add_shared_cases(made);
  add_window_cases(made);
  add_token_cases(made);
  std::vector<NetworkCase> cases = made.take();
  add_small_workloads(cases);
  return cases;
}

std::unique_ptr<Device> make_device(const std::string& name, int threads) {
  DeviceOptions options;
  options.precision = name == "reference" ? "fp64" : "fp32";
  options.threads = threads;
  if (is_gpu(name))
    options.settings["deterministic"] = "true";  // else the clock chooses, anew for every device
  for (const auto& row : device_table()) {
    if (name == row.name) return row.make(options);
  }
  throw std::runtime_error("no device " + name);
}

bool is_gpu(const std::string& device) {
  return std::any_of(driver_table().begin(), driver_table().end(),
                     [&](const auto& row) { return device == row.name; });
}

std::string reason_absent(const std::string& device) {
  for (const auto& row : driver_table()) {
    std::string why;
    if (device == row.name && row.make()->visible(why).empty()) return "no GPU: " + why;
  }
  return "";
}

RandomBatch::RandomBatch(const Network& network, int samples, int global_samples,
                         std::uint32_t seed) {
  RandomSequence random(seed, Stream::synthetic, 0);
  const auto count = static_cast<std::size_t>(samples);
  images_.resize(count * network.sample().elements());
  for (std::uint8_t& pixel : images_) pixel = static_cast<std::uint8_t>(random.next() >> 24);
  for (std::size_t i = 0; network.reads_tokens() && i < images_.size(); i += 2) {
    images_[i] = static_cast<std::uint8_t>(images_[i] % network.classes());
    images_[i + 1] = 0;
  }
  for (std::size_t i = 0; i < count; ++i) {
    labels_.push_back(
        static_cast<std::int32_t>(random.below(static_cast<std::uint32_t>(network.classes()))));
    positions_.push_back(random.below(60000));
  }
  batch_.images = images_.data();
  batch_.labels = labels_.data();
  batch_.positions = positions_.data();
  batch_.samples = samples;
  batch_.global_samples = global_samples;
  batch_.epoch = 3;
  batch_.dropout_key = philox_key(seed, Stream::dropout);
}

Replica::Replica(std::unique_ptr<Device> device, const Network& network, int batch, bool fuse)
    : device_(std::move(device)),
      plan_(make_plan(network, batch, device_->precision(),
                      [&](const Operation& op) {
                        const bool fused = op.fused();
                        return fused && !fuse ? Support::no("not asked for")
                                              : device_->supports(op);
                      })),
      gradients_(device_->allocate(plan_.arena_elements * size_of(plan_.real))),
      program_(device_->compile(plan_, gradients_.data())) {
  for (std::size_t i = 0; i < plan_.parameters.size(); ++i) {
    const ParameterInfo& info = plan_.parameters[i];
    RandomSequence random(5, Stream::weights, static_cast<std::uint32_t>(hash_value(info.name)));
    const double limit = info.fan_in ? std::sqrt(6.0 / (info.fan_in + info.fan_out)) : 0.1;
    std::vector<double> values(info.elements);
    // Rounded to fp32, so that every device has the same values.
    for (double& value : values) {
      value = static_cast<float>(info.initial + (2 * random.uniform() - 1) * limit);
    }
    program_->write_parameter(static_cast<int>(i), values);
  }
}

double Replica::loss(const Batch& batch) {
  program_->take_sums();
  poison(true);
  program_->forward(batch, Mode::train);
  return program_->take_sums().loss / batch.global_samples / plan_.labels_per_sample;
}

// Forward sets the gradient of a table that the loss of tokens shares.
bool Replica::is_tied(int parameter) const {
  return std::any_of(plan_.operations.begin(), plan_.operations.end(), [&](const Operation& op) {
    return op.tied != kNone && op.weight == parameter;
  });
}

void Replica::poison(bool tied) {
  for (std::size_t i = 0; i < plan_.parameters.size(); ++i) {
    const int index = static_cast<int>(i);
    if (is_tied(index) != tied) continue;
    program_->write_gradient(index, std::vector<double>(plan_.parameters[i].elements,
                                                        std::numeric_limits<double>::quiet_NaN()));
  }
}

void Replica::poison_gradients() {
  poison(true);
  poison(false);
}

void Replica::backward() {
  poison(false);
  program_->backward(static_cast<int>(plan_.operations.size()) - 1, 0);
  program_->take_sums();
}

int Replica::parameter_index(const std::string& parameter) const {
  return index_in(plan_.parameters, parameter);
}

int Replica::statistic_index(const std::string& name) const {
  return index_in(plan_.statistics, name);
}

bool Replica::is_cancelled_bias(int parameter) const {
  return std::any_of(plan_.operations.begin(), plan_.operations.end(),
                     [&](const Operation& op) { return op.bias_cancels && op.bias == parameter; });
}

double compute_norm(const std::vector<double>& values) {
  return std::sqrt(std::inner_product(values.begin(), values.end(), values.begin(), 0.0));
}

double relative_error(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) return std::numeric_limits<double>::infinity();
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference += (a[i] - b[i]) * (a[i] - b[i]);
    norm += b[i] * b[i];
  }
  return difference == 0 ? 0 : std::sqrt(difference / norm);
}

}  // namespace paceline::conformance
