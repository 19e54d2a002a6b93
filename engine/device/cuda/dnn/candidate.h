// One way to compute a product, with a name by which a later run can build it again.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/device/cuda/products.h"

namespace paceline::cuda {

// For cuDNN an engine with its knobs; for cuBLASLt an algorithm, its 64 bytes in hexadecimal.
struct Recipe {
  enum class Library { cudnn, cublas_lt };
  struct Knob {
    std::int64_t type = 0, value = 0;
    friend auto operator<=>(const Knob&, const Knob&) = default;
  };

  Library library = Library::cudnn;
  std::int64_t engine = 0;
  std::vector<Knob> knobs;
  std::string algorithm;

  std::string text() const;  // "cuDNN engine 47 (2=3 14=1)", "cuBLASLt algorithm 66"
  friend bool operator==(const Recipe&, const Recipe&) = default;
};

// The addresses of a product's tensors, in the order of its kind: usually two factors and the
// result.
constexpr std::size_t kMostTensors = 10;
struct Operands {
  std::array<void*, kMostTensors> tensors{};
  void* workspace = nullptr;
  friend auto operator<=>(const Operands&, const Operands&) = default;
};

class Implementation {
 public:
  virtual ~Implementation() = default;
  virtual std::size_t workspace_bytes() const = 0;
  virtual void run(const Operands& operands, Stream stream) = 0;
};

struct Candidate {
  Recipe recipe;
  bool tensor_cores = false;
  bool compiles = false;  // at build time, which takes up to seconds
  // Throws if the library does not support it after all.
  std::function<std::shared_ptr<Implementation>()> build;
};

// The libraries' candidates for a product, most promising first.
struct Offered {
  int count = 0;                      // before filtering
  std::vector<Candidate> candidates;  // after filtering
  std::string refused;                // why the first one was rejected, if any was
};

}  // namespace paceline::cuda
