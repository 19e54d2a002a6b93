// Generates the script of a job array from a template (job.sbatch.in) and a site profile.
#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "slurm/job_array.h"
#include "slurm/site.h"

namespace paceline {

struct ScriptSetup {
  std::string study;              // its name
  std::filesystem::path folder;   // of the study, absolute
  std::string session;            // of this submission
  std::filesystem::path program;  // this program, unless the profile names another
  std::string device = "cpu";     // for the reference point
  bool own_program = false;       // the runs are of workload command, which starts its ranks itself
  std::string fallback = {};      // the backend to use if the run's backend cannot sum; empty: none
  bool screen = false;            // each element screens what it was given, before its run
  std::string screen_device = {};  // of the screen; empty: GPUs if the job has some
  std::vector<std::string> screen_words = {"--backend=ring"};
  std::set<std::string> reads = {};     // absolute folders of files named in points
  std::set<std::string> services = {};  // required parts of the program, e.g. "device=cuda"
  // Absolute folder of the arrays' files if they are to be sent by hand; empty: the study has them.
  std::filesystem::path by_hand = {};
};

// All values are quoted or validated, so that the shell never executes them. Throws usage if the
// site's GPU or memory form cannot express a request, and for paths that a line or a container bind
// cannot contain.
std::string script_text(const Site& site, const JobArray& array, const ScriptSetup& setup);

// What a screen before a run may take.
inline constexpr int kScreenMinutes = 3;

// The script of a job that is a screen alone, with a task of `job` for each device. Its folder is
// the one of `setup`, for the log, too.
std::string screen_script_text(const Site& site, const JobArray& job, const ScriptSetup& setup);

// The script of the single-process job that collects the study after all `arrays`.
std::string collect_script_text(const Site& site, const ScriptSetup& setup);

// Paths relative to the study's folder: "slurm/SESSION/ARRAY.points".
std::filesystem::path file_of_array(const std::string& session, const std::string& array,
                                    std::string_view ending);

// The name in squeue, by which an interrupted submission is recovered.
std::string job_name(const std::string& array, const ScriptSetup& setup);

// Generates the #SBATCH lines of a script.

struct ScriptSetup;

std::vector<std::string> array_directives(const Site& site, const JobArray& array,
                                          const ScriptSetup& setup);
std::vector<std::string> screen_directives(const Site& site, const JobArray& job,
                                           const ScriptSetup& setup);
std::vector<std::string> collect_directives(const Site& site, const ScriptSetup& setup);

// "--gres=gpu:v100:4". Empty for shapes without GPUs. Throws usage if the form is "none" or cannot
// express this shape.
std::vector<std::string> gpu_options(const Site& site, const JobShape& shape);

// "--mem=8000M", "--mem=8G". Empty if the site has no form for memory. `memory_mb` is per node.
std::vector<std::string> memory_options(const Site& site, const JobShape& shape,
                                        std::int64_t memory_mb);

std::string time_text(int minutes);  // "1:05:00", "2-00:00:00"

}  // namespace paceline
