// What the first run of a program as it is leaves in its folder, and why others may not follow.
#pragma once

#include <filesystem>
#include <string>

#include "analysis/why/why.h"
#include "engine/core/json.h"

namespace paceline {

// Throws input with the places outside of its folder to which it wrote, where that was refused.
void refuse_writes_elsewhere(const std::filesystem::path& out, const std::string& program);

// Of processes in which the hook could not do what it refuses the launcher.
void warn_of_unheld(const std::filesystem::path& out, WhyEvidence& evidence);

// What the profiler saw of the slowest rank's steps, if it wrote that; nothing else depends on it.
void read_profile(const std::filesystem::path& out, WhyEvidence& evidence);

// How torchrun started its ranks, if it did: for the hook's settings.
void find_launches(const std::filesystem::path& out, Json& settings);

// The ends of its logs, where it failed.
void print_logs(const std::filesystem::path& folder);

// Throws input where its steps are too few or not known, or it has one replica.
void check_steps(const MeasuredRun& seen, const std::string& program);

// Throws failed; input where it took too long, or ended well and no rank made a step: no reason.
[[noreturn]] void refuse(const std::string& program, const std::string& reason, bool is_slow);

}  // namespace paceline
