// A convolution as a graph of cuDNN's, and the engines that cuDNN offers for it.
#pragma once

#include <memory>
#include <vector>

#include "engine/device/cuda/products/candidate.h"
#include "engine/device/cuda/products/filter.h"
#include "engine/device/cuda/products/session.h"

namespace paceline::cuda {

// How a request's tensors take part in a product: what a pass reads first and second, and writes.
Operands operands_of(ConvPass pass, const ConvOperands& operands);

struct ConvCandidates {
  int offered = 0;                    // by the heuristics, before the filter
  std::vector<Candidate> candidates;  // in the order of the heuristics
  std::string refused;                // why the first of the others was not taken
};

// Heuristics mode A, then the fallback list. Throws what cuDNN says where it refuses the graph.
ConvCandidates cudnn_candidates(const std::shared_ptr<Session>& session, const ConvRequest& request,
                                const EngineRules& rules);

// The plan of a recipe, from an earlier choice. Throws where it is not supported here.
std::shared_ptr<Implementation> build_convolution(const std::shared_ptr<Session>& session,
                                                  const ConvRequest& request, const Recipe& recipe);

}  // namespace paceline::cuda
