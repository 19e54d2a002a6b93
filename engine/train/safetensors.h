// The safetensors format: 8 bytes of length, a JSON header, the tensors' bytes without gaps
// (github.com/huggingface/safetensors, "Format").
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace paceline {

// Row-major. Integers of a file (counters) have become floats too.
struct NamedTensor {
  std::string name;
  std::vector<int> shape;
  std::vector<float> values;
};

// Where a tensor stands in a file.
struct TensorPlace {
  std::string name;
  std::string type;  // "F32"
  std::vector<int> shape;
  std::size_t elements = 1;
  std::size_t begin = 0, end = 0;  // bytes of the file
};
// In the order of the data. Checks and throws as parse_safetensors().
std::vector<TensorPlace> safetensors_places(std::string_view bytes, const std::string& where);

// The beginning of a file, after which the values of these tensors follow without gaps.
struct TensorSpec {
  std::string name;
  const char* type;  // "F32" or "F64"
  std::vector<int> shape;
};
std::string safetensors_beginning(const std::vector<TensorSpec>& tensors);

// F64, F32, F16, BF16, I64 and I32. Lengths, offsets, gaps and overlaps are checked before anything
// is taken. Throws input naming `where` and the tensor.
std::vector<NamedTensor> parse_safetensors(std::string_view bytes, const std::string& where);
std::vector<NamedTensor> read_safetensors(const std::filesystem::path& file);

// As F32, whole or not at all; `file` is replaced.
void write_safetensors(const std::filesystem::path& file, const std::vector<NamedTensor>& tensors);

// A dimension list for messages: "[64, 3, 7, 7]".
std::string shape_text(const std::vector<int>& shape);

}  // namespace paceline
