// The script of a job array, from one template (job.sbatch.in) and a site profile.
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
  std::string study;                    // its name
  std::filesystem::path folder;         // of the study, absolute
  std::string session;                  // of this submission
  std::filesystem::path program;        // this paceline, where the profile names none
  std::string device = "cpu";           // of the reference point
  std::string fallback = {};            // a backend for where the run's cannot sum; empty: none
  std::set<std::string> reads = {};     // absolute folders of files that the points name
  std::set<std::string> services = {};  // that the program must be built with, e.g. "device=cuda"
};

// Every value stands quoted or has passed the profile's checks, so that none is run by the shell.
// Throws usage for a request that the GPU or memory form cannot express, and for paths that a
// line or a container's bind cannot hold.
std::string script_text(const Site& site, const JobArray& array, const ScriptSetup& setup);

// The script of the job that collects the study once all `arrays` have ended, in one process.
std::string collect_script_text(const Site& site, const ScriptSetup& setup);

// Where things lie, from the study's folder: "slurm/SESSION/ARRAY.points".
std::filesystem::path file_of_array(const std::string& session, const std::string& array,
                                    std::string_view ending);

// A word of a profile for the shell: as it stands, but for a variable at its beginning
// ("$SCRATCH/x"), which the shell fills in and misses with a message.
std::string script_word(const std::string& text);

// What squeue shows first, and by which a submission that was cut off is found again.
std::string job_name(const std::string& array, const ScriptSetup& setup);

}  // namespace paceline
