// The record of a training run that failed: what was asked for, and why it ended.
#pragma once

#include <filesystem>
#include <string>

#include "run/training_run.h"

namespace paceline {

// "run.failed.json" beside "run.json", where a later success goes, or the first of
// "run.failed.2.json", ... that is free.
std::filesystem::path failed_record_name(const std::filesystem::path& record);

// Where --record was given, writes a record of status failed, whose reason is `line`. Not for wrong
// usage, nor for a run that was stopped by request (`code` 64, 75, 128 and more): there is nothing
// to know of those; nor where a record could not have gone there. A record that cannot be written
// is a warning: the failure itself matters more.
void leave_failed_record(const RunRequest& request, int code, const std::string& line) noexcept;

}  // namespace paceline
