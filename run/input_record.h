// The record's section about input.
#pragma once

#include "run/outcome_record.h"

namespace paceline {

InputFacts input_of(const RunFacts& facts, const TrainingOutcome& outcome);

}  // namespace paceline
