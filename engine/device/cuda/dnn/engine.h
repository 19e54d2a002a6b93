// From an operation graph to engines and plans, the same for every graph.
#pragma once

#include <memory>
#include <vector>

#include "engine/device/cuda/dnn/candidate.h"
#include "engine/device/cuda/dnn/filter.h"
#include "engine/device/cuda/dnn/graph.h"

namespace paceline::cuda {

// The engines of cuDNN's heuristics (mode A, then the fallback list), each with its knobs, without
// duplicates, filtered by the rules.
Offered offered_engines(const std::shared_ptr<const OperationGraph>& graph,
                        const EngineRules& rules);

// The plan for a recipe of an earlier choice. Throws if it is not supported or not admitted here.
std::shared_ptr<Implementation> build_engine(const std::shared_ptr<const OperationGraph>& graph,
                                             const EngineRules& rules, const Recipe& recipe);

}  // namespace paceline::cuda
