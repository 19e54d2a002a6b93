// Runs the missing runs of a study on this machine.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "run/plan_study.h"
#include "run/screen.h"
#include "sweeps/runner.h"

namespace paceline {

struct SweepOptions : StudyOptions {
  double timeout = 0;                            // seconds of a run; 0: from the spec
  double max_gpu_hours = 0, max_core_hours = 0;  // with until_precision; 0: no limit
  bool dry_run = false;                          // what is not built here can still be planned
};

class Sweep {
 public:
  // Reads the spec and resolves its points. Throws usage or input.
  explicit Sweep(const SweepOptions& options);

  // Compares with the records. `plan` then has its runs.
  StoreContent look_at(int repeats = 0);
  const StudyPlan& plan() const { return plan_; }

  // Makes what is missing, and says on the screen what it does and what precision was reached.
  RunnerResult run(Screen& screen);

 private:
  SweepOptions options_;
  StudyPlan plan_;
  TargetPrecision precision_;
  std::vector<Resolved> resolved_;
};

}  // namespace paceline
