// The state of each submitted run, from records first, then from Slurm.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "engine/core/json.h"
#include "results/store.h"
#include "slurm/cluster_facts.h"
#include "slurm/commands.h"
#include "slurm/journal.h"
#include "sweeps/study_plan.h"

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
// it and of Slurm's state, if it was made on a node like the jobs' (cluster_facts.h).
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

// Finishes a study after its jobs have ended.

// Writes a failed record, with Slurm's reason, for each run whose array element ended without a
// record. Records keep what Slurm forgets. Returns the number written; a second call writes none.
std::size_t record_lost_runs(const std::filesystem::path& study, const std::vector<RunView>& runs);

// Summarizes the reference runs (STUDY.reference): their spread over jobs, and each node that is
// slower than the median by more than 5 %. Empty without reference runs.
std::vector<std::string> reference_lines(const std::filesystem::path& study);

// Formats the state of a submitted study.

// "12 of 18 runs done, 2 running, 3 pending, 1 failed"
std::string phases_text(const std::vector<RunView>& runs);

// One line per shape with its jobs; below it one bar per point, with a character per repeat, and
// the reasons of failed runs; then the number of records made on other machines, and of runs not
// yet submitted. Lists about `most_points` points: failed ones first in each shape, then running
// ones. Counts the others.
std::string status_text(const std::vector<RunView>& runs, std::size_t most_points = kShownPoints);

// "runs" with point, repeat, state, why, job; "done", "running", "pending", "failed", "unsent",
// "unknown"; "not_counted" with one sentence per machine.
Json status_json(const std::vector<RunView>& runs);

}  // namespace paceline
