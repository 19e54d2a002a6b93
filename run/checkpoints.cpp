#include "run/checkpoints.h"

#include <fmt/format.h>

#include "engine/core/environment.h"
#include "engine/core/error.h"
#include "engine/core/log.h"
#include "engine/launch/run_directory.h"
#include "run/version.h"

namespace paceline {

namespace {

std::filesystem::path resumed_checkpoint(const StatePlaces& places,
                                         const std::filesystem::path& run) {
  std::vector<std::string> skipped;
  std::filesystem::path found;
  if (places.resume != "latest") {
    found = find_resumed(places.resume, run, skipped);
  } else if (const auto latest = find_latest(run, skipped)) {
    found = *latest;
  } else {
    log::info("no checkpoint in {} yet: starting from scratch", run.string());
  }
  for (const std::string& why : skipped) log::warning("skipping a newer checkpoint: {}", why);
  return found;
}

void check_nothing_in_the_way(const std::filesystem::path& run) {
  const auto there = find_checkpoints(run);
  if (there.empty()) return;
  throw Error(ErrorKind::usage, "an earlier run left checkpoints", there.back().folder.string(),
              "resume with --resume latest, or give another --run-dir");
}

// Where the rate falls until the run's end, its length is part of the schedule.
bool is_length_of_schedule(const Parameter& parameter, const Point& p) {
  const std::string schedule = Settings(p).text("schedule");
  if (schedule != "cosine" && schedule != "polynomial") return false;
  return parameter.name == (p.find("epochs") ? "epochs" : "steps");
}

std::map<std::string, ResumeFact> collect_facts(const Point& p, const std::string& data_hash) {
  std::map<std::string, ResumeFact> facts;
  facts["data_hash"] = {data_hash, OnChange::refused};
  facts["build"] = {build_id(), OnChange::announced};
  for (const Parameter& parameter : parameters()) {
    const std::optional<std::string> value = p.text(parameter.name);
    // What is always given is only absent in checkpoints of other versions.
    const bool absence_counts = parameter.is_assumed || !parameter.with.parameter.empty();
    if (!value && !absence_counts) continue;
    const OnChange change =
        parameter.on_resume == OnResume::must_match ? OnChange::refused
        : parameter.on_resume == OnResume::free && !is_length_of_schedule(parameter, p)
            ? OnChange::ignored
            : OnChange::announced;
    facts[std::string(parameter.name)] = {value, change, absence_counts};
  }
  return facts;
}

}  // namespace

std::filesystem::path run_directory(const StatePlaces& places, const std::string& workload) {
  if (!places.run.empty()) return places.run;
  if (const auto job = run_directory_of_job(environment_of_process())) return *job;
  return std::filesystem::path("runs") / workload;
}

CheckpointSetup checkpoint_setup(const std::string& workload, const Point& parameters,
                                 const CheckpointConfig& config, const StatePlaces& places,
                                 const std::string& data_hash, bool first) {
  CheckpointSetup setup;
  setup.workload = workload;
  setup.facts = collect_facts(parameters, data_hash);
  setup.schedule = config.schedule;
  setup.keep = config.keep;
  if (config.weights_only) setup.content = CheckpointContent::model;
  const std::filesystem::path run = run_directory(places, workload);
  if (config.is_on() || !places.run.empty()) setup.run = run;
  if (!first) return setup;
  if (!places.resume.empty()) {
    setup.resume = resumed_checkpoint(places, run);
  } else if (config.is_on()) {
    check_nothing_in_the_way(run);
  }
  return setup;
}

}  // namespace paceline
