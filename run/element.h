// What a job of a study does for its run: an element of a job array, from its points file to the
// record of a run that left none.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "engine/core/environment.h"
#include "sweeps/inventory.h"

namespace paceline {

// An element as its job's script names it.
struct ArrayElement {
  std::string points;  // the points file
  std::int64_t index = 0;
  std::string backend = {};  // that the run fell back to; empty: its own
};

// The words of its run, after the program's name. A script that was sent by hand gives its job as
// session. Throws usage or input if the line does not describe a run.
std::vector<std::string> read_words(const ArrayElement& element, const Environment& environment);

struct ElementRun {
  UnfinishedRun what;  // as its record would say it
  std::filesystem::path store;

  // By this submission: a job that was put back into the queue may have ended its run before.
  bool is_done() const;
};

ElementRun read_run(const ArrayElement& element, const Environment& environment);

// Checks that this job can make the run, and prints its notes. `built`: what this program must have
// for other runs, as "device=cuda". Throws usage if program, job or node lack what is needed, which
// the run's record then says, and input if the node cannot write the study's folder.
void check_job(const ElementRun& run, const std::vector<std::string>& built,
               const Environment& environment);

// The backend to try instead of the run's, with `stand_in` between tasks. Empty: the run ended by
// something else than its communication, or later than at its start, or its stack cannot have it.
// `status` is its status folder.
std::string find_fallback(const ElementRun& run, int exit_code, const std::filesystem::path& status,
                          const std::string& stand_in);

// How the run of a job ended, as its script saw it.
struct ElementEnd {
  int exit_code = 0;
  std::filesystem::path log = {};     // of the job
  std::filesystem::path status = {};  // the run's status folder
  int minutes = 0;                    // the job's time limit
  std::string limit_key = {};         // of the site profile, which raises it
  bool was_signalled = false;         // Slurm's signal before that limit came
};

// Writes why a run left no record. If the signal before the time limit ended it, prints that, too,
// and keeps it for a post-mortem. Returns the job's exit code.
int write_end(const ElementRun& run, const ElementEnd& end);

}  // namespace paceline
