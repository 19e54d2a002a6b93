#include "engine/failure/rank_status.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "engine/core/child.h"
#include "engine/core/clock.h"
#include "engine/core/error.h"
#include "engine/core/hash.h"
#include "engine/core/json.h"
#include "engine/core/log.h"
#include "engine/core/output.h"
#include "engine/core/text.h"
#include "engine/failure/flight_reader.h"
#include "engine/launch/process_rank.h"

namespace paceline {

namespace {

constexpr EnumName<RankState> kStates[] = {
    {RankState::running, "running"}, {RankState::done, "done"}, {RankState::failed, "failed"}};

RankStatus status_from(const Json& json) {
  const std::string state = json.at("state");
  const auto known = value_in(kStates, state);
  if (!known) throw input_error("unknown state " + state, "", "delete the file");
  const RankStatus status = {json.at("rank"), json.at("host"),           json.at("pid"),
                             *known,          json.at("exit_code"),      json.at("message"),
                             json.at("time"), json.value("attempt", ""), json.value("size", 0)};
  if (status.rank < 0 || status.rank > kMostRanks || status.size > kMostRanks) {
    throw input_error(fmt::format("rank {} of {}", status.rank, status.size), "",
                      "delete the file");
  }
  return status;
}

RankStatus make_status(const Environment& environment, const ProcessRank& process) {
  return {process.rank,
          host_name(),
          getpid(),
          RankState::running,
          0,
          "",
          unix_seconds(),
          find_attempt(environment),
          process.size};
}

// False where it could not be written: no reason to end a run.
bool try_to_write(const std::filesystem::path& folder, const RankStatus& status) noexcept {
  const bool had_ended = status.state != RankState::running;
  try {
    write_status(folder, status);
    return true;
  } catch (const std::exception& error) {
    if (!had_ended) {
      log::warning("a post-mortem will have nothing from rank {}: {}", status.rank, error.what());
    }
    return false;
  }
}

bool end(const std::filesystem::path& folder, RankStatus& status, RankState state, int code,
         const std::string& message) {
  status.state = state;
  status.exit_code = code;
  status.message = message;
  status.time = unix_seconds();
  return try_to_write(folder, status);
}

// Returns the exit code. Where a starter of ours would print the last line and cannot know it, it
// is printed here.
int end_with_error(const std::filesystem::path& folder, RankStatus& status, const Error& error,
                   bool started_by_us) {
  const int code = exit_code(error.kind());
  const bool written = end(folder, status, RankState::failed, code, error.what());
  if (started_by_us && !written) print_note("paceline: {}\n", error.what());
  return code;
}

}  // namespace

void write_status(const std::filesystem::path& folder, const RankStatus& status) {
  const Json json = {{"rank", status.rank},
                     {"host", status.host},
                     {"pid", status.pid},
                     {"state", name_in(kStates, status.state)},
                     {"exit_code", status.exit_code},
                     {"message", status.message},
                     {"time", status.time},
                     {"attempt", status.attempt},
                     {"size", status.size}};
  // A message may quote a broken file: bytes that are not UTF-8 must not hide the error itself.
  const std::string text = json_text(json, 2) + "\n";
  replace_file(folder / fmt::format("{}.json", status.rank), text);
}

std::vector<RankStatus> read_statuses(const std::filesystem::path& folder) {
  std::vector<RankStatus> statuses;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.path().extension() != ".json") continue;
    try {
      statuses.push_back(status_from(read_json(entry.path()).value()));
    } catch (const std::exception& broken) {
      log::debug("{} left out: {}", entry.path().string(), broken.what());
    }
  }
  std::ranges::sort(statuses, {}, &RankStatus::rank);
  return statuses;
}

std::optional<std::filesystem::path> status_folder(const Environment& environment) {
  const std::string given = environment_value(environment, kStatusFolderVariable);
  if (!given.empty()) return given;
  const auto job = run_directory_of_job(environment);
  return job ? std::optional(*job / "status") : std::nullopt;
}

std::string find_attempt(const Environment& environment) {
  const std::string started = environment_value(environment, kStarterVariable);
  if (!started.empty()) return started.substr(0, 31);
  std::string ids;
  for (const char* name : {"SLURM_JOB_ID", "SLURM_RESTART_COUNT", "SLURM_STEP_ID", "PMIX_NAMESPACE",
                           "OMPI_MCA_ess_base_jobid", "PALS_APID"}) {
    ids += environment_value(environment, name) + ";";
  }
  // Of the token only so much that runs differ: others may read the name.
  ids += std::to_string(hash_value(environment_value(environment, "PACELINE_TOKEN")) % 65536);
  return hash_hex(ids);
}

std::filesystem::path pipe_of_rank_0(const std::filesystem::path& folder,
                                     const std::string& attempt, int descriptor) {
  return folder / fmt::format("{}.{}.pipe", attempt, descriptor);
}

RunFolder::RunFolder(const Environment& environment) {
  const std::string given = environment_value(environment, kStatusFolderVariable);
  if (!given.empty()) {
    try {
      make_folder(given);
      path_ = std::filesystem::absolute(given);
      return;
    } catch (const Error& error) {
      log::warning("this run will have no post-mortem ({}): {}", kStatusFolderVariable,
                   error.what());
    }
  }
  scratch_.emplace(ScratchFolder::kRunPrefix);
  path_ = scratch_->path();
}

int run_rank(const Environment& environment, const ProcessRank& process,
             const std::function<int()>& work) {
  const auto folder = status_folder(environment);
  if (!folder) return work();
  const bool started_by_us = !environment_value(environment, kStarterVariable).empty();
  std::error_code ignored;  // try_to_write() tells
  std::filesystem::create_directories(*folder, ignored);
  RankStatus status = make_status(environment, process);
  try_to_write(*folder, status);
  if (started_by_us && process.rank == 0) {
    for (const int descriptor : {STDOUT_FILENO, STDERR_FILENO}) {
      NamedPipe::redirect(descriptor, pipe_of_rank_0(*folder, status.attempt, descriptor));
    }
  }
  try {
    const int code = work();
    end(*folder, status, RankState::done, code, "");
  } catch (...) {
    const int code = end_with_error(*folder, status, caught_error(), started_by_us);
    if (!started_by_us) throw;
    return code;
  }
  return status.exit_code;
}

bool write_exit_status(const Environment& environment, const ProcessRank& process,
                       const Error& error) {
  const auto folder = status_folder(environment);
  if (!folder) return false;
  RankStatus status = make_status(environment, process);
  const bool written =
      end(*folder, status, RankState::failed, exit_code(error.kind()), error.what());
  return written && !environment_value(environment, kStarterVariable).empty();
}

void write_fatal_status(const Environment& environment, const ProcessRank& process,
                        const Error& error) {
  if (!write_exit_status(environment, process, error)) print_note("paceline: {}\n", error.what());
}

}  // namespace paceline
