// Scalars of TensorBoard event files.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "engine/core/dtype.h"
#include "engine/core/error.h"
#include "engine/input/formats/tfrecord.h"
#include "engine/train/events/event.pb.h"
#include "run/program_run.h"

namespace paceline {

namespace {

namespace fs = std::filesystem;

// From tensorflow/core/framework/types.proto.
struct TensorType {
  enum {
    kFloat = 1,
    kDouble = 2,
    kInt32 = 3,
    kUint8 = 4,
    kInt16 = 5,
    kInt8 = 6,
    kInt64 = 9,
    kBool = 10,
    kBfloat16 = 14,
    kUint16 = 17,
    kHalf = 19,
    kUint32 = 22,
    kUint64 = 23
  };
};

double from_bits(int type, std::uint16_t bits) {
  float number = 0;
  type == TensorType::kHalf ? from_f16(&bits, &number, 1) : from_bf16(&bits, &number, 1);
  return static_cast<double>(number);
}

// The bytes of a scalar, as this machine and all that write such files order them.
template <typename T>
std::optional<T> as(const std::string& bytes) {
  if (bytes.size() != sizeof(T)) return std::nullopt;
  T value{};
  std::copy_n(bytes.data(), sizeof value, reinterpret_cast<char*>(&value));
  return value;
}

template <typename T>
std::string scalar_text(const std::optional<T>& value) {
  return value ? fmt::format("{}", *value) : "a tensor that is not a scalar";
}

template <typename Values>
auto only_value(const Values& values) {
  using T = std::decay_t<decltype(values.Get(0))>;
  return values.size() == 1 ? std::optional<T>(values.Get(0)) : std::nullopt;
}

std::string text_of_content(int type, const std::string& bytes) {
  switch (type) {
    case TensorType::kFloat:
      return scalar_text(as<float>(bytes));
    case TensorType::kDouble:
      return scalar_text(as<double>(bytes));
    case TensorType::kInt32:
      return scalar_text(as<std::int32_t>(bytes));
    case TensorType::kUint8:
    case TensorType::kBool:
      return scalar_text(as<std::uint8_t>(bytes));
    case TensorType::kInt16:
      return scalar_text(as<std::int16_t>(bytes));
    case TensorType::kInt8:
      return scalar_text(as<std::int8_t>(bytes));
    case TensorType::kInt64:
      return scalar_text(as<std::int64_t>(bytes));
    case TensorType::kUint16:
      return scalar_text(as<std::uint16_t>(bytes));
    case TensorType::kUint32:
      return scalar_text(as<std::uint32_t>(bytes));
    case TensorType::kUint64:
      return scalar_text(as<std::uint64_t>(bytes));
    case TensorType::kHalf:
    case TensorType::kBfloat16: {
      const auto bits = as<std::uint16_t>(bytes);
      return bits ? fmt::format("{}", from_bits(type, *bits)) : scalar_text(bits);
    }
    default:
      return fmt::format("a tensor of type {}", type);
  }
}

std::string text_of_tensor(const wire::Tensor& tensor) {
  const int type = tensor.dtype();
  if (!tensor.tensor_content().empty()) return text_of_content(type, tensor.tensor_content());
  switch (type) {
    case TensorType::kFloat:
      return scalar_text(only_value(tensor.float_val()));
    case TensorType::kDouble:
      return scalar_text(only_value(tensor.double_val()));
    case TensorType::kInt64:
      return scalar_text(only_value(tensor.int64_val()));
    case TensorType::kBool:
      return tensor.bool_val_size() == 1 ? (tensor.bool_val(0) ? "1" : "0")
                                         : scalar_text(std::optional<int>());
    case TensorType::kUint32:
      return scalar_text(only_value(tensor.uint32_val()));
    case TensorType::kUint64:
      return scalar_text(only_value(tensor.uint64_val()));
    case TensorType::kHalf:
    case TensorType::kBfloat16:
      return tensor.half_val_size() == 1
                 ? fmt::format("{}",
                               from_bits(type, static_cast<std::uint16_t>(tensor.half_val(0))))
                 : scalar_text(std::optional<int>());
    case TensorType::kInt32:
    case TensorType::kInt16:
    case TensorType::kInt8:
    case TensorType::kUint8:
    case TensorType::kUint16:
      return scalar_text(only_value(tensor.int_val()));
    default:
      return fmt::format("a tensor of type {}", type);
  }
}

void add_scalars_of_file(const fs::path& file, const std::string& tag,
                         std::vector<ScalarEvent>& scalars) {
  const TfRecordFile records(file, 0, TfRecordFile::OnDamage::keep_what_precedes);
  if (!records.damage().empty() && !records.damage().starts_with("is cut short")) {
    throw input_error(records.damage(), records.where_end(), "what follows is lost; run it again");
  }
  std::string data;
  for (std::size_t i = 0; i < records.records(); ++i) {
    records.read(i, data);
    wire::Event event;
    if (!event.ParseFromString(data)) continue;
    for (const auto& value : event.summary().value()) {
      if (value.tag() != tag) continue;
      const bool is_plain = value.value_case() == wire::Summary::Value::kSimpleValue;
      scalars.push_back({event.step(), is_plain ? fmt::format("{}", value.simple_value())
                                                : text_of_tensor(value.tensor())});
    }
  }
}

}  // namespace

std::vector<ScalarEvent> scalar_events(const fs::path& place, const std::string& tag) {
  std::vector<fs::path> files;
  if (fs::is_directory(place)) {
    for (const auto& entry : fs::recursive_directory_iterator(place)) {
      const bool events = entry.path().filename().string().find("tfevents") != std::string::npos;
      if (events && entry.is_regular_file()) files.push_back(entry.path());
    }
    std::ranges::sort(files);
  } else {
    files.push_back(place);
  }
  std::vector<ScalarEvent> scalars;
  for (const fs::path& file : files) add_scalars_of_file(file, tag, scalars);
  std::ranges::stable_sort(scalars, [](const auto& a, const auto& b) { return a.step < b.step; });
  return scalars;
}

}  // namespace paceline
