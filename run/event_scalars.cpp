// Scalars of TensorBoard event files.
#include <fmt/format.h>
#include <google/protobuf/repeated_field.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <string>
#include <vector>

#include "engine/core/dtype.h"
#include "engine/core/error.h"
#include "engine/input/formats/tfrecord.h"
#include "engine/train/events/event.pb.h"
#include "run/program_run.h"

namespace paceline {

namespace {

namespace fs = std::filesystem;

constexpr char kNoScalar[] = "a tensor that is not a scalar";

template <typename T>
std::string text_of_number(T value) {
  return fmt::format("{}", +value);  // a bool and an int8, too, as a number
}

template <typename T, void (*widen)(const std::uint16_t*, float*, std::size_t)>
std::string text_of_bits(T stored) {
  const auto bits = static_cast<std::uint16_t>(stored);
  float number = 0;
  widen(&bits, &number, 1);
  return fmt::format("{}", static_cast<double>(number));
}

// The bytes of a scalar, as this machine and all that write such files order them.
template <typename T, std::string (*to_text)(T) = text_of_number<T>>
std::string text_of_content(const std::string& bytes) {
  T value{};
  if (bytes.size() != sizeof value) return kNoScalar;
  std::copy_n(bytes.data(), sizeof value, reinterpret_cast<char*>(&value));
  return to_text(value);
}

template <typename T>
using Field = const google::protobuf::RepeatedField<T>& (wire::Tensor::*)() const;

template <typename T, Field<T> field, std::string (*to_text)(T) = text_of_number<T>>
std::string text_of_field(const wire::Tensor& tensor) {
  const auto& values = (tensor.*field)();
  return values.size() == 1 ? to_text(values.Get(0)) : kNoScalar;
}

struct TensorType {
  int type;  // of tensorflow/core/framework/types.proto
  std::string (*of_content)(const std::string& bytes);
  std::string (*of_field)(const wire::Tensor& tensor);
};

constexpr auto kOfInts = &text_of_field<std::int32_t, &wire::Tensor::int_val>;

constexpr TensorType kTensorTypes[] = {
    {1, text_of_content<float>, text_of_field<float, &wire::Tensor::float_val>},
    {2, text_of_content<double>, text_of_field<double, &wire::Tensor::double_val>},
    {3, text_of_content<std::int32_t>, kOfInts},
    {4, text_of_content<std::uint8_t>, kOfInts},
    {5, text_of_content<std::int16_t>, kOfInts},
    {6, text_of_content<std::int8_t>, kOfInts},
    {9, text_of_content<std::int64_t>, text_of_field<std::int64_t, &wire::Tensor::int64_val>},
    {10, text_of_content<std::uint8_t>, text_of_field<bool, &wire::Tensor::bool_val>},
    {14, text_of_content<std::uint16_t, text_of_bits<std::uint16_t, from_bf16>>,
     text_of_field<std::int32_t, &wire::Tensor::half_val, text_of_bits<std::int32_t, from_bf16>>},
    {17, text_of_content<std::uint16_t>, kOfInts},
    {19, text_of_content<std::uint16_t, text_of_bits<std::uint16_t, from_f16>>,
     text_of_field<std::int32_t, &wire::Tensor::half_val, text_of_bits<std::int32_t, from_f16>>},
    {22, text_of_content<std::uint32_t>, text_of_field<std::uint32_t, &wire::Tensor::uint32_val>},
    {23, text_of_content<std::uint64_t>, text_of_field<std::uint64_t, &wire::Tensor::uint64_val>}};

std::string text_of_tensor(const wire::Tensor& tensor) {
  const auto type = std::ranges::find(kTensorTypes, tensor.dtype(), &TensorType::type);
  if (type == std::end(kTensorTypes)) return fmt::format("a tensor of type {}", tensor.dtype());
  const std::string& bytes = tensor.tensor_content();
  return bytes.empty() ? type->of_field(tensor) : type->of_content(bytes);
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
