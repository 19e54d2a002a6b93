#include "workloads/workload.h"

#include <fmt/format.h>

#include <cmath>

#include "engine/core/error.h"

namespace paceline {

namespace {

// The four IDX files, or Keras' mnist.npz; else an image set with splits train and test (TFDS's,
// for example). ~/.keras/datasets may hold folders of images beside the archive.
bool has_mnist_files(const std::filesystem::path& folder) {
  return !mnist_files(folder).empty() || !is_image_set(folder);
}

DatasetPair load(const std::filesystem::path& folder, const InputOptions& options) {
  if (has_mnist_files(folder)) return load_mnist(folder);
  return load_images(open_image_set(folder, options.reading), "train", "test", {28, 28, 1},
                     options);
}

std::string hash(const std::filesystem::path& folder) {
  return has_mnist_files(folder) ? mnist_hash(folder) : image_set_hash(folder);
}

constexpr double kDeviation = 0.02, kLayerNormEpsilon = 1e-5;

Network gpt_network(const std::string& name, const GptShape& shape) {
  const double added = kDeviation / std::sqrt(2.0 * shape.layers);
  const int width = shape.width;
  Network network(name, token_sample(shape.context), shape.vocabulary);
  network.embedding(width, kDeviation).named("wte");
  for (int i = 0; i < shape.layers; ++i) {
    const auto named = [i](const char* part) { return fmt::format("h.{}.{}", i, part); };
    int start = network.last();
    network.layer_norm(kLayerNormEpsilon).named(named("ln_1"));
    network.dense(3 * width, kDeviation).named(named("attn.c_attn"));
    network.attention(shape.heads).named(named("attn"));
    network.dense(width, added).named(named("attn.c_proj"));
    network.add(start).named(named("attn.add"));
    start = network.last();
    network.layer_norm(kLayerNormEpsilon).named(named("ln_2"));
    network.dense(4 * width, kDeviation).named(named("mlp.c_fc"));
    network.gelu().named(named("mlp.gelu"));
    network.dense(width, added).named(named("mlp.c_proj"));
    network.add(start).named(named("mlp.add"));
  }
  network.layer_norm(kLayerNormEpsilon).named("ln_f");
  return network;
}

constexpr double kEpsilon = 1.001e-5, kMomentum = 0.99;

class ResNet {
 public:
  ResNet(Network& network, bool strides_late) : network_(network), strides_late_(strides_late) {}

  void stem() {
    norm("conv1", 64, 7, 2);
    network_.relu().named("conv1_relu").max_pool(3, 2, 1).named("pool1_pool");
  }

  void stage(int number, int filters, int blocks, int stride) {
    for (int i = 1; i <= blocks; ++i) {
      block(fmt::format("conv{}_block{}", number, i), filters, i == 1 ? stride : 1, i == 1);
    }
  }

 private:
  void norm(const std::string& name, int filters, int kernel, int stride) {
    network_.conv(filters, kernel, stride, kernel / 2).named(name + "_conv");
    network_.batch_norm(kEpsilon, kMomentum).named(name + "_bn");
  }

  void block(const std::string& name, int filters, int stride, bool down_sampling) {
    const int start = network_.last();
    int shortcut = start;
    if (down_sampling) {
      norm(name + "_0", 4 * filters, 1, stride);
      shortcut = network_.last();
      network_.from(start);
    }
    norm(name + "_1", filters, 1, strides_late_ ? 1 : stride);
    network_.relu().named(name + "_1_relu");
    norm(name + "_2", filters, 3, strides_late_ ? stride : 1);
    network_.relu().named(name + "_2_relu");
    norm(name + "_3", 4 * filters, 1, 1);
    network_.add(shortcut).named(name + "_add").relu().named(name + "_out");
  }

  Network& network_;
  bool strides_late_;
};

}  // namespace

Workload mnist_workload(std::string name, std::string summary, Network network) {
  return {.name = std::move(name),
          .summary = std::move(summary),
          .network = std::move(network),
          .defaults = {{"batch_per_replica", 64},
                       {"optimizer", "adam"},
                       {"learning_rate", 0.001},
                       {"learning_rate_rule", "none"},
                       {"last_batch", "keep"}},
          .data_set = "mnist",
          .train_samples = 60000,
          .test_samples = 10000,
          .load = load,
          .hash = hash};
}

Workload gpt_workload(std::string name, std::string summary, const GptShape& shape,
                      std::string data_set) {
  return {.name = name,
          .summary = std::move(summary),
          .network = gpt_network(name, shape),
          .defaults = {{"optimizer", "adam"},
                       {"learning_rate_rule", "none"},
                       {"weight_decay", 0.1},
                       {"clip_norm", 1.0},
                       {"last_batch", "drop"}},
          .data_set = std::move(data_set),
          .train_samples = 8192,
          .test_samples = 128,
          .load = {},
          .hash = tokens_hash};
}

Network resnet50_without_top(const std::string& name, Shape sample, int classes,
                             const std::string& variant) {
  if (variant != "v1" && variant != "v1.5") {
    throw usage_error("ResNet-50 has no variant \"" + variant + "\"", "", "known: v1, v1.5");
  }
  Network network(name, sample, classes);
  ResNet parts(network, variant == "v1.5");
  parts.stem();
  parts.stage(2, 64, 3, 1);
  parts.stage(3, 128, 4, 2);
  parts.stage(4, 256, 6, 2);
  parts.stage(5, 512, 3, 2);
  network.global_average_pool().named("avg_pool");
  return network;
}

Network make_network(const Workload& workload, const NetworkConfig& config) {
  if (config.variant && !workload.variant) {
    throw usage_error("workload " + workload.name + " has no variants", "", "leave variant out");
  }
  Network network = config.variant ? workload.variant(*config.variant) : workload.network;
  if (config.context) {
    if (!network.reads_tokens()) {
      throw usage_error("workload " + workload.name + " does not read tokens", "",
                        "leave context_length out");
    }
    network.set_context(static_cast<int>(*config.context));
  }
  return network.set_loss(config.loss);
}

}  // namespace paceline
