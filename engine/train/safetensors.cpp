#include "engine/train/safetensors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/half.h"
#include "engine/core/json.h"

namespace paceline {

static_assert(std::endian::native == std::endian::little, "values are copied as they stand");

namespace {

constexpr std::size_t kLengthBytes = 8;
constexpr std::size_t kMostHeaderBytes = std::size_t{8} << 20;
constexpr std::size_t kMostFileBytes = std::size_t{4} << 30;
constexpr std::size_t kMostDimensions = 8;
constexpr char kMetadata[] = "__metadata__";

struct Entry {
  NamedTensor tensor;  // without values
  std::string type;
  std::size_t elements = 1, begin = 0, end = 0;  // bytes, from the end of the header
};

std::optional<std::size_t> size_of_type(const std::string& type) {
  if (type == "F64" || type == "I64") return 8;
  if (type == "F32" || type == "I32") return 4;
  if (type == "F16" || type == "BF16") return 2;
  return std::nullopt;
}

Error bad(const std::string& what, const std::string& where) {
  return {ErrorKind::input, what, where, "get the file again"};
}

Entry read_entry(const std::string& name, const Json& json, const std::string& where) {
  const auto wrong = [&](const char* what) { return bad("tensor " + name + " " + what, where); };
  Entry entry;
  entry.tensor.name = name;
  if (!json.is_object() || !json.contains("dtype") || !json["dtype"].is_string() ||
      !json.contains("shape") || !json["shape"].is_array() || !json.contains("data_offsets") ||
      !json["data_offsets"].is_array() || json["data_offsets"].size() != 2) {
    throw wrong("has no dtype, shape and data_offsets");
  }
  entry.type = json["dtype"].get<std::string>();
  if (!size_of_type(entry.type)) {
    throw wrong(("is of type " + entry.type + ", which is not read here").c_str());
  }
  if (json["shape"].size() > kMostDimensions) throw wrong("has too many dimensions");
  for (const Json& extent : json["shape"]) {
    if (!extent.is_number_unsigned() ||
        extent.get<std::uint64_t>() > std::numeric_limits<int>::max()) {
      throw wrong("has a dimension that is none");
    }
    entry.tensor.shape.push_back(extent.get<int>());
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
void check_layout(std::vector<Entry>& entries, std::size_t data_bytes, const std::string& where) {
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
  });
  std::size_t at = 0;
  for (const Entry& entry : entries) {
    const std::string& name = entry.tensor.name;
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
  std::vector<float> floats;
  for (const T value : copied<T>(bytes)) floats.push_back(static_cast<float>(value));
  return floats;
}

std::vector<float> values_of(const std::string& type, std::string_view bytes) {
  if (type == "F32") return copied<float>(bytes);
  if (type == "F64") return converted<double>(bytes);
  if (type == "I64") return converted<std::int64_t>(bytes);
  if (type == "I32") return converted<std::int32_t>(bytes);
  const auto halves = copied<std::uint16_t>(bytes);
  std::vector<float> floats(halves.size());
  (type == "F16" ? from_f16 : from_bf16)(halves.data(), floats.data(), halves.size());
  return floats;
}

std::string header_of(const std::vector<NamedTensor>& tensors) {
  Json header = Json::object();
  std::size_t at = 0;
  for (const NamedTensor& tensor : tensors) {
    const std::size_t end = at + tensor.values.size() * sizeof(float);
    header[tensor.name] = {{"dtype", "F32"}, {"shape", tensor.shape}, {"data_offsets", {at, end}}};
    at = end;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');  // so that values are aligned
  return text;
}

}  // namespace

std::string shape_text(const std::vector<int>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

std::vector<NamedTensor> parse_safetensors(std::string_view bytes, const std::string& where) {
  std::uint64_t header_bytes = 0;
  if (bytes.size() < kLengthBytes) throw bad("is too short for a safetensors file", where);
  std::memcpy(&header_bytes, bytes.data(), kLengthBytes);
  if (header_bytes > bytes.size() - kLengthBytes || header_bytes > kMostHeaderBytes) {
    throw bad("is no safetensors file, or cut short: the length of its header is " +
                  std::to_string(header_bytes),
              where);
  }
  const JsonDocument header(where, bytes.substr(kLengthBytes, header_bytes));
  if (!header.value().is_object()) throw bad("has a header that is no JSON object", where);
  const std::string_view data = bytes.substr(kLengthBytes + header_bytes);
  std::vector<Entry> entries;
  for (const auto& [name, json] : header.value().items()) {
    if (name != kMetadata) entries.push_back(read_entry(name, json, where));
  }
  check_layout(entries, data.size(), where);
  std::vector<NamedTensor> tensors;
  for (Entry& entry : entries) {
    entry.tensor.values = values_of(entry.type, data.substr(entry.begin, entry.end - entry.begin));
    tensors.push_back(std::move(entry.tensor));
  }
  return tensors;
}

std::vector<NamedTensor> read_safetensors(const std::filesystem::path& file) {
  return parse_safetensors(read_text(file, kMostFileBytes), file.string());
}

void write_safetensors(const std::filesystem::path& file, const std::vector<NamedTensor>& tensors) {
  const std::string header = header_of(tensors);
  const std::uint64_t header_bytes = header.size();
  std::string bytes(reinterpret_cast<const char*>(&header_bytes), kLengthBytes);
  bytes += header;
  for (const NamedTensor& tensor : tensors) {
    bytes.append(reinterpret_cast<const char*>(tensor.values.data()),
                 tensor.values.size() * sizeof(float));
  }
  replace_file(file, bytes);
}

}  // namespace paceline
