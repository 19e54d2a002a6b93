// Options of the verbs that take a sweep spec.
#pragma once

#include "run/plan_study.h"

namespace CLI {
class App;
}

namespace paceline {

void add_study_options(CLI::App& verb, StudyOptions& options);

}  // namespace paceline
