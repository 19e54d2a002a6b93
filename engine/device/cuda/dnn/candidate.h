// One way to compute a product, named so that it can be built again in another run.
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

// Of cuDNN an engine with its knobs; of cuBLASLt an algorithm, its 64 bytes in hexadecimal.
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

// Where a product's tensors lie on the card, in the order in which its kind lists them: the two
// factors and the result of most.
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
  bool compiles = false;  // when it is built, which takes up to seconds
  // Throws where the library does not support it after all.
  std::function<std::shared_ptr<Implementation>()> build;
};

// What the libraries have for a product, the most promising first.
struct Offered {
  int count = 0;                      // before those that may not be used were left out
  std::vector<Candidate> candidates;  // the others
  std::string refused;                // why the first was left out, if one was
};

}  // namespace paceline::cuda
