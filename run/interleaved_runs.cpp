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

namespace {

std::vector<StoreContent> load_records(const std::vector<RunnerSide>& sides) {
  std::vector<StoreContent> all;
  for (const RunnerSide& side : sides) all.push_back(load_store(side.study));
  return all;
}

// Of the rounds from `first` to `last`.
std::vector<RunStatus> list_rounds(const InterleavedRuns& plan, int first, int last) {
  std::vector<RunStatus> runs;
  for (const ScheduledRun& run :
       schedule_sides(plan.sides.front().points.size(), plan.sides.size(), last, plan.seed)) {
    if (run.repeat < first) continue;
    RunStatus status;
    status.run = run;
    runs.push_back(status);
  }
  return runs;
}

}  // namespace

InterleavedRecords run_interleaved(const InterleavedRuns& plan) {
  Spec spec;
  spec.name = plan.name;
  spec.workload = plan.workload;
  spec.timeout_seconds = plan.timeout_seconds;
  spec.sequential = static_cast<bool>(plan.next);
  std::vector<std::unique_ptr<StudyLock>> locks;
  std::vector<RunnerSide> sides;
  for (const ProgramSide& side : plan.sides) {
    locks.push_back(std::make_unique<StudyLock>(plan.folder / side.name));
    sides.push_back({side.name, {side.program.string()}, &side.points, plan.folder / side.name});
  }
  Screen screen;
  RunnerSetup setup;
  setup.spec = &spec;
  setup.line = [&](const std::string& text) { screen.line(text); };
  setup.status = [&](const std::string& text) { screen.status(text); };
  InterleavedRecords result;
  result.rounds = plan.rounds;
  if (plan.next) {
    setup.more = [&] {
      const std::set<std::size_t> points =
          plan.next(load_records(sides), result.rounds, setup.line);
      if (points.empty()) return std::vector<RunStatus>();
      ++result.rounds;
      std::vector<RunStatus> runs = list_rounds(plan, result.rounds, result.rounds);
      std::erase_if(runs, [&](const RunStatus& each) { return !points.contains(each.run.point); });
      return runs;
    };
  }
  result.stopped_by = run_sides(setup, sides, list_rounds(plan, 1, plan.rounds)).stopped_by;
  screen.clear();
  result.sides = load_records(sides);
  return result;
}

std::string version_of_program(const fs::path& program, const std::string& option) {
  std::error_code ignored;
  if (!fs::is_regular_file(program, ignored) || access(program.c_str(), X_OK) != 0) {
    throw Error(ErrorKind::usage, "not an executable", option + " " + program.string(),
                "give the path of a paceline binary");
  }
  const std::string said = capture_output({program.string(), "--version"});
  const std::string line = said.substr(0, said.find('\n'));
  if (line.starts_with("paceline ")) return line;
  throw Error(ErrorKind::usage, "this is not a paceline program", option + " " + program.string(),
              "give the path of a paceline binary");
}

}  // namespace paceline
