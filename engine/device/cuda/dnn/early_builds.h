// Compiles kernels of fused convolutions on several threads, before one of them is chosen. Each
// takes up to seconds.
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
  std::optional<Recipe> recipe;  // of an earlier choice; empty: the first few that are offered

  // One of these is set, or neither after a failure; whoever needs it then gets the error.
  std::shared_ptr<Implementation> implementation = nullptr;  // the recipe's
  // Building a candidate returns what exists already.
  std::optional<Offered> offered = std::nullopt;
};

// Creates a session on each thread, because concurrent work cannot share cuDNN's handles. Kernels
// keep their handle, and later run on any one thread.
using MakeSession = std::function<std::shared_ptr<Session>(int thread)>;

void build_early(std::vector<EarlyBuild>& builds, int threads, const MakeSession& make_session,
                 int most_compiled);

}  // namespace paceline::cuda
