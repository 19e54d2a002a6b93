// The safetensors format: 8 bytes of length, a JSON header, the tensors' bytes without gaps
// (github.com/huggingface/safetensors, "Format").
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace paceline {

// Row-major. Integers in the file (counters) are converted to floats.
struct NamedTensor {
  std::string name;
  std::vector<int> shape;
  std::vector<float> values;
};

// The position of a tensor in a file.
struct TensorPlace {
  std::string name;
  std::string type;  // "F32"
  std::vector<int> shape;
  std::size_t elements = 1;
  std::size_t begin = 0, end = 0;  // bytes of the file
};
// In data order. Checks and throws as parse_safetensors().
std::vector<TensorPlace> safetensors_places(std::string_view bytes, const std::string& where);

// The header of a file, to be followed by the values of these tensors without gaps.
struct TensorSpec {
  std::string name;
  const char* type;  // "F32" or "F64"
  std::vector<int> shape;
};
std::string safetensors_beginning(const std::vector<TensorSpec>& tensors);

// Reads F64, F32, F16, BF16, I64 and I32. Checks lengths, offsets, gaps and overlaps first. Throws
// input naming `where` and the tensor.
std::vector<NamedTensor> parse_safetensors(std::string_view bytes, const std::string& where);
std::vector<NamedTensor> read_safetensors(const std::filesystem::path& file);

// Writes F32. Replaces `file` atomically.
void write_safetensors(const std::filesystem::path& file, const std::vector<NamedTensor>& tensors);

// Dimensions for messages: "[64, 3, 7, 7]".
std::string shape_text(const std::vector<int>& shape);

}  // namespace paceline
