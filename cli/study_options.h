// Options of the verbs that take a sweep spec.
#pragma once

#include <optional>
#include <string>

#include "run/plan_study.h"

namespace CLI {
class App;
}

namespace paceline {

// "SCRATCH" of "$SCRATCH/data" and "${SCRATCH}/data"; empty: it begins with no variable.
std::string leading_variable(const std::string& text);

// "$SCRATCH/data" as this shell has it; nothing where only the job knows.
std::optional<std::string> filled_in(const std::string& text);

void add_study_options(CLI::App& verb, StudyOptions& options);

}  // namespace paceline
