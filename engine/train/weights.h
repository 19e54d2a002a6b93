// Initial values of parameters, as in Keras: kernels uniform on +-sqrt(6 / (fan_in + fan_out))
// (Glorot and Bengio, AISTATS 2010), or normal where the network says so, biases 0, gamma 1.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/device/device.h"

namespace paceline {

// The safetensors format: 8 bytes of length, a JSON header, the tensors' bytes without gaps
// (github.com/huggingface/safetensors, "Format").

// Row-major. Integers in the file (counters) are converted to floats.
struct NamedTensor {
  std::string name;
  std::vector<int> shape;
  std::vector<float> values;
  std::string file_name = {};  // if the file names it otherwise

  const std::string& shown_name() const { return file_name.empty() ? name : file_name; }
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

// Equal on all ranks: a pure function of the seed and the parameter's name.
void initialise_parameters(Program& program, const Plan& plan, std::uint64_t seed);

// XXH3 over all canonical values rounded to fp32, in the order of names. Excludes running averages,
// which differ between replicas.
std::uint64_t parameter_checksum(const Program& program, const Plan& plan);

// Describes the first parameter or running average of this replica with NaN or infinite values:
// "dense/kernel holds 12 values that are not numbers (NaN or infinite)". Empty if there are none.
std::string find_not_finite(const Program& program, const Plan& plan);

// The same for one tensor's values.
std::string not_finite(const std::string& name, std::span<const double> values);

// Maps names and layouts of a weights file to Paceline's.
//
// Canonical names and layouts are those of Keras' ResNet: "conv2_block1_1_conv/kernel" (rows,
// columns, in, out), ".../bias", "conv2_block1_1_bn/gamma", "beta", "moving_mean",
// "moving_variance", "dense/kernel" (in, out). A file may have
//  - Keras' names: "conv1_conv/conv1_conv/kernel:0", below "model_weights/" in a whole model;
//  - Keras 3's numbers: "layers/conv2d_1/vars/0";
//  - torchvision's, which are timm's: "layer1.0.conv1.weight" (out, in, rows, columns),
//    "layer1.0.downsample.1.running_mean", "fc.weight" (out, in), after "module." or not;
//  - GPT-2's: "h.0.attn.c_attn.weight", "wte.weight".

struct WantedTensor {
  std::string name;        // canonical
  std::vector<int> shape;  // canonical
};

struct MappedWeights {
  // In the order and layout of `wanted`. Empty: initialise it.
  std::vector<std::vector<float>> values;
  std::vector<std::string> notes;  // what was not used as stored
};

// Layers with a matrix kernel form the head. The head is used if it fits, and otherwise ignored in
// file and network. Missing convolution biases are zero. Throws input naming `where` and every
// other tensor that is missing, superfluous or of the wrong shape.
MappedWeights map_weights(std::vector<NamedTensor> tensors, const std::vector<WantedTensor>& wanted,
                          const std::string& where);

// torchvision's name of a canonical tensor. Empty if it has none.
std::string torch_name(const std::string& canonical);

// Converts a canonical tensor to torchvision's form (outputs first), with torchvision's name, or
// "LAYER.weight" if it has none.
NamedTensor in_torch_form(NamedTensor tensor);

// Loads pretrained weights from files: Keras' HDF5 and safetensors.

// All tensors of the file. Detects the format from its first bytes. Throws input naming the file:
// not a weights file (with a guess of the content), damaged, cut short, HDF5 without support for
// it.
std::vector<NamedTensor> read_weights(const std::filesystem::path& file);

// Reads an HDF5 file in a child process first, because libhdf5 may crash on damaged files. Throws
// input in that case, and whatever read_weights() throws. Does nothing for other formats. Call it
// before this process starts threads (see run_isolated()).
void try_weights(const std::filesystem::path& file);

// Reads `file`, maps its tensors to the plan's parameters and running averages, and sets them. If
// the file has no head, the head's values stay unchanged: call initialise_parameters() first. Adds
// a line to `notes` for everything that was not used as stored. Throws input as read_weights() and
// map_weights(), before changing anything.
void load_weights(Program& program, const Plan& plan, const std::filesystem::path& file,
                  std::vector<std::string>& notes);

// Reads weights that Keras saved as HDF5: a weights file ("notop") or a whole model.

// All floating-point data sets, named by their path without the leading slash. Skips the optimizer
// state of whole models, and never follows links to other files. Throws input naming the file, also
// if the build has no HDF5.
std::vector<NamedTensor> read_keras_h5(const std::filesystem::path& file);

// Names in weights files of Keras 3: "layers/conv2d_1/vars/0" says a layer's class, its number
// within the class, and the number of its variable, whatever the layer's own name was.

// Whether the file has GPT-2's names, and gives its tensors the canonical names and layouts of
// `wanted`: Hugging Face's (inputs first) or nanoGPT's (outputs first), tied tables once, tokens
// that fill up the table zero. Returns a note, or "".
bool has_gpt2_names(const std::vector<NamedTensor>& tensors);
std::string take_gpt2_names(std::vector<NamedTensor>& tensors,
                            const std::vector<WantedTensor>& wanted);

bool has_keras_3_names(const std::vector<NamedTensor>& tensors);

// Gives tensors the canonical names of `wanted`: the n-th convolution of the file is the n-th of
// the network in Keras' order, and so on for each kind. Removes what is no weight. Returns a note,
// or "" if the file's own names say the same.
std::string take_canonical_names(std::vector<NamedTensor>& tensors,
                                 const std::vector<WantedTensor>& wanted);

}  // namespace paceline
