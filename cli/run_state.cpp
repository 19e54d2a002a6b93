#include "cli/run_state.h"

#include <fmt/format.h>

#include "cli/version.h"
#include "engine/core/environment.h"
#include "engine/core/error.h"
#include "engine/core/log.h"
#include "engine/launch/run_directory.h"

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
    log::info("no checkpoint in {} yet: starting afresh", run.string());
  }
  for (const std::string& why : skipped) log::warning("a newer checkpoint is left out: {}", why);
  return found;
}

void check_nothing_in_the_way(const std::filesystem::path& run) {
  const auto there = find_checkpoints(run);
  if (there.empty()) return;
  throw Error(ErrorKind::usage, "an earlier run left checkpoints", there.back().folder.string(),
              "go on with --resume latest, or give another --run-dir");
}

}  // namespace

bool keeps_checkpoints(const Point& parameters) {
  return parameters.find("checkpoint_every") != nullptr;
}

void check_checkpoints(const Point& parameters) {
  if (const auto every = parameters.text("checkpoint_every")) {
    checkpoint_schedule_of(*every, "");
  } else if (parameters.find("keep")) {
    throw Error(ErrorKind::usage, "keep is for checkpoints, and none are written", "",
                "give --checkpoint-every too");
  }
}

std::filesystem::path run_directory(const StatePlaces& places, const std::string& workload) {
  if (!places.run.empty()) return places.run;
  if (const auto job = run_directory_of_job(environment_of_process())) return *job;
  return std::filesystem::path("runs") / workload;
}

CheckpointSetup checkpoint_setup(const std::string& workload, const Point& parameters,
                                 const StatePlaces& places, const std::string& data_hash,
                                 bool first) {
  CheckpointSetup setup;
  setup.workload = workload;
  for (const auto& [name, value] : parameters.values()) setup.facts[name] = to_text(value);
  setup.facts["data_hash"] = data_hash;
  setup.facts["build"] = build_id();
  const std::filesystem::path run = run_directory(places, workload);
  if (const auto every = parameters.text("checkpoint_every")) {
    setup.schedule = checkpoint_schedule_of(*every, "");
    setup.keep = static_cast<int>(parameters.integer("keep").value_or(0));
  }
  if (keeps_checkpoints(parameters) || !places.run.empty()) setup.run = run;
  if (!first) return setup;
  if (!places.resume.empty()) {
    setup.resume = resumed_checkpoint(places, run);
  } else if (keeps_checkpoints(parameters)) {
    check_nothing_in_the_way(run);
  }
  return setup;
}

}  // namespace paceline
