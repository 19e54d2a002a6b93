// From what is missing of a study to job arrays in Slurm's queue.
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

// A run to send, and why.
struct RunToSend {
  ScheduledRun run;
  std::string why;  // "no record", "failed: rank 1 was killed", "TIMEOUT after 5 min (12_3)"
};

struct Submission {
  ScriptSetup setup;
  std::vector<RunToSend> runs;   // all that is missing or failed and in no queue
  std::vector<JobArray> arrays;  // of as many of these as the site lets us submit
  std::size_t done = 0, in_queue = 0;
  std::vector<JobArray> later;  // what the queue has no room for now: the next wave
  QueueRoom room;
  std::set<std::int64_t> jobs_in_queue;  // of earlier submissions

  struct Expected {
    double gpu_hours = 0, cpu_hours = 0;
    std::size_t by_records = 0, by_published = 0, by_limit = 0;  // runs
  } expected;                                                    // of what is sent now

  std::size_t left() const;  // runs in `later`
  double gpu_hours() const;  // at most, as is the other; without what is left
  double cpu_hours() const;
};

struct SubmissionInput {
  const Site* site = nullptr;
  const StudyPlan* plan = nullptr;                  // with its runs judged by the records
  const StoreContent* store = nullptr;              // for times and memory
  const std::vector<RunView>* submitted = nullptr;  // what was sent before
  ScriptSetup setup;
  int max_array_size = 1001;
  QueueRoom room = {};
  // Point and repeat of runs that a submission in waves has sent once, and does not send again.
  const std::set<std::pair<std::size_t, int>>* sent_once = nullptr;
  std::function<double(std::size_t point)> planned_bytes = {};          // see Needs
  const StoreContent* published = nullptr;                              // tables; null: none
  std::function<std::optional<double>(std::size_t point)> epochs = {};  // see Needs
};

// Runs that are done or in the queue are left out. Each array has at most max_array_size elements:
// its indices begin at 0 and stay below it.
Submission prepare_submission(const SubmissionInput& input);

// The words of one element: a line of a points file (points_file.h). A run that writes checkpoints
// goes on from its newest, in a folder of its own, in whatever job.
std::string points_line(const StudyPlan& plan, const ScheduledRun& run, const ScriptSetup& setup);

// What each run is, as elements of an array know it.
std::vector<Element> elements_of(const StudyPlan& plan, const std::vector<Resolved>& resolved,
                                 const JobArray& array);

// Writes each array's files, and sends it; the journal knows of it before Slurm does. `tell` hears
// of each that was taken. With `collect`, a job that collects the study follows the last wave.
// Throws as SlurmCommands::submit where one is refused: those before it stay in the queue. Where
// only the queue is full, and has something of the study, the rest is the next wave's instead.
// Returns how many runs were sent.
std::size_t send_submission(const Submission& submission, const Site& site, const StudyPlan& plan,
                            const std::vector<Resolved>& resolved, Journal& journal,
                            const SlurmCommands& slurm, bool collect,
                            const std::function<void(const std::string&)>& tell);

// Arrays that were being sent when a submission was cut off: finds them in the queue by their name.
void find_cut_off(Journal& journal, const ScriptSetup& setup, const SlurmCommands& slurm);

// A table of the arrays with time, memory and cost, and what is not sent.
std::string submission_text(const Submission& submission, const StudyPlan& plan);

}  // namespace paceline
