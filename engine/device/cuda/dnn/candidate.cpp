#include "engine/device/cuda/dnn/candidate.h"

#include <fmt/format.h>

#include "engine/core/text.h"

namespace paceline::cuda {

std::string Recipe::text() const {
  if (library == Library::cublas_lt) return fmt::format("cuBLASLt algorithm {}", engine);
  std::vector<std::string> settings;
  for (const Knob& knob : knobs) settings.push_back(fmt::format("{}={}", knob.type, knob.value));
  return fmt::format("cuDNN engine {}{}", engine,
                     settings.empty() ? "" : " (" + join(settings, " ") + ")");
}

}  // namespace paceline::cuda
