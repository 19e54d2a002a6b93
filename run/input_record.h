// The record's section about input.
#pragma once

#include "run/outcome_record.h"

namespace paceline {

InputFacts collect_input(const RunFacts& facts, const TrainingOutcome& outcome);

}  // namespace paceline
