// Records failed training runs: what was requested, and why it ended.
#pragma once

#include <filesystem>
#include <string>

#include "run/training_run.h"

namespace paceline {

// "run.failed.json" next to "run.json" (reserved for a later success), or the first free one of
// "run.failed.2.json", ...
std::filesystem::path failed_record_name(const std::filesystem::path& record);

// With --record, writes a record of status failed with `line` as reason. Not for wrong usage or
// runs stopped by request (`code` 64, 75, 128 and above), nor if a record could not have been
// written there. A failure to write it is only a warning, because the original error matters more.
void write_failed_record(const RunRequest& request, int code, const std::string& line) noexcept;

}  // namespace paceline
