#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "engine/core/dtype.h"
#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/json.h"
#include "engine/core/text.h"
#include "engine/train/weights.h"

namespace paceline {

static_assert(std::endian::native == std::endian::little, "values are copied as they stand");

namespace {

constexpr std::size_t kLengthBytes = 8;
constexpr std::size_t kMostHeaderBytes = std::size_t{8} << 20;
constexpr std::size_t kMostFileBytes = std::size_t{4} << 30;
constexpr std::size_t kMostDimensions = 8;
constexpr char kMetadata[] = "__metadata__";

std::optional<std::size_t> size_of_type(const std::string& type) {
  if (type == "F64" || type == "I64") return 8;
  if (type == "F32" || type == "I32") return 4;
  if (type == "F16" || type == "BF16") return 2;
  return std::nullopt;
}

Error bad(const std::string& what, const std::string& where) {
  return {ErrorKind::input, what, where, "get the file again"};
}

// Its bytes are counted from the end of the header.
TensorPlace read_place(const std::string& name, const Json& json, const std::string& where) {
  const auto wrong = [&](const char* what) { return bad("tensor " + name + " " + what, where); };
  TensorPlace entry;
  entry.name = name;
  if (!json.is_object() || !json.contains("dtype") || !json["dtype"].is_string() ||
      !json.contains("shape") || !json["shape"].is_array() || !json.contains("data_offsets") ||
      !json["data_offsets"].is_array() || json["data_offsets"].size() != 2) {
    throw wrong("has no dtype, shape and data_offsets");
  }
  entry.type = json["dtype"].get<std::string>();
  if (!size_of_type(entry.type)) {
    throw input_error(fmt::format("tensor {} has the unsupported type {}", name, entry.type), where,
                      "convert it to F32");
  }
  if (json["shape"].size() > kMostDimensions) throw wrong("has too many dimensions");
  for (const Json& extent : json["shape"]) {
    if (!extent.is_number_unsigned() ||
        extent.get<std::uint64_t>() > std::numeric_limits<int>::max()) {
      throw wrong("has a dimension that is none");
    }
    entry.shape.push_back(extent.get<int>());
    const auto factor = extent.get<std::size_t>();
    if (factor != 0 && entry.elements > kMostFileBytes / factor) throw wrong("is too large");
    entry.elements *= factor;
  }
  for (const Json& offset : json["data_offsets"]) {
    if (!offset.is_number_unsigned()) throw wrong("has an offset that is none");
  }
  entry.begin = json["data_offsets"][0].get<std::size_t>();
  entry.end = json["data_offsets"][1].get<std::size_t>();
  return entry;
}

// Without gaps and overlaps from the header to the end, as the format demands.
void check_layout(std::vector<TensorPlace>& entries, std::size_t data_bytes,
                  const std::string& where) {
  std::ranges::sort(entries, [](const TensorPlace& a, const TensorPlace& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
  });
  std::size_t at = 0;
  for (const TensorPlace& entry : entries) {
    const std::string& name = entry.name;
    if (entry.begin != at) {
      throw bad(
          fmt::format("tensor {} begins at byte {} of the data, not at {}", name, entry.begin, at),
          where);
    }
    if (entry.end < entry.begin || entry.end > data_bytes) {
      throw bad(fmt::format("tensor {} ends at byte {}, the data at {}: the file is cut short or "
                            "damaged",
                            name, entry.end, data_bytes),
                where);
    }
    if (entry.end - entry.begin != entry.elements * *size_of_type(entry.type)) {
      throw bad(fmt::format("tensor {} has {} bytes for {} values of type {}", name,
                            entry.end - entry.begin, entry.elements, entry.type),
                where);
    }
    at = entry.end;
  }
  if (at != data_bytes) {
    throw bad(fmt::format("has {} bytes of data behind the last tensor", data_bytes - at), where);
  }
}

template <typename T>
std::vector<T> copied(std::string_view bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

template <typename T>
std::vector<float> converted(std::string_view bytes) {
  return mapped(copied<T>(bytes), [](T value) { return static_cast<float>(value); });
}

std::vector<float> decode_values(const std::string& type, std::string_view bytes) {
  if (type == "F32") return copied<float>(bytes);
  if (type == "F64") return converted<double>(bytes);
  if (type == "I64") return converted<std::int64_t>(bytes);
  if (type == "I32") return converted<std::int32_t>(bytes);
  const auto halves = copied<std::uint16_t>(bytes);
  std::vector<float> floats(halves.size());
  (type == "F16" ? from_f16 : from_bf16)(halves.data(), floats.data(), halves.size());
  return floats;
}

}  // namespace

std::string shape_text(const std::vector<int>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

std::vector<TensorPlace> safetensors_places(std::string_view bytes, const std::string& where) {
  std::uint64_t header_bytes = 0;
  if (bytes.size() < kLengthBytes) throw bad("is too short for a safetensors file", where);
  std::memcpy(&header_bytes, bytes.data(), kLengthBytes);
  if (header_bytes > bytes.size() - kLengthBytes || header_bytes > kMostHeaderBytes) {
    throw bad("is not a safetensors file, or cut short: the length of its header is " +
                  std::to_string(header_bytes),
              where);
  }
  const JsonDocument header(where, bytes.substr(kLengthBytes, header_bytes));
  if (!header.value().is_object()) throw bad("has a header that is no JSON object", where);
  const std::size_t data = kLengthBytes + header_bytes;
  std::vector<TensorPlace> places;
  for (const auto& [name, json] : header.value().items()) {
    if (name != kMetadata) places.push_back(read_place(name, json, where));
  }
  check_layout(places, bytes.size() - data, where);
  for (TensorPlace& place : places) {
    place.begin += data;
    place.end += data;
  }
  return places;
}

std::string safetensors_beginning(const std::vector<TensorSpec>& tensors) {
  Json header = Json::object();
  std::size_t at = 0;
  for (const TensorSpec& tensor : tensors) {
    std::size_t bytes = *size_of_type(tensor.type);
    for (const int extent : tensor.shape) bytes *= static_cast<std::size_t>(extent);
    header[tensor.name] = {
        {"dtype", tensor.type}, {"shape", tensor.shape}, {"data_offsets", {at, at + bytes}}};
    at += bytes;
  }
  std::string text = json_text(header);
  text.resize((text.size() + 7) / 8 * 8, ' ');  // so that values are aligned
  const std::uint64_t header_bytes = text.size();
  return std::string(reinterpret_cast<const char*>(&header_bytes), kLengthBytes) + text;
}

std::vector<NamedTensor> parse_safetensors(std::string_view bytes, const std::string& where) {
  std::vector<NamedTensor> tensors;
  for (TensorPlace& place : safetensors_places(bytes, where)) {
    tensors.push_back(
        {std::move(place.name), std::move(place.shape),
         decode_values(place.type, bytes.substr(place.begin, place.end - place.begin))});
  }
  return tensors;
}

std::vector<NamedTensor> read_safetensors(const std::filesystem::path& file) {
  return parse_safetensors(read_text(file, kMostFileBytes), file.string());
}

void write_safetensors(const std::filesystem::path& file, const std::vector<NamedTensor>& tensors) {
  std::vector<TensorSpec> specs;
  for (const NamedTensor& tensor : tensors) specs.push_back({tensor.name, "F32", tensor.shape});
  std::string bytes = safetensors_beginning(specs);
  for (const NamedTensor& tensor : tensors) {
    bytes.append(reinterpret_cast<const char*>(tensor.values.data()),
                 tensor.values.size() * sizeof(float));
  }
  replace_file(file, bytes);
}

}  // namespace paceline
