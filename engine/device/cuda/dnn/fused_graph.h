// Fused convolutions (fused.h) as cuDNN graphs.
#pragma once

#include <memory>
#include <vector>

#include "engine/device/cuda/dnn/candidate.h"
#include "engine/device/cuda/dnn/choice.h"
#include "engine/device/cuda/dnn/filter.h"
#include "engine/device/cuda/dnn/session.h"
#include "engine/device/cuda/fused.h"

namespace paceline::cuda {

Operands make_operands(const FusedRequest& request, const FusedOperands& operands);
FusedOperands make_operands(const FusedRequest& request, const Operands& operands);
std::vector<TensorSize> list_sizes(const FusedRequest& request);

// As for convolutions (convolution.h). Both throw internal for a meaningless request.
Offered fused_offer(const std::shared_ptr<Session>& session, const FusedRequest& request,
                    const EngineRules& rules);
std::shared_ptr<Implementation> build_fused(const std::shared_ptr<Session>& session,
                                            const FusedRequest& request, const EngineRules& rules,
                                            const Recipe& recipe);

}  // namespace paceline::cuda
