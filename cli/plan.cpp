// paceline plan SPEC --detect 3%
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "analysis/gate/quantity.h"
#include "analysis/gate/side.h"
#include "analysis/plan/design.h"
#include "analysis/study/labels.h"
#include "cli/study_options.h"
#include "cli/verb.h"
#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/launch/topology.h"
#include "results/store.h"
#include "run/plan_study.h"

namespace paceline {

namespace {

namespace fs = std::filesystem;

constexpr char kPlanFooter[] = R"(Examples:
  paceline plan sweeps/quick.json --detect 3% --pilot results/local/quick
  paceline plan sweeps/nyu-cassava.json --detect 5% --noise 1.5%
  paceline plan sweeps/quick.json --detect 3% --noise 1% --rounds 10 --threshold 1.5%

A pilot is a study of the same points, or of some of them: 5 repeats show how runs vary, 3 days how
sessions do. Nothing is run and nothing is sent. What the plan rests on: docs/plan.md)";

struct PlanArguments {
  std::string spec, detect, noise, power = "95%", threshold = "2.5%";
  std::vector<std::string> pilot, set;
  int rounds = 5;
  DocumentArguments output;
};

Noise estimate_noise(const PlanArguments& arguments, std::vector<std::string>& notes) {
  if (arguments.pilot.empty() == arguments.noise.empty()) {
    throw usage_error(arguments.noise.empty() ? "how much runs vary is not known"
                                              : "the noise is stated and there is a pilot",
                      "",
                      arguments.noise.empty()
                          ? "give --pilot STUDY, or how much equal runs vary, such as --noise 1%"
                          : "give one of --pilot and --noise");
  }
  if (!arguments.noise.empty()) {
    return stated_noise(parse_threshold(arguments.noise, "--noise", "noise"));
  }
  const StoreContent content =
      load_stores(std::vector<fs::path>(arguments.pilot.begin(), arguments.pilot.end()));
  notes = ignored_records(content);
  return estimate_noise(content);
}

// Points that this machine cannot run are planned, too.
DesignRequest make_request(const PlanArguments& arguments) {
  Spec spec = read_spec(arguments.spec);
  for (const std::string& assignment : arguments.set) override_axis(spec, assignment);
  const Expansion expansion =
      expand(spec, {topology_of_machine().usable_cores(), true, {}}, Unbuilt::keep);
  DesignRequest request;
  request.study = spec.name;
  request.workload = spec.workload;
  for (const PlannedPoint& planned : expansion.points) {
    if (planned.parameters.find(kControl)) continue;
    request.points.push_back(
        subject_name(spec.name, spec.workload, planned.parameters, planned.point.text()));
    request.on_cores = request.on_cores && planned.layout.replicas_are_cores;
  }
  request.detect = parse_threshold(arguments.detect, "--detect", "change");
  request.power = parse_threshold(arguments.power, "--power", "probability");
  if (request.power < 0.5 || request.power > 0.999) {
    throw usage_error("the power is not from 50 % to 99.9 %", "--power",
                      "give the chance of finding the change, such as 95%");
  }
  request.rounds = arguments.rounds;
  request.threshold = parse_threshold(arguments.threshold, "--threshold");
  return request;
}

int plan(const PlanArguments& arguments) {
  std::vector<std::string> notes;
  const DesignRequest request = make_request(arguments);
  Noise noise = estimate_noise(arguments, notes);
  if (!noise.level("run").sd) {
    throw input_error(
        "the pilot does not show how runs vary: no point has two runs in a "
        "session",
        "--pilot", "run it with --repeats 5, or state the noise with --noise");
  }
  noise.notes.insert(noise.notes.end(), notes.begin(), notes.end());
  const std::size_t known = count_where(
      request.points, [&](const std::string& name) { return noise.points.contains(name); });
  if (!noise.points.empty() && known < request.points.size()) {
    noise.notes.push_back(fmt::format(
        "{} of {} points have no runs in the pilot, and are planned as noisy as those that have",
        request.points.size() - known, request.points.size()));
  }
  print_documents({design_document(make_design(request, noise))}, arguments.output);
  return EXIT_SUCCESS;
}

}  // namespace

void add_plan(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<PlanArguments>();
  CLI::App* verb =
      app.add_subcommand("plan", "Plan how often to run to see a change, and what that costs");
  verb->footer(kPlanFooter);
  verb->add_option("spec", arguments->spec, "a sweep spec: a file, or the name of one that ships")
      ->required();
  add_value(*verb, "--detect PERCENT", arguments->detect, "the change of time to find")->required();
  add_value(*verb, "--pilot STUDY", arguments->pilot, "studies that show the noise (repeatable)")
      ->allow_extra_args(false);
  add_value(*verb, "--noise PERCENT", arguments->noise,
            "instead of a pilot: how much a run's time varies in a session (sd)");
  add_setting(*verb, "--power PERCENT", arguments->power, "chance of finding that change");
  add_setting(*verb, "--rounds", arguments->rounds, "rounds of the gate as it is")
      ->check(CLI::Range(3, 200));
  add_setting(*verb, "--threshold PERCENT", arguments->threshold, "threshold of the gate as it is");
  add_value(*verb, "--set AXIS=VALUE", arguments->set,
            "replace values of the spec (or AXIS=V1,V2; repeatable)")
      ->expected(1)
      ->take_all();
  add_format_options(*verb, arguments->output);
  verb->callback([arguments, &action] { action = [arguments] { return plan(*arguments); }; });
}

}  // namespace paceline
