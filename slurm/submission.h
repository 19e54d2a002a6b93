// Submits the missing runs of a study as job arrays.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "slurm/cluster_facts.h"
#include "slurm/commands.h"
#include "slurm/job_array.h"
#include "slurm/journal.h"
#include "slurm/script.h"
#include "slurm/site.h"
#include "slurm/study_view.h"
#include "sweeps/study_plan.h"

namespace paceline {

// A run to submit, with the reason.
struct RunToSend {
  ScheduledRun run;
  std::string why;  // "no record", "failed: rank 1 was killed", "TIMEOUT after 5 min (12_3)"
  std::string element = {};  // its last one: "12_3"
};

struct Submission {
  ScriptSetup setup;
  std::vector<RunToSend> runs;   // all missing or failed runs that are not in the queue
  std::vector<JobArray> arrays;  // those that the site allows now
  std::size_t done = 0, in_queue = 0;
  std::vector<JobArray> later;  // those for which the queue has no room now: the next wave
  QueueRoom room;
  std::set<std::int64_t> jobs_in_queue;  // of earlier submissions

  struct Expected {
    double gpu_hours = 0, cpu_hours = 0;                         // without those of unknown time
    double limit_gpu_hours = 0, limit_cpu_hours = 0;             // of those
    std::size_t by_records = 0, by_published = 0, by_limit = 0;  // runs
  } expected;                                                    // of the runs submitted now

  std::size_t left() const;  // runs in `later`
  double gpu_hours() const;  // maximum, like the other one; without the runs in `later`
  double cpu_hours() const;
};

struct SubmissionInput {
  const Site* site = nullptr;
  const StudyPlan* plan = nullptr;                  // with its runs compared to the records
  const StoreContent* store = nullptr;              // for time and memory
  const std::vector<RunView>* submitted = nullptr;  // earlier submissions
  ScriptSetup setup;
  int max_array_size = 1001;
  QueueRoom room = {};
  // Point and repeat of runs that this submission has sent once; it does not send them again.
  const std::set<std::pair<std::size_t, int>>* sent_once = nullptr;
  std::function<double(std::size_t point)> planned_bytes = {};  // see Needs
  const StoreContent* published = nullptr;                      // published tables; may be null
  std::function<std::optional<double>(std::size_t point)> epochs = {};  // see Needs
};

// Elements that an array may have, by the profile and by Slurm.
int max_array_size(const Site& site, const SlurmCommands& slurm);

// Excludes runs that are done or in the queue. Arrays have at most max_array_size elements, with
// indices from 0.
Submission prepare_submission(const SubmissionInput& input);

// The words of one element: a line of a points file (job_array.h). A run with checkpoints resumes
// from its newest one, in its own folder, in whatever job.
std::string points_line(const StudyPlan& plan, const ScheduledRun& run, const ScriptSetup& setup);

// The runs as array elements.
std::vector<Element> list_elements(const StudyPlan& plan, const std::vector<Resolved>& resolved,
                                   const JobArray& array);

// Writes each array's files and submits it. The journal is updated before sbatch is called. Calls
// `notify` for each accepted array. With `collect`, a collecting job follows the last wave. Throws
// usage with Slurm's message if an array is rejected, or its fate is unknown (the next submission
// then looks for it before it sends anything); earlier ones stay in the queue. If only the queue
// is full, and holds runs of this study, the rest becomes the next wave. Returns the number of runs
// that were sent.
std::size_t send_submission(const Submission& submission, const Site& site, const StudyPlan& plan,
                            const std::vector<Resolved>& resolved, Journal& journal,
                            const SlurmCommands& slurm, bool collect,
                            const std::function<void(const std::string&)>& notify);

// Writes each array's script and points file into `folder`, to be sent by hand. A private folder
// has a known name in a place where others can write: it must be this user's, and is emptied.
// Throws input if it is not, and usage, before it creates the folder, for what a script cannot ask
// for.
void save_scripts(const Submission& submission, const Site& site, const StudyPlan& plan,
                  const std::filesystem::path& folder, bool is_private);

// For arrays of which a submission did not learn what became of them: finds their jobs by name.
void find_unanswered(Journal& journal, const SlurmCommands& slurm);

// A table of the arrays with time, memory and cost, and what is not submitted.
std::string submission_text(const Submission& submission, const StudyPlan& plan);

}  // namespace paceline
