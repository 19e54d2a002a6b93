// A sweep spec from untrusted text: parsed, overridden and expanded, or refused by an Error.
#include <string_view>

#include "engine/core/error.h"
#include "sweeps/expansion.h"
#include "sweeps/spec.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const paceline::Spec spec = paceline::parse_spec("fuzz.json", text);
    paceline::expand(spec, 4, paceline::Unbuilt::keep);
  } catch (const paceline::Error&) {
  }
  return 0;
}
