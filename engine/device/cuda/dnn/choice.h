// Chooses one of several ways to compute a product.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/device/cuda/dnn/candidate.h"
#include "engine/device/cuda/dnn/tuning.h"

namespace paceline::cuda {

struct Choice {
  enum class Origin { heuristic, measured, file };

  std::string request;  // to_text(request)
  Recipe recipe;
  bool tensor_cores = false;
  std::size_t workspace_bytes = 0;
  int offered = 0;  // by the libraries
  // Of these: admitted, supported, with small enough workspace, and without failure.
  int usable = 0;
  // Medians. 0 if nothing was measured, or without a runner-up.
  double seconds = 0, runner_up_seconds = 0;
  std::string runner_up;  // text of its recipe
  // The time of the alternative that does the same work, if it was measured.
  double baseline_seconds = 0;
  Origin origin = Origin::heuristic;
};

struct ChoiceRules {
  std::size_t workspace_limit = 0;  // bytes
  bool measures = false;            // chooses the fastest; else the first usable one
  int most_compiled = 3;            // how many candidates that compile at build time to measure
  // Told of a candidate that broke the GPU's context, after which this process can compute nothing.
  // True if later processes will leave it out.
  std::function<bool(const Recipe&)> broke = [](const Recipe&) { return false; };
};

// A product's tensor, in the order of Operands. Bits count as u8, eight per element.
struct TensorSize {
  std::size_t elements = 0;
  DType type = DType::f32;
};

// An alternative that does the work of a product, on the same operands.
struct Baseline {
  using Work = std::function<void(const Operands&, Stream)>;
  Work apart;   // does all the work
  Work behind;  // work that candidates need in addition
};

struct Chosen {
  Choice choice;
  std::shared_ptr<Implementation> implementation;
};

// Captures and measures nothing without a tuner (null), or if GPU memory is too small, which is
// logged. Throws usage if no candidate is usable.
Chosen choose(const std::string& request, const Offered& offered,
              const std::vector<TensorSize>& sizes, const ChoiceRules& rules, Tuner* tuner,
              const Baseline* baseline = nullptr);

}  // namespace paceline::cuda
