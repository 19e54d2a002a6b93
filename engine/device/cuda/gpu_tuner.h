// Tries algorithms on the card itself; see dnn/tuning.h.
#pragma once

#include <memory>

#include "engine/device/cuda/dnn/tuning.h"
#include "engine/device/cuda/runtime.h"

namespace paceline::cuda {

// `runtime` outlives the tuner. `card` is the card's name.
std::unique_ptr<Tuner> make_gpu_tuner(Runtime& runtime, std::string card);

}  // namespace paceline::cuda
