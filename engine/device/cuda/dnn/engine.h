// From a finished operation graph to engines and plans: the same for every graph.
#pragma once

#include <memory>
#include <vector>

#include "engine/device/cuda/dnn/candidate.h"
#include "engine/device/cuda/dnn/filter.h"
#include "engine/device/cuda/dnn/graph.h"

namespace paceline::cuda {

// What cuDNN's heuristics offer, mode A first and then the fallback list, each engine with its
// knobs once, as far as the rules admit it.
Offered offered_engines(const std::shared_ptr<const OperationGraph>& graph,
                        const EngineRules& rules);

// The plan of a recipe, from an earlier choice. Throws where it is not supported here, or not
// admitted.
std::shared_ptr<Implementation> build_engine(const std::shared_ptr<const OperationGraph>& graph,
                                             const EngineRules& rules, const Recipe& recipe);

}  // namespace paceline::cuda
