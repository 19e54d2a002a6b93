#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/train/events/event.pb.h"
#include "engine/train/events/event_log.h"

namespace paceline {

namespace {

constexpr int kFloat = 1, kDouble = 2;  // tensorflow/core/framework/types.proto
constexpr int kColumns = 3;             // left edge, right edge, count
constexpr char kWriter[] = "paceline";

wire::Summary::Value* add_value(wire::Event& event, const std::string& tag, const char* plugin) {
  wire::Summary::Value* value = event.mutable_summary()->add_value();
  value->set_tag(tag);
  value->mutable_metadata()->mutable_plugin_data()->set_plugin_name(plugin);
  return value;
}

void add(wire::Event& event, const Event::Scalar& scalar) {
  wire::Tensor* tensor = add_value(event, scalar.tag, "scalars")->mutable_tensor();
  tensor->set_dtype(kFloat);
  tensor->mutable_tensor_shape();
  tensor->add_float_val(static_cast<float>(scalar.value));
}

void add(wire::Event& event, const Event::Distribution& distribution) {
  wire::Tensor* tensor = add_value(event, distribution.tag, "histograms")->mutable_tensor();
  tensor->set_dtype(kDouble);
  const Histogram& buckets = distribution.histogram;
  tensor->mutable_tensor_shape()->add_dim()->set_size(static_cast<std::int64_t>(buckets.size()));
  tensor->mutable_tensor_shape()->add_dim()->set_size(kColumns);
  std::string content;
  for (const HistogramBucket& bucket : buckets) {
    for (const double number : {bucket.left, bucket.right, bucket.count}) {
      content.append(reinterpret_cast<const char*>(&number), sizeof number);
    }
  }
  tensor->set_tensor_content(std::move(content));
}

}  // namespace

std::string encode(const Event& event) {
  wire::Event message;
  message.set_wall_time(event.wall_time);
  message.set_step(event.step);
  if (!event.file_version.empty()) {
    message.set_file_version(event.file_version);
    message.mutable_source_metadata()->set_writer(kWriter);
  }
  for (const auto& scalar : event.scalars) add(message, scalar);
  for (const auto& distribution : event.histograms) add(message, distribution);
  return message.SerializeAsString();
}

Histogram make_histogram(std::span<const double> values) {
  Histogram buckets(kHistogramBuckets);
  double least = std::numeric_limits<double>::infinity(), greatest = -least;
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    least = std::min(least, value);
    greatest = std::max(greatest, value);
  }
  if (least > greatest) return buckets;
  const double width = (greatest - least) / static_cast<double>(kHistogramBuckets);
  for (std::size_t i = 0; i < kHistogramBuckets; ++i) {
    buckets[i].left = least + static_cast<double>(i) * width;
    buckets[i].right = least + static_cast<double>(i + 1) * width;
  }
  buckets.back().right = greatest;
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    const double at = width > 0 ? std::floor((value - least) / width) : kHistogramBuckets;
    const auto index = static_cast<std::size_t>(std::max(0.0, at));
    ++buckets[std::min(index, kHistogramBuckets - 1)].count;
  }
  return buckets;
}

}  // namespace paceline
