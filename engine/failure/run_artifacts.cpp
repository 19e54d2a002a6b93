#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "engine/core/clock.h"
#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/json.h"
#include "engine/core/log.h"
#include "engine/failure/verdict.h"
#include "engine/launch/program.h"

namespace paceline {

namespace {

constexpr char kVerdictFile[] = "verdict.json";
constexpr double kLongestBeat = 60;  // rings beat every second, but other hosts see it later

std::optional<RunVerdict> find_verdict(const std::filesystem::path& folder,
                                       const std::string& attempt) {
  std::error_code ignored;
  if (!std::filesystem::exists(folder / kVerdictFile, ignored)) return std::nullopt;
  try {
    const JsonDocument document = read_json(folder / kVerdictFile);
    const Json& json = document.value();
    if (json.at("attempt") != attempt) return std::nullopt;
    return RunVerdict{json.at("exit_code").get<int>(), json.at("line").get<std::string>(), ""};
  } catch (const std::exception& error) {
    log::debug("{} left out: {}", kVerdictFile, error.what());
    return std::nullopt;
  }
}

bool is_alive(const RankStatus& status, const std::vector<Flight>& flights) {
  if (status.host == host_name()) return state_of_process(status.pid) != ProcessState::none;
  return std::ranges::any_of(flights, [&](const Flight& flight) {
    return flight.task == status.rank && unix_seconds() - flight.beat < kLongestBeat;
  });
}

}  // namespace

FailureSnapshot latest_snapshot(const RunArtifacts& artifacts) {
  double when = std::numeric_limits<double>::infinity();
  for (const RankStatus& status : artifacts.statuses) {
    if (status.state == RankState::failed) when = std::min(when, status.time);
  }
  return FailureSnapshot(artifacts.flights, when);
}

RunArtifacts load_run_artifacts(const std::filesystem::path& folder, const std::string& attempt) {
  RunArtifacts artifacts;
  artifacts.attempt = attempt;
  for (const RankStatus& status : read_statuses(folder)) {
    if (status.attempt != attempt || status.rank < 0) continue;
    artifacts.statuses.push_back(status);
    artifacts.ranks = std::max({artifacts.ranks, status.size, status.rank + 1});
  }
  for (Flight& flight : read_flights(folder)) {
    if (flight.attempt == attempt) artifacts.flights.push_back(std::move(flight));
  }
  return artifacts;
}

RunArtifacts remains_of_latest(const std::filesystem::path& folder) {
  if (!std::filesystem::is_directory(folder)) {
    throw input_error("not a folder", folder.string(), "give the status folder of a run");
  }
  const auto statuses = read_statuses(folder);
  const auto latest = std::ranges::max_element(statuses, {}, &RankStatus::time);
  if (latest == statuses.end()) {
    throw input_error("the folder has no files of a run", folder.string(),
                      "give the status folder of a run: RUN/status");
  }
  return load_run_artifacts(folder, latest->attempt);
}

std::vector<int> still_running(const RunArtifacts& artifacts) {
  std::vector<int> ranks;
  for (const RankStatus& status : artifacts.statuses) {
    if (status.state == RankState::running && is_alive(status, artifacts.flights)) {
      ranks.push_back(status.rank);
    }
  }
  return ranks;
}

void write_verdict(const std::filesystem::path& folder, const std::string& attempt,
                   const RunVerdict& verdict) {
  const Json json = {{"attempt", attempt},
                     {"exit_code", verdict.exit_code},
                     {"line", verdict.line},
                     {"time", unix_seconds()}};
  replace_file(folder / kVerdictFile, json_text(json, 2) + "\n");
}

RunVerdict post_mortem(const std::filesystem::path& folder, const RunArtifacts& artifacts) {
  if (const auto stored = find_verdict(folder, artifacts.attempt)) return *stored;
  return judge_remains(artifacts.ranks, artifacts.statuses, latest_snapshot(artifacts));
}

}  // namespace paceline
