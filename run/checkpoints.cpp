#include "run/checkpoints.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <vector>

#include "engine/core/environment.h"
#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/log.h"
#include "engine/input/loading/dataset.h"
#include "engine/launch/process_rank.h"
#include "engine/train/checkpoint/format.h"
#include "engine/train/checkpoint/manager.h"
#include "engine/train/events/event_log.h"
#include "run/version.h"

namespace paceline {

namespace fs = std::filesystem;

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
  throw usage_error("an earlier run left checkpoints", there.back().folder.string(),
                    "resume with --resume latest, or give another --run-dir");
}

// Where the rate falls until the run's end, its length is part of the schedule.
bool is_length_of_schedule(const Parameter& parameter, const Point& p) {
  if (Settings(p).text("schedule") != "cosine") return false;
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

constexpr std::size_t kLongestName = 200;  // of 255 bytes that file systems take

constexpr const char* kBothWays =
    "get them by: paceline data fetch resnet50-imagenet, or give --weights none or a file";

// The first by name of the weight files in the folder.
fs::path imagenet_file() {
  fs::path folder;
  try {
    folder = find_data_folder("resnet50-imagenet", {});
  } catch (const Error&) {
    throw input_error("the start weights resnet50-imagenet were not found", "weights", kBothWays);
  }
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string ending = entry.path().extension().string();
    if (ending == ".h5" || ending == ".safetensors") files.push_back(entry.path());
  }
  if (files.empty()) {
    throw input_error("the folder holds no .h5 and no .safetensors file", folder.string(),
                      kBothWays);
  }
  return *std::min_element(files.begin(), files.end());
}

}  // namespace

std::filesystem::path run_directory(const StatePlaces& places, const std::string& workload) {
  if (!places.run.empty()) return places.run;
  if (const auto job = run_directory_of_job(environment_of_process())) return *job;
  return std::filesystem::path("runs") / workload;
}

void check_state(const std::string& workload, const CheckpointConfig& config,
                 const StatePlaces& places) {
  const std::filesystem::path run = run_directory(places, workload);
  std::vector<std::string> skipped;
  if (places.resume.empty() && config.is_on()) check_nothing_in_the_way(run);
  if (!places.resume.empty() && places.resume != "latest") {
    find_resumed(places.resume, run, skipped);
  }
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
  check_state(workload, config, places);
  if (!places.resume.empty()) setup.resume = resumed_checkpoint(places, run);
  return setup;
}

EventPlaces event_places(const EventConfig& config, const std::string& workload,
                         const Point& given) {
  EventPlaces places;
  if (config.folder.empty()) return places;
  places.folder = config.folder;
  places.histogram_every = config.histogram_every;
  Point naming;
  for (const auto& [name, value] : given.values()) {
    const Parameter& parameter = *find_parameter(name);
    if (parameter.identity() && !parameter.is_file) naming.set(name, value);
  }
  places.name = naming.empty() ? workload : workload + ',' + naming.folder();
  return places;
}

EventSetup event_setup(const EventPlaces& places) {
  const std::string name =
      fmt::format("{:%Y%m%d-%H%M%S}-{}", fmt::gmtime(std::time(nullptr)), places.name)
          .substr(0, kLongestName);
  EventSetup setup{.folder = places.folder / name};
  make_folder(places.folder);
  std::error_code error;
  for (int number = 2; !std::filesystem::create_directory(setup.folder, error); ++number) {
    if (error) make_folder(setup.folder);  // throws the reason
    setup.folder = places.folder / fmt::format("{}-{}", name, number);
  }
  setup.histogram_every = places.histogram_every;
  return setup;
}

fs::path weights_file(const std::string& parameter) {
  if (parameter == "none") return {};
  if (parameter == "imagenet") return imagenet_file();
  if (fs::is_regular_file(parameter)) return parameter;
  if (fs::exists(fs::path(parameter) / kManifestFile)) {
    return fs::path(parameter) / kParametersFile;
  }
  throw input_error("there is no such weights file", parameter,
                    "give a file, a checkpoint's folder, imagenet or none");
}

}  // namespace paceline
