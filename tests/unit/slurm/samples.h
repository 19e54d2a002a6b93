// Studies, sites and fake programs of Slurm for the tests of this folder.
#pragma once

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "slurm/submission.h"
#include "sweeps/spec.h"
#include "tests/support/expect_error.h"
#include "tests/support/scratch.h"

namespace paceline {
inline namespace testing {

inline const char kFourPoints[] = R"({"name": "s", "workload": "mnist-mlp", "repeats": 3,
  "fixed": {"device": "cpu", "cpus_per_task": 2},
  "axes": {"gpus": [1, 2], "backend": ["mpi", "gloo"]}})";

// All runs to be made, unless told otherwise.
inline StudyPlan make_plan(Spec given, const std::filesystem::path& study = "/r/s") {
  StudyPlan plan;
  plan.spec = std::move(given);
  const Spec& spec = plan.spec;
  plan.expansion = expand(spec, 8, Unbuilt::keep);
  plan.study = study;
  for (const ScheduledRun& run :
       schedule(plan.expansion.points.size(), spec.repeats, spec.interleaved, spec.seed)) {
    plan.runs.push_back({run, RunState::missing, kNoRecord, 0, false, {}});
  }
  return plan;
}

inline std::vector<Resolved> resolve_points(const StudyPlan& plan) {
  std::vector<Resolved> resolved;
  for (const PlannedPoint& planned : plan.expansion.points) {
    resolved.push_back({planned.parameters, "id-" + planned.point.text(), "data", "build"});
  }
  return resolved;
}

inline ScriptSetup make_setup(const StudyPlan& plan, const std::string& session = "S") {
  return {plan.spec.name, plan.study, session, "/bin/paceline", "cpu"};
}

inline Submission make_submission(const StudyPlan& plan, const Site& site,
                                  const std::vector<RunView>& submitted = {}, int max_array = 1001,
                                  const StoreContent* published = nullptr, QueueRoom room = {},
                                  bool screen = false) {
  const StoreContent store;
  SubmissionInput input;
  input.site = &site;
  input.plan = &plan;
  input.store = &store;
  input.submitted = &submitted;
  input.setup = make_setup(plan);
  input.setup.screen = screen;
  input.max_array_size = max_array;
  input.published = published;
  input.room = std::move(room);
  input.epochs = [](std::size_t) { return 15; };
  return prepare_submission(input);
}

inline Site site_with(const std::string& keys) {
  return parse_site("site.json", "{\"name\": \"site\"" + (keys.empty() ? "" : ", " + keys) + "}");
}

// A program of Slurm, emulated by a shell script in `folder`.
inline void fake(const std::filesystem::path& folder, const std::string& program,
                 const std::string& script) {
  std::ofstream(folder / program) << "#!/bin/sh\n" << script << "\n";
  chmod((folder / program).c_str(), 0755);
}

inline SlurmCommands commands_in(const std::filesystem::path& folder) {
  return SlurmCommands({{"PATH", folder.string() + ":/usr/bin:/bin"}});
}

}  // namespace testing
}  // namespace paceline
