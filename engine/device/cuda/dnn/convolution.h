// A convolution as a graph of cuDNN's, and the engines that cuDNN offers for it.
#pragma once

#include <memory>
#include <vector>

#include "engine/device/cuda/dnn/candidate.h"
#include "engine/device/cuda/dnn/filter.h"
#include "engine/device/cuda/dnn/session.h"

namespace paceline::cuda {

// How a request's tensors take part in a product: what a pass reads first and second, and writes.
Operands operands_of(ConvPass pass, const ConvOperands& operands);

// Heuristics mode A, then the fallback list. Throws what cuDNN says where it refuses the graph.
Offered cudnn_offer(const std::shared_ptr<Session>& session, const ConvRequest& request,
                    const EngineRules& rules);

// The plan of a recipe, from an earlier choice. Throws where it is not supported here, or not
// admitted.
std::shared_ptr<Implementation> build_convolution(const std::shared_ptr<Session>& session,
                                                  const ConvRequest& request,
                                                  const EngineRules& rules, const Recipe& recipe);

}  // namespace paceline::cuda
