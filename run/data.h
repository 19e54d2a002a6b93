// The samples of a run: found, staged, read, limited; what the record says of them is noted.
#pragma once

#include "engine/launch/process_rank.h"
#include "run/outcome_record.h"
#include "run/training_run.h"

namespace paceline {

// Throws as the readers do, with the file. Fills in what RunFacts knows of data and input.
DatasetPair load_run_data(const RunRequest& request, const Workload& workload,
                          const Network& network, const ProcessRank& process, RunFacts& facts);

}  // namespace paceline
