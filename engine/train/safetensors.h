// The safetensors format: 8 bytes of length, a JSON header, the tensors' bytes without gaps
// (github.com/huggingface/safetensors, "Format").
#pragma once

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

// F64, F32, F16, BF16, I64 and I32. Lengths, offsets, gaps and overlaps are checked before anything
// is taken. Throws input naming `where` and the tensor.
std::vector<NamedTensor> parse_safetensors(std::string_view bytes, const std::string& where);
std::vector<NamedTensor> read_safetensors(const std::filesystem::path& file);

// As F32, whole or not at all; `file` is replaced.
void write_safetensors(const std::filesystem::path& file, const std::vector<NamedTensor>& tensors);

// A dimension list for messages: "[64, 3, 7, 7]".
std::string shape_text(const std::vector<int>& shape);

}  // namespace paceline
