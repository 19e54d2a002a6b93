#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "analysis/plan/design.h"
#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/launch/program.h"
#include "run/gate_runs.h"
#include "run/plan_study.h"
#include "sweeps/spec.h"

namespace paceline {

namespace {

namespace fs = std::filesystem;

GateOutcome gate_stored(const GateRequest& request) {
  const std::vector<fs::path> before(request.baseline.begin(), request.baseline.end());
  const std::vector<fs::path> now(request.current.begin(), request.current.end());
  const Side current = read_side("current", now), baseline = read_side("baseline", before, current);
  const std::string differences = join(unlike_machines(baseline, current), "; ");
  if (!differences.empty() && !request.force) {
    throw input_error("runs of different machines cannot be compared", differences,
                      "run both on the same kind of machine, or add --force");
  }
  GateOptions options = request.options;
  options.nodes_may_differ = request.force;
  GateOutcome outcome{judge(baseline, current, options), 0};
  std::vector<std::string>& notes = outcome.judgement.notes;
  if (!differences.empty()) notes.insert(notes.begin(), "UNLIKE MACHINES: " + differences);
  if (request.rerun.empty() || outcome.judgement.verdict() == Verdict::pass) return outcome;
  if (request.current_program.empty() && !engine_is_here()) {
    throw usage_error("this build has no engine, so it cannot run the current side", "--rerun",
                      "use --current-binary with a build that has one");
  }
  const fs::path program =
      request.current_program.empty() ? this_program() : fs::path(request.current_program);
  return confirm(baseline, current, std::move(outcome.judgement), request.rerun, program,
                 request.runs, request.options);
}

// What --aa runs against itself: this program, or the spec's own ones.
std::string compared_with_itself(const std::string& file) {
  const Spec spec = read_spec(file);
  if (spec.programs.empty()) return this_program().string();
  if (spec.programs.size() > 1) return "the programs of " + spec.name;
  const UserProgram& program = spec.programs.front();
  return program.shell ? join(program.command, " ") : shell_quote(program.command);
}

GateOutcome gate_fresh(const GateRequest& request) {
  if (!request.ab.empty()) {
    const fs::path spec = request.ab.size() > 2 ? request.ab[2] : "";
    return gate_pair({request.ab[0], request.ab[1], spec}, request.runs, request.options);
  }
  if (!engine_is_here()) {
    throw usage_error("this build has no engine, so it cannot run a study", "--aa",
                      "use a build with an engine: --ab PROGRAM PROGRAM SPEC");
  }
  const std::string self = compared_with_itself(request.aa);
  return gate_pair({self, self, request.aa, false}, request.runs, request.options);
}

}  // namespace

void check_request(const GateRequest& request) {
  const bool stored = request.is_stored();
  const int modes = stored + !request.ab.empty() + !request.aa.empty();
  const std::string ways = "give --baseline DIR --current DIR, --ab OLD NEW SPEC, or --aa SPEC";
  if (modes == 0) throw usage_error("nothing to compare is given", "", ways);
  if (modes > 1) throw usage_error("several kinds of gate are given at once", "", ways);
  if (stored && (request.baseline.empty() || request.current.empty())) {
    throw usage_error(
        fmt::format("there is no {}", request.baseline.empty() ? "--baseline" : "--current"), "",
        "give both");
  }
  const GateRuns& runs = request.runs;
  if (stored && request.rerun.empty()) {
    for (const auto& [given, option] : {std::pair(!runs.out.empty(), "--out"),
                                        {request.has_rounds, "--rounds"},
                                        {runs.until_decided, "--until-decided"},
                                        {!runs.data.empty(), "--data"},
                                        {runs.timeout_seconds > 0, "--timeout"},
                                        {!request.current_program.empty(), "--current-binary"}}) {
      if (!given) continue;
      throw usage_error("the option has no effect without fresh runs", option,
                        "leave it out, or add --rerun OLD_BINARY");
    }
  }
  if (request.has_most_rounds && !runs.until_decided) {
    throw usage_error("a fixed number of rounds has no other limit", "--max-rounds",
                      "add --until-decided");
  }
  if (!stored && request.force) {
    throw usage_error("this option is for stored studies: fresh runs share a machine", "--force",
                      "leave it out");
  }
  for (const auto& [given, option] :
       {std::pair(runs.control, "--control"), {!runs.set.empty(), "--set"}}) {
    if (!stored || !given) continue;
    throw usage_error("this option is for --ab and --aa", option, "leave it out");
  }
}

GateOutcome run_gate(const GateRequest& request) {
  if (const std::string& data = request.runs.data; !data.empty()) {
    setenv("PACELINE_DATA", fs::absolute(data).c_str(), 1);
  }
  GateOutcome outcome = request.is_stored() ? gate_stored(request) : gate_fresh(request);
  if (outcome.stopped_by != 0) return outcome;
  Judgement& judgement = outcome.judgement;
  const GateKind kind{!request.is_stored() || !request.rerun.empty(),
                      request.runs.until_decided ? request.runs.max_rounds : 0};
  judgement.red_if_resembling = red_if_rounds_resemble(judgement, kind);
  if (judgement.verdict() == Verdict::pass) judgement.sees = seen_slowdown(judgement, kind);
  if (request.aa.empty()) return outcome;
  for (const Proposal& each : propose_thresholds(judgement, request.runs.rounds)) {
    if (each.threshold) judgement.proposed[each.quantity] = *each.threshold;
  }
  return outcome;
}

GateSides make_sides(const GateRequest& request) {
  if (request.is_stored()) {
    return {.baseline_place = join(request.baseline, ", "),
            .current_place = join(request.current, ", ")};
  }
  if (request.ab.empty()) {
    const std::string self = compared_with_itself(request.aa);
    return {request.runs.baseline, request.runs.current, self, self};
  }
  return {request.runs.baseline, request.runs.current, request.ab[0], request.ab[1]};
}

Document make_document(const GateRequest& request, const Judgement& judgement) {
  Document document = gate_document(judgement, make_sides(request));
  if (request.aa.empty()) return document;
  const int rounds = request.runs.rounds;
  document.sections.push_back(
      proposals_section(propose_thresholds(judgement, rounds), request.options.thresholds, rounds));
  document.sections.back().headline = steadiness_text(judgement);
  return document;
}

std::string find_version(const fs::path& program) {
  std::error_code ignored;
  if (!fs::is_regular_file(program, ignored) || access(program.c_str(), X_OK) != 0) return "";
  const std::string said = capture_output({program.string(), "--version"});
  return said.starts_with("paceline ") ? said.substr(0, said.find('\n')) : "";
}

std::string version_of_program(const fs::path& program, const std::string& option) {
  std::error_code ignored;
  if (!fs::is_regular_file(program, ignored) || access(program.c_str(), X_OK) != 0) {
    throw usage_error("not an executable", option + " " + program.string(),
                      "give the path of a paceline binary");
  }
  const std::string line = find_version(program);
  if (!line.empty()) return line;
  throw usage_error("this is not a paceline program", option + " " + program.string(),
                    "give the path of a paceline binary");
}

}  // namespace paceline
