// The single values of a run record by name, for --set and --column: "gpus", "fit_seconds",
// "hardware". Taken from the list of parameters and from the structs themselves.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "results/published.h"

namespace paceline {

struct RecordKey {
  std::string name;             // "samples_per_second"; "timing.warmup_steps_excluded" if several
                                // sections have it
  std::vector<std::string> to;  // JSON pointers: {"/layout/gpus", "/parameters/gpus"}
  bool is_text = false;
  bool is_result = false;  // a measurement, which only a file can give
};

// Throws usage with the nearest names.
const RecordKey& record_key_named(std::string_view name, std::string_view option);

// "hardware=A100" into `record`. Throws usage: no such key, a result, not a number.
void set_value(Json& record, const std::string& assignment);

}  // namespace paceline
