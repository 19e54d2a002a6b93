#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <nlohmann/json.hpp>

#include "engine/core/json.h"
#include "engine/core/output.h"
#include "engine/core/text.h"
#include "engine/failure/verdict.h"
#include "engine/launch/program.h"
#include "run/diagnosis.h"

namespace paceline {

namespace {

constexpr int kUndecided = 2;

const char* describe_state(const RankStatus& status, bool runs) {
  switch (status.state) {
    case RankState::running:
      if (!runs) return "vanished";
      return status.host == host_name() && state_of_process(status.pid) == ProcessState::stopped
                 ? "stopped"
                 : "running";
    case RankState::done:
      return "done";
    case RankState::failed:
      return "failed";
  }
  return "?";
}

std::string time_text(double unix_seconds) {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(static_cast<std::time_t>(unix_seconds)));
}

// "step 416, bucket 3 (started)"
std::string place_text(const Flight& flight) {
  const Collective* last = flight.last_entered();
  if (last == nullptr)
    return flight.step == 0 ? "at the start" : fmt::format("step {}", flight.step);
  return fmt::format("step {}, {} ({})", last->step, last->label, to_string(last->state));
}

struct PostMortemResult {
  RunVerdict verdict;
  std::vector<int> running;
};

// A run in which a rank failed or is gone has failed, though ranks that only their rings know of,
// on other hosts, may not have ended yet.
PostMortemResult examine(const std::filesystem::path& folder, const RunArtifacts& artifacts) {
  PostMortemResult result;
  result.running = still_running(artifacts);
  bool has_failed = false, is_certain = false;
  for (const RankStatus& status : artifacts.statuses) {
    const bool runs = std::ranges::count(result.running, status.rank) > 0;
    has_failed |= !runs && status.state != RankState::done;
    is_certain |= runs && status.host == host_name();
  }
  if (result.running.empty() || (has_failed && !is_certain)) {
    result.verdict = post_mortem(folder, artifacts);
  } else {
    const std::string ranks = numbers_text(result.running);
    result.verdict = {
        kUndecided,
        is_certain
            ? fmt::format("the run still runs: rank {} did not end", ranks)
            : fmt::format("the run may still run: rank {} ran less than a minute ago", ranks),
        ""};
  }
  if (result.verdict.line.empty() && result.verdict.exit_code == 0) {
    result.verdict.line = "all ranks ended well";
  }
  return result;
}

void print_artifacts(const RunArtifacts& artifacts, const PostMortemResult& result) {
  print("a run of {}\n", counted(artifacts.ranks, "rank"));
  for (const RankStatus& status : artifacts.statuses) {
    print("  rank {} on {}, process {}: {} at {}{}{}\n", status.rank, status.host, status.pid,
          describe_state(status, std::ranges::count(result.running, status.rank) > 0),
          time_text(status.time), status.message.empty() ? "" : ": ", status.message);
  }
  for (const Flight& flight : artifacts.flights) {
    print("  replica {} on {}: {}, {} collectives{}{}\n", flight.rank, flight.host,
          place_text(flight), flight.entered, flight.waits_at.empty() ? "" : ", waiting for ",
          flight.waits_at);
  }
  print("exit code {}\n{}\n", result.verdict.exit_code, result.verdict.line);
}

Json to_json(const Collective& collective) {
  return {{"sequence", collective.sequence},    {"step", collective.step},
          {"kind", to_string(collective.kind)}, {"label", collective.label},
          {"bytes", collective.bytes},          {"state", to_string(collective.state)},
          {"queued", collective.queued},        {"started", collective.started},
          {"ended", collective.ended}};
}

void print_json(const RunArtifacts& artifacts, const PostMortemResult& result) {
  Json json = {{"exit_code", result.verdict.exit_code},
               {"line", result.verdict.line},
               {"attempt", artifacts.attempt},
               {"ranks", Json::array()},
               {"replicas", Json::array()}};
  for (const RankStatus& status : artifacts.statuses) {
    json["ranks"].push_back(
        {{"rank", status.rank},
         {"host", status.host},
         {"pid", status.pid},
         {"state", describe_state(status, std::ranges::count(result.running, status.rank) > 0)},
         {"exit_code", status.exit_code},
         {"message", status.message},
         {"time", status.time}});
  }
  for (const Flight& flight : artifacts.flights) {
    Json collectives = Json::array();
    for (const Collective& collective : flight.recent) collectives.push_back(to_json(collective));
    json["replicas"].push_back({{"rank", flight.rank},
                                {"task", flight.task},
                                {"host", flight.host},
                                {"pid", flight.pid},
                                {"step", flight.step},
                                {"entered", flight.entered},
                                {"waits_at", flight.waits_at},
                                {"beat", flight.beat},
                                {"collectives", collectives}});
  }
  print("{}\n", json_text(json, 2));
}

}  // namespace

int print_post_mortem(const std::filesystem::path& folder, bool json) {
  const RunArtifacts artifacts = remains_of_latest(folder);
  const PostMortemResult result = examine(folder, artifacts);
  if (json) {
    print_json(artifacts, result);
  } else {
    print_artifacts(artifacts, result);
  }
  return result.verdict.exit_code;
}

}  // namespace paceline
