// Which of several ways computes a product, decided once.
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

  std::string request;  // text_of(request)
  Recipe recipe;
  bool tensor_cores = false;
  std::size_t workspace_bytes = 0;
  int offered = 0;  // by the libraries
  int usable = 0;   // of these: admitted, supported, little enough workspace, did not fail
  // Medians; 0 where nothing was measured, or there is no runner-up.
  double seconds = 0, runner_up_seconds = 0;
  std::string runner_up;  // its recipe's text
  // Of the same work done another way, where there is one and it was measured.
  double baseline_seconds = 0;
  Origin origin = Origin::heuristic;
};

struct ChoiceRules {
  std::size_t workspace_limit = 0;  // bytes
  bool measures = false;            // the fastest; else the first that can be used
  int most_compiled = 3;            // of those that compile when they are built, to be measured
};

// Of a product's tensors, in the order of Operands. Bits are u8, eight an element.
struct TensorSize {
  std::size_t elements = 0;
  DType type = DType::f32;
};

// Another way to do what a product does, on the same operands.
struct Baseline {
  using Work = std::function<void(const Operands&, Stream)>;
  Work apart;   // does all of it
  Work behind;  // what the candidates need behind them
};

struct Chosen {
  Choice choice;
  std::shared_ptr<Implementation> implementation;
};

// Without a tuner (null) nothing is captured or measured, nor where the card lacks the memory for
// it, which the log says. Throws usage where no candidate can be used.
Chosen choose(const std::string& request, const Offered& offered,
              const std::vector<TensorSize>& sizes, const ChoiceRules& rules, Tuner* tuner,
              const Baseline* baseline = nullptr);

}  // namespace paceline::cuda
