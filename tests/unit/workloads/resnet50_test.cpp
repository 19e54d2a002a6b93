#include <gtest/gtest.h>

#include <algorithm>

#include "engine/input/loading/stream.h"
#include "engine/plan/plan.h"
#include "tests/support/expect_error.h"
#include "workloads/workload.h"

namespace paceline {
namespace {

Plan plan_network(const Network& network, bool fuse = false) {
  return make_plan(network, 1, DType::f32, [&](const Operation& op) {
    return fuse || !op.fused() ? Support::yes() : Support::no("layer by layer");
  });
}

std::size_t count_statistics(const Plan& plan) {
  std::size_t count = 0;
  for (const ParameterInfo& info : plan.statistics) count += info.elements;
  return count;
}

Workload workload(const std::string& name) {
  const auto& table = workload_table();
  const auto row = std::ranges::find_if(table, [&](const auto& r) { return r.name == name; });
  return row->make();
}

// Keras' model.count_params() counts the running averages, its non-trainable weights.
TEST(ResNet50, HasKerasParameters) {
  const Plan imagenet = plan_network(workload("resnet50-imagenet").network);
  EXPECT_EQ(imagenet.parameter_count + count_statistics(imagenet), 25636712U);
  EXPECT_EQ(count_statistics(imagenet), 53120U);
  const Plan cassava = plan_network(workload("resnet50-cassava").network);
  const std::size_t head = (2048 + 1) * 1016 + (1016 + 1) * 5;
  EXPECT_EQ(cassava.parameter_count + count_statistics(cassava) - head, 23587712U);
  EXPECT_EQ(count_statistics(cassava), 53120U);
}

TEST(ResNet50, HasKerasNames) {
  const Plan plan = plan_network(workload("resnet50-cassava").network);
  const auto make_shape = [](const std::vector<ParameterInfo>& arrays, const std::string& name) {
    const auto it =
        std::ranges::find_if(arrays, [&](const ParameterInfo& info) { return info.name == name; });
    return it == arrays.end() ? std::vector<int>{} : it->shape;
  };
  using Extents = std::vector<int>;
  EXPECT_EQ(make_shape(plan.parameters, "conv1_conv/kernel"), (Extents{7, 7, 3, 64}));
  EXPECT_EQ(make_shape(plan.parameters, "conv1_conv/bias"), (Extents{64}));
  EXPECT_EQ(make_shape(plan.parameters, "conv2_block1_0_conv/kernel"), (Extents{1, 1, 64, 256}));
  EXPECT_EQ(make_shape(plan.parameters, "conv3_block1_1_conv/kernel"), (Extents{1, 1, 256, 128}));
  EXPECT_EQ(make_shape(plan.parameters, "conv4_block6_2_conv/kernel"), (Extents{3, 3, 256, 256}));
  EXPECT_EQ(make_shape(plan.parameters, "conv5_block3_3_bn/gamma"), (Extents{2048}));
  EXPECT_EQ(make_shape(plan.statistics, "conv5_block1_0_bn/moving_variance"), (Extents{2048}));
  EXPECT_EQ(make_shape(plan.parameters, "dense/kernel"), (Extents{2048, 1016}));
  EXPECT_EQ(make_shape(plan.parameters, "dense_1/kernel"), (Extents{1016, 5}));
  EXPECT_EQ(plan.parameters.size(), 53U * 4 + 4);
  EXPECT_EQ(plan.statistics.size(), 53U * 2);
}

Shape capture_output(const Plan& plan, const std::string& name) {
  const auto it =
      std::ranges::find_if(plan.operations, [&](const Operation& op) { return op.name == name; });
  return it == plan.operations.end() ? Shape{} : it->out;
}

TEST(ResNet50, ShapesOf300) {
  const Plan plan = plan_network(workload("resnet50-cassava").network);
  EXPECT_EQ(capture_output(plan, "conv1_conv"), (Shape{150, 150, 64}));
  EXPECT_EQ(capture_output(plan, "pool1_pool"), (Shape{75, 75, 64}));
  EXPECT_EQ(capture_output(plan, "conv3_block4_out"), (Shape{38, 38, 512}));
  EXPECT_EQ(capture_output(plan, "conv4_block1_out"), (Shape{19, 19, 1024}));
  EXPECT_EQ(capture_output(plan, "conv5_block3_out"), (Shape{10, 10, 2048}));
  EXPECT_EQ(capture_output(plan, "avg_pool"), (Shape{1, 1, 2048}));
}

TEST(ResNet50, VariantsStrideInTheFirstOrTheSecondConvolution) {
  const Workload cassava = workload("resnet50-cassava");
  const Plan v1 = plan_network(cassava.variant("v1")), v15 = plan_network(cassava.variant("v1.5"));
  EXPECT_EQ(capture_output(v1, "conv3_block1_1_conv"), (Shape{38, 38, 128}));
  EXPECT_EQ(capture_output(v15, "conv3_block1_1_conv"), (Shape{75, 75, 128}));
  EXPECT_EQ(capture_output(v15, "conv3_block1_2_conv"), (Shape{38, 38, 128}));
  EXPECT_EQ(v1.parameter_count, v15.parameter_count);
  EXPECT_NEAR(v15.flops_per_sample / 1e9, 45.3, 0.1);
  // Three 1 x 1 convolutions run before the stride instead of behind it, in three passes.
  const double more = (75.0 * 75 - 38 * 38) * 256 * 128 + (38.0 * 38 - 19 * 19) * 512 * 256 +
                      (19.0 * 19 - 10 * 10) * 1024 * 512;
  EXPECT_DOUBLE_EQ(v15.flops_per_sample - v1.flops_per_sample, 3 * 2 * more);
  EXPECT_EQ(plan_network(make_network(cassava, {})).flops_per_sample, v1.flops_per_sample);
  EXPECT_EQ(plan_network(make_network(cassava, {.variant = "v1.5", .context = {}, .loss = {}}))
                .flops_per_sample,
            v15.flops_per_sample);
  expect_error(ErrorKind::usage, {"v2", "known: v1, v1.5"}, [&] {
    resnet50_without_top("n", {64, 64, 3}, 5, "v2");
  });
  expect_error(ErrorKind::usage, {"mnist-cnn has no variants"}, [&] {
    make_network(workload("mnist-cnn"), {.variant = "v1.5", .context = {}, .loss = {}});
  });
}

// 53 normalisations: 33 with a ReLU, 12 with a sum and a ReLU, 4 with a down-sampling branch too,
// whose own normalisation is inside.
TEST(ResNet50, EveryNormalisationIsFused) {
  const Plan plan = plan_network(workload("resnet50-cassava").network, true);
  int plain = 0, with_add = 0, with_branch = 0, alone = 0;
  for (const Operation& op : plan.operations) {
    EXPECT_NE(op.kind, OpKind::add) << op.name;
    EXPECT_NE(op.kind, OpKind::relu) << op.name;
    EXPECT_EQ(op.bias_cancels, op.kind == OpKind::conv) << op.name;
    if (op.kind != OpKind::batch_norm) continue;
    (op.branch ? with_branch : op.add ? with_add : op.relu ? plain : alone) += 1;
  }
  EXPECT_EQ(plain, 33);
  EXPECT_EQ(with_add, 12);
  EXPECT_EQ(with_branch, 4);
  EXPECT_EQ(alone, 0);
}

std::size_t steps(const Workload& one, std::size_t replicas) {
  const auto batch = static_cast<std::size_t>(*one.defaults.integer("batch_per_replica"));
  StreamSpec stream;
  stream.samples = one.train_samples;
  stream.global_batch = batch * replicas;
  stream.drop_last = one.defaults.text("last_batch") == "drop";
  if (one.defaults.find("steps_per_epoch")) {
    stream.steps_per_epoch = std::stoul(*one.defaults.text("steps_per_epoch"));
  }
  return SampleStream(stream).steps_per_epoch();
}

TEST(ResNet50, StepsAreThoseThatArePublished) {
  const Workload cassava = workload("resnet50-cassava");
  EXPECT_EQ(cassava.train_samples * 15, 84840U);
  EXPECT_EQ(cassava.defaults.integer("epochs"), 15);
  const std::size_t expected[] = {177, 89, 59, 45};
  for (std::size_t replicas = 1; replicas <= 4; ++replicas) {
    EXPECT_EQ(steps(cassava, replicas), expected[replicas - 1]) << replicas;
  }
  const Workload cifar10 = workload("resnet50-cifar10");
  EXPECT_EQ(cifar10.defaults.integer("epochs"), 10);
  for (const std::size_t replicas : {1, 2, 4, 8}) EXPECT_EQ(steps(cifar10, replicas), 100U);
}

TEST(ResNet50, SyntheticImageNetFitsInMemory) {
  const Workload imagenet = workload("resnet50-imagenet");
  const Shape shape = imagenet.network.sample();
  const DatasetPair data =
      synthetic_images(shape.height, shape.width, shape.channels, imagenet.network.classes(),
                       imagenet.train_samples, imagenet.test_samples, 1);
  EXPECT_EQ(data.train.samples, 1281167U);
  EXPECT_EQ(data.train.images.size(), data.train.labels.size() * data.train.sample_bytes());
  EXPECT_LT(data.train.images.size(), 128U << 20);
  EXPECT_GT(data.train.labels.size(), 200U);
  SampleFetcher fetcher(data.train);
  std::vector<std::uint8_t> image(data.train.sample_bytes()), last(image.size());
  const std::int32_t label = fetcher.fetch(1281166 % data.train.labels.size(), image.data());
  EXPECT_EQ(fetcher.fetch(1281166, last.data()), label);
  EXPECT_EQ(image, last);
}

}  // namespace
}  // namespace paceline
