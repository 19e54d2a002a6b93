// A convolution as a cuDNN graph, and cuDNN's engines for it.
#pragma once

#include <memory>
#include <vector>

#include "engine/device/cuda/dnn/candidate.h"
#include "engine/device/cuda/dnn/filter.h"
#include "engine/device/cuda/dnn/session.h"

namespace paceline::cuda {

// Maps a request's tensors to a product's operands: the first and second input of the pass, and its
// output.
Operands make_operands(ConvPass pass, const ConvOperands& operands);

// Heuristics mode A, then the fallback list. Throws cuDNN's error if it rejects the graph.
Offered cudnn_offer(const std::shared_ptr<Session>& session, const ConvRequest& request,
                    const EngineRules& rules);

// The plan for a recipe of an earlier choice. Throws if it is not supported or not admitted here.
std::shared_ptr<Implementation> build_convolution(const std::shared_ptr<Session>& session,
                                                  const ConvRequest& request,
                                                  const EngineRules& rules, const Recipe& recipe);

}  // namespace paceline::cuda
