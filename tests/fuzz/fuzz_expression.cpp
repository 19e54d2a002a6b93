// An expression from untrusted text, evaluated with a few names known.
#include <string>

#include "engine/core/error.h"
#include "sweeps/expression.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    const paceline::Expression expression(text, "fuzz");
    expression.holds([](std::string_view name) -> std::optional<paceline::Value> {
      if (name == "gpus") return std::int64_t{4};
      if (name == "learning_rate") return 0.001;
      if (name == "backend") return std::string("mpi");
      if (name == "overlap") return true;
      return std::nullopt;
    });
  } catch (const paceline::Error&) {
  }
  return 0;
}
