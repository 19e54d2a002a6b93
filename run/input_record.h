// What a record says of a run's input.
#pragma once

#include "run/outcome_record.h"

namespace paceline {

Json input_json(const RunFacts& facts, const TrainingOutcome& outcome);

}  // namespace paceline
