// Where each submitted run of a study stands: records first, then Slurm.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "results/store.h"
#include "slurm/job_states.h"
#include "slurm/journal.h"
#include "slurm/nodes.h"

namespace paceline {

// failed: it ended without a completed record. unsent: Slurm refused it or was never asked, or it
// was left for a later submission. unknown: sbatch was called, and what it answered was lost.
enum class RunPhase { done, running, pending, failed, unsent, unknown };

struct RunView {
  Element element;
  RunPhase phase = RunPhase::unsent;
  std::string why;      // of what is not done: "TIMEOUT after 5 min", "Resources", ...
  ElementKey slurm;     // the last that was sent for it; job 0: none
  std::string session;  // of that submission
  std::string shape;
  int minutes = 0;            // its limit
  bool timed_out = false;     // at that limit
  bool has_record = false;    // of that submission, completed or not
  std::string other_machine;  // of a record that would make it done, were it of such a node
};

// One a run (point and repeat) that was ever submitted, in the order of the first submission. A
// completed record with the identity and data hash that were submitted makes it done, whoever wrote
// it and whatever Slurm says, if it was made on a node like those of the jobs (nodes.h).
std::vector<RunView> view_study(const Journal& journal, const StoreContent& store,
                                const ElementStates& queue, const ElementStates& history,
                                const JobPlace& place = {});

// The records (what became of them, no more) and Slurm's words of now. Throws usage where Slurm
// does not answer: what is in the queue cannot be told from what is lost then.
struct StudyNow {
  StoreContent store;
  std::vector<RunView> runs;
};
StudyNow look_at_study(const std::filesystem::path& study, const Journal& journal,
                       const SlurmCommands& slurm, const JobPlace& place = {});

std::size_t runs_in_phase(const std::vector<RunView>& runs, RunPhase phase);

}  // namespace paceline
