// A run record from an untrusted file: checked, read, and made a run of a study.
#include <nlohmann/json.hpp>
#include <string_view>

#include "analysis/evidence/run.h"
#include "engine/core/error.h"
#include "results/store.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const paceline::JsonDocument document("fuzz.json", text);
    const paceline::Record record(document.value(), "fuzz.json");
    record->task_layout();
    record->build();
    paceline::make_run(record);
  } catch (const paceline::Error&) {
  }
  return 0;
}
