#include "engine/launch/status.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <nlohmann/json.hpp>

#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/json.h"
#include "engine/core/log.h"

namespace paceline {

namespace {

constexpr std::array<const char*, 3> kStates = {"running", "done", "failed"};

double unix_seconds() {
  using Seconds = std::chrono::duration<double>;
  return Seconds(std::chrono::system_clock::now().time_since_epoch()).count();
}

RankStatus status_from(const Json& json) {
  RankStatus status;
  json.at("rank").get_to(status.rank);
  json.at("host").get_to(status.host);
  json.at("pid").get_to(status.pid);
  const std::string state = json.at("state");
  const auto found = std::find(kStates.begin(), kStates.end(), state);
  if (found == kStates.end()) throw Error(ErrorKind::input, "unknown state " + state);
  status.state = static_cast<RankState>(found - kStates.begin());
  json.at("exit_code").get_to(status.exit_code);
  json.at("message").get_to(status.message);
  json.at("time").get_to(status.time);
  return status;
}

void end(const std::filesystem::path& folder, RankStatus& status, RankState state, int code,
         const std::string& message) {
  status.state = state;
  status.exit_code = code;
  status.message = message;
  status.time = unix_seconds();
  write_status(folder, status);
}

}  // namespace

void write_status(const std::filesystem::path& folder, const RankStatus& status) {
  const Json json = {{"rank", status.rank},
                     {"host", status.host},
                     {"pid", status.pid},
                     {"state", kStates[static_cast<std::size_t>(status.state)]},
                     {"exit_code", status.exit_code},
                     {"message", status.message},
                     {"time", status.time}};
  // A message may quote a broken file: bytes that are not UTF-8 must not hide the error itself.
  const std::string text = json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
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
  std::sort(statuses.begin(), statuses.end(),
            [](const RankStatus& a, const RankStatus& b) { return a.rank < b.rank; });
  return statuses;
}

RunFolder::RunFolder() {
  std::error_code error;
  const auto base = std::filesystem::temp_directory_path(error);
  std::string name = ((error ? "/tmp" : base) / "paceline-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) {
    throw Error(ErrorKind::input, fmt::format("cannot make a folder: {}", std::strerror(errno)),
                name, "set TMPDIR to a folder with free space that can be written");
  }
  path_ = name;
}

RunFolder::~RunFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

int run_rank(const Environment& environment, const Place& place, const std::function<int()>& work) {
  const auto variable = environment.find(kRunFolderVariable);
  if (variable == environment.end() || variable->second.empty()) return work();
  const std::filesystem::path folder = variable->second;
  RankStatus status{place.rank, host_name(), getpid(), RankState::running, 0, "", unix_seconds()};
  write_status(folder, status);
  try {
    const int code = work();
    end(folder, status, RankState::done, code, "");
  } catch (const Error& error) {
    end(folder, status, RankState::failed, exit_code(error.kind()), error.what());
  } catch (const std::bad_alloc&) {
    end(folder, status, RankState::failed, exit_code(ErrorKind::internal), kOutOfMemory);
  } catch (const std::exception& error) {
    end(folder, status, RankState::failed, exit_code(ErrorKind::internal),
        fmt::format("internal error: {}; please report it with the command", error.what()));
  }
  return status.exit_code;
}

bool write_down_end(const Environment& environment, const Place& place, const Error& error) {
  const auto variable = environment.find(kRunFolderVariable);
  if (variable == environment.end() || variable->second.empty()) return false;
  RankStatus status{place.rank, host_name(), getpid(), RankState::running, 0, "", 0};
  end(variable->second, status, RankState::failed, exit_code(error.kind()), error.what());
  return true;
}

void leave_last_words(const Environment& environment, const Place& place, const Error& error) {
  if (!write_down_end(environment, place, error))
    fmt::print(stderr, "paceline: {}\n", error.what());
}

}  // namespace paceline
