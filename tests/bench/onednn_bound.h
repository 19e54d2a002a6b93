// oneDNN's primitives for an operation of a network, as what ours are held against. It has the
// layout of planes that suits it best.
#pragma once

#include <memory>

#include "engine/plan/plan.h"
#include "tests/bench/bound.h"

namespace paceline::bench {

enum class Direction { forward, backward };

// The fastest over layouts; null where oneDNN has no such primitive.
std::unique_ptr<Bound> make_onednn_bound(const Operation& op, int batch, DType type,
                                         Direction direction);

// The loss of rows of logits in fp32 with its gradient: softmax and its backward.
std::unique_ptr<Bound> make_onednn_loss(std::size_t rows, std::size_t classes);

}  // namespace paceline::bench
