// What paceline submit is asked for, as a plan of runs on the nodes of a site.
#pragma once

#include <set>
#include <string>

#include "cli/study_options.h"
#include "run/until_precise.h"
#include "slurm/site.h"
#include "sweeps/study_plan.h"

namespace paceline {

struct SubmitOptions : StudyOptions {
  std::string site, fallback;
  double max_gpu_hours = -1;
  std::string scripts;
  bool dry_run = false, smoke = false, yes = false, no_container = false, no_collect = false;
  bool data_elsewhere = false, wait = false;
  int every = 60;
};

// The site profile, as the options change it.
Site load_site(const SubmitOptions& options);

// Where another program than this one runs, it may have what this one was built without.
bool is_run_by_this_program(const Site& site);

// `services` are told those that a smoke test on CPUs replaces.
StudyPlan make_plan(const SubmitOptions& options, Site& site, std::set<std::string>& services,
                    std::string& warning, TargetPrecision& precision);

}  // namespace paceline
