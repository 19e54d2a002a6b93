#include "engine/launch/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <optional>
#include <string_view>

#include "engine/core/error.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

struct Death {
  int rank = 0;
  int signal = 0;
};

// The whole number after the next `words` in `text`, which is cut to what follows.
std::optional<int> number_after(std::string_view& text, std::string_view words) {
  const std::size_t at = text.find(words);
  if (at == std::string_view::npos) return std::nullopt;
  text.remove_prefix(at + words.size());
  const auto number = to_integer(text.substr(0, text.find_first_not_of("0123456789")));
  return number ? std::optional(static_cast<int>(*number)) : std::nullopt;
}

// "process rank 1 with PID 0 on node n exited on signal 9 (Killed)."
std::optional<Death> death_by_open_mpi(std::string_view noise) {
  const auto rank = number_after(noise, "process rank ");
  const auto signal = number_after(noise, "on signal ");
  if (!rank || !signal) return std::nullopt;
  return Death{*rank, *signal};
}

// "PID 4242 RUNNING AT n" and, after it, "EXIT STRING: Killed (signal 9)".
std::optional<Death> death_by_hydra(std::string_view noise,
                                    const std::vector<RankStatus>& statuses) {
  const auto pid = number_after(noise, " PID ");
  const auto signal = number_after(noise, "(signal ");
  if (!pid || !signal) return std::nullopt;
  for (const RankStatus& status : statuses) {
    if (status.pid == *pid) return Death{status.rank, *signal};
  }
  return std::nullopt;
}

std::optional<Death> death_in(const std::string& noise, const std::vector<RankStatus>& statuses) {
  const auto death = death_by_open_mpi(noise);
  return death ? death : death_by_hydra(noise, statuses);
}

bool is_own(const RankStatus& status) {
  const ErrorKind kind = kind_of_exit_code(status.exit_code);
  return kind != ErrorKind::peer_lost && kind != ErrorKind::stall;
}

bool is_stall(const RankStatus& status) {
  return kind_of_exit_code(status.exit_code) == ErrorKind::stall;
}

template <typename Condition>
const RankStatus* earliest_failure(const std::vector<RankStatus>& statuses, Condition condition) {
  const RankStatus* first = nullptr;
  for (const RankStatus& status : statuses) {
    if (status.state != RankState::failed || !condition(status)) continue;
    if (first == nullptr || status.time < first->time) first = &status;
  }
  return first;
}

// Names the rank, unless its message does or all ranks say the same.
Verdict told_by(const RankStatus& status, int ranks, const std::vector<RankStatus>& statuses) {
  const auto same = std::count_if(statuses.begin(), statuses.end(), [&](const RankStatus& other) {
    return other.message == status.message;
  });
  const bool named = status.message.starts_with("rank ") || same == ranks;
  return {status.exit_code,
          named ? status.message : fmt::format("rank {}: {}", status.rank, status.message), ""};
}

std::string host_of(int rank, const std::vector<RankStatus>& statuses) {
  for (const RankStatus& status : statuses) {
    if (status.rank == rank) return " on " + status.host;
  }
  return "";
}

Verdict killed(const Death& death, const std::vector<RankStatus>& statuses) {
  const Error error(
      ErrorKind::peer_lost,
      fmt::format("rank {}{} died of signal {} ({})", death.rank, host_of(death.rank, statuses),
                  death.signal, strsignal(death.signal)),
      "",
      death.signal == SIGKILL ? "see the kernel's log: most often memory ran out"
                              : "please report it with the command");
  return {exit_code(error.kind()), error.what(), ""};
}

int worst_code_of_done(const std::vector<RankStatus>& statuses) {
  int code = 0;
  for (const RankStatus& status : statuses) {
    if (status.state == RankState::done) code = std::max(code, status.exit_code);
  }
  return code;
}

std::vector<std::string> vanished(int ranks, const std::vector<RankStatus>& statuses) {
  std::vector<std::string> gone;
  for (int rank = 0; rank < ranks; ++rank) {
    const bool told = std::any_of(statuses.begin(), statuses.end(), [&](const RankStatus& status) {
      return status.rank == rank && status.state != RankState::running;
    });
    if (!told) gone.push_back(std::to_string(rank));
  }
  return gone;
}

