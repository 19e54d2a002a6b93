// Finds, stages, reads and limits the samples of a run, and collects facts for the record.
#pragma once

#include "engine/launch/process_rank.h"
#include "run/outcome_record.h"
#include "run/training_run.h"

namespace paceline {

// Throws as the readers do, naming the file. Fills in the facts about data and input.
DatasetPair load_run_data(const RunRequest& request, const Workload& workload,
                          const Network& network, const ProcessRank& process, RunFacts& facts);

}  // namespace paceline
