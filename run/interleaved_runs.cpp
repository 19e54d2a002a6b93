#include "run/interleaved_runs.h"

#include <fmt/format.h>
#include <unistd.h>

#include <memory>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/launch/program.h"
#include "run/screen.h"
#include "sweeps/runner.h"
#include "sweeps/schedule.h"

namespace paceline {

namespace fs = std::filesystem;

InterleavedRecords run_interleaved(const InterleavedRuns& plan) {
  Spec spec;
  spec.name = plan.name;
  spec.workload = plan.workload;
  spec.timeout_seconds = plan.timeout_seconds;
  std::vector<std::unique_ptr<StudyLock>> locks;
  std::vector<RunnerSide> sides;
  for (const ProgramSide& side : plan.sides) {
    locks.push_back(std::make_unique<StudyLock>(plan.folder / side.name));
    sides.push_back({side.name, {side.program.string()}, &side.points, plan.folder / side.name});
  }
  std::vector<RunStatus> runs;
  for (const ScheduledRun& run :
       schedule_sides(plan.sides.front().points.size(), sides.size(), plan.rounds, plan.seed)) {
    RunStatus status;
    status.run = run;
    runs.push_back(status);
  }
  Screen screen;
  RunnerSetup setup;
  setup.spec = &spec;
  setup.line = [&](const std::string& text) { screen.line(text); };
  setup.status = [&](const std::string& text) { screen.status(text); };
  InterleavedRecords result;
  result.stopped_by = run_sides(setup, sides, runs).stopped_by;
  screen.clear();
  for (const RunnerSide& side : sides) result.sides.push_back(load_store(side.study));
  return result;
}

std::string version_of_program(const fs::path& program, const std::string& option) {
  std::error_code ignored;
  if (!fs::is_regular_file(program, ignored) || access(program.c_str(), X_OK) != 0) {
    throw Error(ErrorKind::usage, "not an executable", option + " " + program.string(),
                "give the path of a paceline binary");
  }
  const std::string said = output_of({program.string(), "--version"});
  const std::string line = said.substr(0, said.find('\n'));
  if (line.starts_with("paceline ")) return line;
  throw Error(ErrorKind::usage, "this is not a paceline program", option + " " + program.string(),
              "give the path of a paceline binary");
}

}  // namespace paceline
