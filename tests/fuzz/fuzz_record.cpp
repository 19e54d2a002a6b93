// A run record from an untrusted file: checked, then everything that analysis reads is read.
#include <nlohmann/json.hpp>
#include <string_view>

#include "engine/core/error.h"
#include "results/record.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const paceline::JsonDocument document("fuzz.json", text);
    const paceline::Record record(document.value(), "fuzz.json");
    record->parameters;
    record->task_layout();
    record->workload;
    record->build();
    record->provenance.data_hash;
    record->timing.fit_seconds;
    record->flags.synthetic;
  } catch (const paceline::Error&) {
  }
  return 0;
}
