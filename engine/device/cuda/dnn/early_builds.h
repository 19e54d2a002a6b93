// Kernels of fused convolutions, compiled on several threads before it is asked which of them is
// the fastest: each takes up to seconds.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "engine/device/cuda/dnn/candidate.h"
#include "engine/device/cuda/dnn/session.h"
#include "engine/device/cuda/fused.h"

namespace paceline::cuda {

struct EarlyBuild {
  FusedRequest request;
  std::optional<Recipe> recipe;  // of an earlier choice; none: of what is offered the first few

  // Either of these, or neither where it failed: whoever needs it then meets the error.
  std::shared_ptr<Implementation> implementation = nullptr;  // the recipe's
  std::optional<Offered> offered = std::nullopt;  // building one hands over what is there
};

// A session a thread, made on it: cuDNN's handles are not shared while they work. Kernels keep
// theirs, and run later on any one thread.
using MakeSession = std::function<std::shared_ptr<Session>(int thread)>;

void build_early(std::vector<EarlyBuild>& builds, int threads, const MakeSession& make_session,
                 int most_compiled);

}  // namespace paceline::cuda
