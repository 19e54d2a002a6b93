// Submits the missing runs of a study to Slurm, once or in waves.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "run/plan_study.h"
#include "slurm/submission.h"

namespace paceline {

struct SubmitOptions : StudyOptions {
  std::string site, fallback;
  double max_gpu_hours = -1;  // negative: no limit
  std::string scripts;        // the folder of a dry run; empty: one in TMPDIR
  bool dry_run = false, smoke = false, no_container = false, no_collect = false;
  bool data_elsewhere = false;  // only the jobs see the data set
  bool screen = false;          // of each job, before its run
  bool wait = false;
  int every = 60;  // seconds until a waiting submission looks at the queue again
};

class StudySubmitter {
 public:
  using Print = std::function<void(const std::string&)>;

  // Reads profile and spec, and resolves the points. Throws usage or input.
  explicit StudySubmitter(SubmitOptions options);

  // Writes the scripts to a folder and sends nothing. Returns the plan, what a submission would
  // refuse, and where the scripts are.
  std::string dry_run();

  // Sends what is missing and in no queue; with `wait` until nothing is left. Asks `confirm` once,
  // after the plan was printed. Returns false if the answer was no. Throws usage or input for a
  // profile with placeholders, absent data and a study over the budget. A new study of which Slurm
  // took nothing is removed again.
  bool submit(const Print& print, const std::function<bool()>& confirm);

 private:
  bool send(const Print& print, const std::function<bool()>& confirm);
  void plan_points();
  void plan_wave(const Journal& journal);
  bool send_wave(bool is_first, const Print& print, const std::function<bool()>& confirm);
  void check_affordable() const;
  bool has_room_for(std::size_t left) const;
  double gpu_hours() const;
  bool is_over_budget() const;
  std::vector<std::string> notes() const;
  std::string plan_text() const;
  std::string shell_note() const;

  SubmitOptions options_;
  Site site_;
  Environment environment_;
  SlurmCommands slurm_;
  StudyPlan plan_;
  std::string warning_;  // of the nodes; empty: they are known
  TargetPrecision precision_;
  std::vector<std::string> precision_lines_;  // what --until-precision has reached
  std::string data_is_absent_;                // why; empty: it is here, or none is needed
  std::vector<Resolved> resolved_;
  ScriptSetup setup_;
  Submission submission_;
  std::size_t sent_in_wave_ = 0;                     // runs
  std::set<std::pair<std::size_t, int>> sent_once_;  // point, repeat: by this object
};

}  // namespace paceline
