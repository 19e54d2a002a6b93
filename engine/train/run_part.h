// What a run does, for meters of the machine.
#pragma once

#include <functional>

namespace paceline {

enum class RunPart { other, training, evaluation, checkpoint };

// Called whenever a replica enters a part; the work of the part before has ended on its device.
using RunPartListener = std::function<void(RunPart)>;

}  // namespace paceline