Verdict not_started(const Watch& launcher, const std::string& noise) {
  const Error error(ErrorKind::internal,
                    launcher.end.signal != 0
                        ? fmt::format("the launcher died of signal {}", launcher.end.signal)
                        : fmt::format("the launcher ended with code {} before any rank began",
                                      launcher.end.exit_code),
                    "mpirun", "see its words above, or try it with paceline doctor");
  return {exit_code(error.kind()), error.what(), noise};
}

Verdict silent(const std::vector<std::string>& gone, const std::string& noise) {
  const Error error(ErrorKind::peer_lost,
                    fmt::format("rank{} {} vanished without a word", gone.size() == 1 ? "" : "s",
                                join(gone, ", ")),
                    "", "see the launcher's words and the kernel's log");
  return {exit_code(error.kind()), error.what(), noise};
}

}  // namespace

namespace {

// What all launchers have in common, in the order of verdict.h. `death`: a rank that was killed;
// `unheard`: what is said where no rank told anything, or nothing more can be.
template <typename Death_, typename Unheard>
Verdict judge_ranks(int ranks, const std::vector<RankStatus>& statuses, int stopped_by,
                    const Death_& death, const Unheard& unheard) {
  if (const RankStatus* own = earliest_failure(statuses, is_own)) {
    return told_by(*own, ranks, statuses);
  }
  // A rank that ended with a code said what there was to say; a launcher then stops the others,
  // wherever they are.
  if (const int code = worst_code_of_done(statuses); code != 0) return {code, "", ""};
  const auto gone = vanished(ranks, statuses);
  const RankStatus* failed = earliest_failure(statuses, [](const RankStatus&) { return true; });
  if (stopped_by != 0 && (failed != nullptr || !gone.empty())) {
    return {128 + stopped_by,
            fmt::format("stopped by signal {} ({})", stopped_by, strsignal(stopped_by)), ""};
  }
  if (const auto dead = death()) return killed(*dead, statuses);
  if (const RankStatus* stalled = earliest_failure(statuses, is_stall)) {
    return told_by(*stalled, ranks, statuses);
  }
  if (!gone.empty()) return unheard(gone);
  if (failed != nullptr) return told_by(*failed, ranks, statuses);
  return {};
}

// Of those that a signal ended, one that we did not have to stop ourselves.
std::optional<Death> death_of_child(const std::vector<ChildEnd>& ends) {
  std::optional<Death> found;
  for (std::size_t rank = 0; rank < ends.size(); ++rank) {
    const int number = ends[rank].signal;
    if (number == 0 || (found && number == SIGTERM)) continue;
    if (!found || found->signal == SIGTERM) found = Death{static_cast<int>(rank), number};
  }
  return found;
}

Verdict not_executed(const WatchOfMany& watch, const std::string& program) {
  const Error error(
      ErrorKind::internal,
      fmt::format("the ranks ended with code {} before they began", watch.ends.front().exit_code),
      program, "see whether this program can be started here");
  return {exit_code(error.kind()), error.what(), ""};
}

}  // namespace

Verdict judge(int ranks, const std::vector<RankStatus>& statuses, const Watch& launcher,
              const std::string& noise) {
  return judge_ranks(
      ranks, statuses, launcher.stopped_by, [&] { return death_in(noise, statuses); },
      [&](const std::vector<std::string>& gone) {
        return statuses.empty() ? not_started(launcher, noise) : silent(gone, noise);
      });
}

Verdict judge(const std::vector<RankStatus>& statuses, const WatchOfMany& watch,
              const std::string& program) {
  return judge_ranks(
      static_cast<int>(watch.ends.size()), statuses, watch.stopped_by,
      [&] { return death_of_child(watch.ends); },
      [&](const std::vector<std::string>& gone) {
        return statuses.empty() ? not_executed(watch, program) : silent(gone, "");
      });
}

}  // namespace paceline
