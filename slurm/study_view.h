// The state of each submitted run, from records first, then from Slurm.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "results/store.h"
#include "slurm/job_states.h"
#include "slurm/journal.h"
#include "slurm/nodes.h"

namespace paceline {

// failed: ended without a completed record. unsent: rejected by Slurm, never submitted, or
// postponed. unknown: sbatch was called, but its answer was lost.
enum class RunPhase { done, running, pending, failed, unsent, unknown };

struct RunView {
  Element element;
  RunPhase phase = RunPhase::unsent;
  std::string why;      // why it is not done: "TIMEOUT after 5 min", "Resources", ...
  ElementKey slurm;     // its last submission; job 0: none
  std::string session;  // of its last submission
  std::string shape;
  int minutes = 0;            // its time limit
  bool timed_out = false;     // at that time limit
  bool has_record = false;    // of its last submission, completed or not
  std::string other_machine;  // machine of a record that would complete it on a matching node
};

// One entry for each run (point and repeat) ever submitted, in order of first submission. A
// completed record with the submitted identity and data hash makes it done, regardless of who wrote
// it and of Slurm's state, if it was made on a node like the jobs' (nodes.h).
std::vector<RunView> view_study(const Journal& journal, const StoreContent& store,
                                const ElementStates& queue, const ElementStates& history,
                                const JobPlace& place = {});

// The records (only their outcomes) and Slurm's current answers. Throws usage if Slurm does not
// answer: queued and lost runs cannot be distinguished then.
struct StudyNow {
  StoreContent store;
  std::vector<RunView> runs;
};
StudyNow look_at_study(const std::filesystem::path& study, const Journal& journal,
                       const SlurmCommands& slurm, const JobPlace& place = {});

std::size_t runs_in_phase(const std::vector<RunView>& runs, RunPhase phase);

}  // namespace paceline
