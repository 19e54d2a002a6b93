#include "engine/failure/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <optional>
#include <set>
#include <string_view>

#include "engine/core/error.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

// The death of one rank; if several are named, of one of these.
struct Death {
  std::vector<int> ranks;
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

// "process rank 1 with PID 0 on node n exited on signal 9 (Killed)." Open MPI 5 breaks lines in it.
std::optional<Death> death_by_open_mpi(std::string words) {
  std::replace(words.begin(), words.end(), '\n', ' ');
  std::string_view noise = words;
  const auto rank = number_after(noise, "process rank ");
  const auto signal = number_after(noise, "on signal ");
  if (!rank || !signal) return std::nullopt;
  return Death{{*rank}, *signal};
}

// Ranks that did not write down how they ended.
std::vector<int> ranks_without_status(int ranks, const std::vector<RankStatus>& statuses) {
  std::set<int> reported;
  for (const RankStatus& status : statuses) {
    if (status.state != RankState::running) reported.insert(status.rank);
  }
  std::vector<int> gone;
  for (int rank = 0; rank < ranks; ++rank) {
    if (reported.count(rank) == 0) gone.push_back(rank);
  }
  return gone;
}

// "PID 4242 RUNNING AT n" and, after it, "EXIT STRING: Killed (signal 9)". It is the first rank
// whose end was bad when Hydra looked, and Hydra kills the others at once: the one that died by
// itself may be a later one, if that wrote down no end.
std::optional<Death> death_by_hydra(int ranks, std::string_view words,
                                    const std::vector<RankStatus>& statuses) {
  const std::size_t block = words.find("BAD TERMINATION");
  if (block == std::string_view::npos) return std::nullopt;
  words.remove_prefix(block);
  const auto pid = number_after(words, " PID ");
  const auto signal = number_after(words, "(signal ");
  const auto named = std::ranges::find(statuses, pid, &RankStatus::pid);
  if (!pid || !signal || named == statuses.end()) return std::nullopt;
  Death death{{named->rank}, *signal};
  for (const int rank : ranks_without_status(ranks, statuses)) {
    if (rank > named->rank) death.ranks.push_back(rank);
  }
  return death;
}

std::optional<Death> death_in(int ranks, const LauncherWords& words,
                              const std::vector<RankStatus>& statuses) {
  if (const auto death = death_by_open_mpi(words.errors)) return death;
  const auto death = death_by_hydra(ranks, words.errors, statuses);  // Intel MPI's
  return death ? death : death_by_hydra(ranks, words.output, statuses);
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
RunVerdict verdict_from(const RankStatus& status, int ranks,
                        const std::vector<RankStatus>& statuses) {
  const auto same = std::ranges::count(statuses, status.message, &RankStatus::message);
  const bool named = status.message.starts_with("rank ") || same == ranks;
  return {status.exit_code,
          named ? status.message : fmt::format("rank {}: {}", status.rank, status.message), ""};
}

std::string find_host(int rank, const std::vector<RankStatus>& statuses) {
  for (const RankStatus& status : statuses) {
    if (status.rank == rank) return " on " + status.host;
  }
  return "";
}

// A process by its number, with its replicas where these are numbered otherwise.
std::string name_of_process(int task, const std::vector<RankStatus>& statuses,
                            const FailureSnapshot& snapshot) {
  const std::vector<int> replicas = snapshot.replicas_of_task(task);
  if (replicas.size() > 1) return snapshot.format_ranks(replicas);
  return fmt::format("rank {}{}", task, find_host(task, statuses));
}

RunVerdict judge_error(const Error& error, const std::string& noise = "") {
  return {exit_code(error.kind()), error.what(), noise};
}

// A program that fails never sends these to itself.
const char* suggest_cure(int signal) {
  switch (signal) {
    case SIGKILL:
      return "see the kernel's log: most often memory ran out";
    case SIGTERM:
    case SIGINT:
    case SIGHUP:
    case SIGQUIT:
    case SIGUSR1:
    case SIGUSR2:
      return "see who sent it: most often a batch system or an administrator";
    case SIGXCPU:
    case SIGXFSZ:
      return "raise the limit (ulimit -a)";
    default:
      return "please report it with the command";
  }
}

RunVerdict killed(const Death& death, const std::vector<RankStatus>& statuses,
                  const FailureSnapshot& snapshot) {
  const int first = death.ranks.front();
  const bool known = death.ranks.size() == 1;
  const std::string who = known ? name_of_process(first, statuses, snapshot)
                                : fmt::format("one of ranks {}", numbers_text(death.ranks));
  return judge_error(
      Error(ErrorKind::peer_lost,
            fmt::format("{} died of signal {} ({}){}", who, death.signal, strsignal(death.signal),
                        known ? snapshot.words_on(snapshot.replicas_of_task(first)) : ""),
            "", suggest_cure(death.signal)));
}

// Who came last stopped; where the rings do not know, whoever waited does.
RunVerdict stalled(const RankStatus& status, int ranks, const std::vector<RankStatus>& statuses,
                   const FailureSnapshot& snapshot) {
  const std::vector<int> late = snapshot.late();
  const bool all_waited = status.message.find(kFirstSum) != std::string::npos;
  if (late.empty() || all_waited) return verdict_from(status, ranks, statuses);
  return judge_error(
      Error(ErrorKind::stall,
            fmt::format("{} stopped{}", snapshot.format_ranks(late), snapshot.words_on(late)), "",
            "see what it was doing: stopped, out of memory, in a file system that hangs"));
}

int worst_code_of_done(const std::vector<RankStatus>& statuses) {
  int code = 0;
  for (const RankStatus& status : statuses) {
    if (status.state == RankState::done) code = std::max(code, status.exit_code);
  }
  return code;
}

// `unclear`: the kind of an end whose code is none of ours.
RunVerdict ended_with(const std::string& who, int code, const std::string& when,
                      const std::string& where, const std::string& fix,
                      ErrorKind unclear = ErrorKind::internal) {
  const ErrorKind kind = kind_of_exit_code(code);
  return judge_error(Error(kind == ErrorKind::internal ? unclear : kind,
                           fmt::format("{} ended with code {} {}", who, code, when), where, fix));
}

// What was seen of the ranks from outside.
struct Sight {
  std::optional<Death> death = {};
  std::vector<int> vanished = {};  // ended without a word, unasked
  RunVerdict of_vanished = {};     // said where `vanished` is not empty
  RunVerdict of_bad_end = {};      // said where all ranks wrote down that all is well
  const FailureSnapshot* snapshot = nullptr;
};

RunVerdict judge_ranks(int ranks, const std::vector<RankStatus>& statuses, int stopped_by,
                       const Sight& sight) {
  if (const RankStatus* own = earliest_failure(statuses, is_own)) {
    return verdict_from(*own, ranks, statuses);
  }
  // A rank that ended with a code said what there was to say; a launcher then stops the others,
  // wherever they are.
  if (const int code = worst_code_of_done(statuses); code != 0) return {code, "", ""};
  const RankStatus* failed = earliest_failure(statuses, [](const RankStatus&) { return true; });
  const bool complete = failed == nullptr && ranks_without_status(ranks, statuses).empty();
  if (stopped_by != 0 && !complete) {
    return {128 + stopped_by,
            fmt::format("stopped by signal {} ({})", stopped_by, strsignal(stopped_by)), ""};
  }
  // A launcher kills the rank that hangs, once the others have given it up.
  const RankStatus* stall = earliest_failure(statuses, is_stall);
  const bool is_cause = sight.death && (stall == nullptr || sight.death->signal != SIGKILL);
  if (is_cause) return killed(*sight.death, statuses, *sight.snapshot);
  if (stall != nullptr) return stalled(*stall, ranks, statuses, *sight.snapshot);
  if (!sight.vanished.empty()) return sight.of_vanished;
  if (failed != nullptr) return verdict_from(*failed, ranks, statuses);
  return stopped_by != 0 ? RunVerdict{} : sight.of_bad_end;
}

// A launcher ends the others as soon as one is gone: where several vanished, the first to do so is
// who came last.
RunVerdict silent(const std::vector<int>& gone, const std::vector<RankStatus>& statuses,
                  const FailureSnapshot& snapshot, const std::string& see,
                  const std::string& words) {
  const std::vector<int> first =
      gone.size() == 1 ? snapshot.replicas_of_task(gone[0]) : snapshot.late_processes();
  std::string who = fmt::format("ranks {}", numbers_text(gone));
  if (gone.size() == 1) who = name_of_process(gone[0], statuses, snapshot);
  if (gone.size() > 1 && !first.empty()) who = snapshot.format_ranks(first);
  return judge_error(
      Error(ErrorKind::peer_lost,
            fmt::format("{} ended without reporting an error{}", who, snapshot.words_on(first)), "",
            "see " + see),
      words);
}

RunVerdict launcher_failed(const Watch& launcher, const std::string& when, const std::string& words,
                           ErrorKind unclear) {
  const std::string see = "see its words above, or try it with paceline doctor";
  RunVerdict verdict =
      launcher.end.signal != 0
          ? judge_error(Error(
                unclear,
                fmt::format("the launcher was killed by signal {} {}", launcher.end.signal, when),
                "mpirun", see))
          : ended_with("the launcher", launcher.end.exit_code, when, "mpirun", see, unclear);
  verdict.noise = words;
  return verdict;
}

// The first child in rank order that a signal ended unasked.
std::optional<Death> death_of_child(const std::vector<ChildEnd>& ends) {
  for (std::size_t rank = 0; rank < ends.size(); ++rank) {
    if (ends[rank].signal == 0 || ends[rank].asked_to_stop) continue;
    return Death{{static_cast<int>(rank)}, ends[rank].signal};
  }
  return std::nullopt;
}

RunVerdict of_vanished_children(const std::vector<int>& vanished,
                                const std::vector<RankStatus>& statuses,
                                const std::vector<ChildEnd>& ends, const std::string& program) {
  if (vanished.empty()) return {};
  const auto not_found = std::ranges::count(ends, 127, &ChildEnd::exit_code);
  if (statuses.empty() && not_found == std::ssize(ends)) {
    return judge_error(Error(ErrorKind::internal, "this program cannot be executed", program,
                             "check that it exists and is built for this machine"));
  }
  const int rank = vanished.front();
  return ended_with(fmt::format("rank {}", rank), ends[static_cast<std::size_t>(rank)].exit_code,
                    "and did not write down why", "", "see its words above");
}

RunVerdict of_badly_ended_child(const std::vector<ChildEnd>& ends) {
  for (std::size_t rank = 0; rank < ends.size(); ++rank) {
    if (ends[rank].exit_code == 0 || ends[rank].asked_to_stop) continue;
    return ended_with(fmt::format("rank {}", rank), ends[rank].exit_code, "after its work was done",
                      "", "see its words above");
  }
  return {};
}

template <typename Condition>
std::vector<int> ranks_where(const std::vector<Flight>& flights, Condition holds) {
  return mapped_if(flights, holds, &Flight::rank);
}

constexpr double kSilence = 1.5;  // seconds; a ring beats at least once in one
constexpr double kLongWait = 2;   // seconds

// "step 416, bucket 3", "barrier before the first step".
std::string describe_place(const Flight& flight) {
  const Collective* last = flight.last_entered();
  if (last == nullptr) return "the start";
  return last->step == 0 ? fmt::format("{} before the first step", last->label)
                         : fmt::format("step {}, {}", last->step, last->label);
}

// ", waiting for its next batch", where it had done so for long; everybody waits a little.
std::string describe_wait(const Flight& flight, double when) {
  const bool for_long = flight.last_beat(when) - flight.waits_since > kLongWait;
  return flight.waits_at.empty() || !for_long ? "" : ", waiting for " + flight.waits_at;
}

}  // namespace

RunVerdict judge(int ranks, const std::vector<RankStatus>& statuses, const Watch& launcher,
                 const LauncherWords& words, const FailureSnapshot& snapshot) {
  Sight sight{.death = death_in(ranks, words, statuses),
              .vanished = ranks_without_status(ranks, statuses),
              .snapshot = &snapshot};
  sight.of_vanished =
      statuses.empty() ? launcher_failed(launcher, "before any rank began", words.errors,
                                         ErrorKind::peer_lost)  // no slots, a broken installation
                       : silent(sight.vanished, statuses, snapshot,
                                "the launcher's words and the kernel's log", words.errors);
  if (launcher.end.exit_code != 0 || launcher.end.signal != 0) {
    sight.of_bad_end = launcher_failed(launcher, "after the ranks' work was done", words.errors,
                                       ErrorKind::internal);
  }
  return judge_ranks(ranks, statuses, launcher.stopped_by, sight);
}

RunVerdict judge(const std::vector<RankStatus>& statuses, const WatchOfMany& watch,
                 const std::string& program, const FailureSnapshot& snapshot) {
  const int ranks = static_cast<int>(watch.ends.size());
  Sight sight{.death = death_of_child(watch.ends), .snapshot = &snapshot};
  for (const int rank : ranks_without_status(ranks, statuses)) {
    if (!watch.ends[static_cast<std::size_t>(rank)].asked_to_stop) sight.vanished.push_back(rank);
  }
  sight.of_vanished = of_vanished_children(sight.vanished, statuses, watch.ends, program);
  sight.of_bad_end = of_badly_ended_child(watch.ends);
  return judge_ranks(ranks, statuses, watch.stopped_by, sight);
}

RunVerdict judge_remains(int ranks, const std::vector<RankStatus>& statuses,
                         const FailureSnapshot& snapshot) {
  Sight sight{.vanished = ranks_without_status(ranks, statuses), .snapshot = &snapshot};
  if (!sight.vanished.empty()) {
    sight.of_vanished =
        silent(sight.vanished, statuses, snapshot, "the scheduler's and the kernel's logs", "");
  }
  return judge_ranks(ranks, statuses, 0, sight);
}

FailureSnapshot::FailureSnapshot(const std::vector<Flight>& flights, double when) : when_(when) {
  for (const Flight& all : flights) {
    Flight flight = all;
    for (const Collective& collective : all.recent) {
      if (collective.started <= when) continue;
      flight.entered = std::min(flight.entered, collective.sequence);
    }
    std::vector<Collective> last;
    if (const Collective* found = flight.last_entered()) last.push_back(*found);
    flight.recent = std::move(last);
    flights_.push_back(std::move(flight));
  }
}

const Flight* FailureSnapshot::of(int rank) const {
  const auto found = std::ranges::find(flights_, rank, &Flight::rank);
  return found == flights_.end() ? nullptr : &*found;
}

std::vector<int> FailureSnapshot::late() const {
  if (flights_.size() < 2) return {};
  const auto [least, most] = std::ranges::minmax_element(flights_, {}, &Flight::entered);
  const auto fewest = least->entered;
  if (fewest == most->entered) return silent();
  return ranks_where(flights_, [&](const Flight& one) { return one.entered == fewest; });
}

std::vector<int> FailureSnapshot::late_processes() const {
  std::set<int> ranks;
  for (const int rank : late()) {
    const std::vector<int> with = replicas_of_task(of(rank)->task);
    ranks.insert(with.begin(), with.end());
  }
  return {ranks.begin(), ranks.end()};
}

std::vector<int> FailureSnapshot::silent() const {
  double newest = 0;
  for (const Flight& flight : flights_) newest = std::max(newest, flight.last_beat(when_));
  return ranks_where(
      flights_, [&](const Flight& flight) { return newest - flight.last_beat(when_) > kSilence; });
}

std::vector<int> FailureSnapshot::replicas_of_task(int task) const {
  return ranks_where(flights_, [task](const Flight& flight) { return flight.task == task; });
}

std::string FailureSnapshot::format_ranks(const std::vector<int>& ranks) const {
  std::set<std::string> hosts;
  for (const int rank : ranks) {
    if (const Flight* flight = of(rank)) hosts.insert(flight->host);
  }
  return ranks_text(ranks) +
         (hosts.empty() ? "" : " on " + names_text({hosts.begin(), hosts.end()}));
}

std::string FailureSnapshot::words_on(const std::vector<int>& ranks) const {
  const Flight *mine = nullptr, *furthest = nullptr;
  for (const Flight& flight : flights_) {
    const Flight*& one = std::ranges::count(ranks, flight.rank) > 0 ? mine : furthest;
    if (one == nullptr || flight.entered > one->entered) one = &flight;
  }
  if (mine == nullptr) return "";
  const std::string words = " at " + describe_place(*mine) + describe_wait(*mine, when_);
  if (furthest == nullptr) return words;
  return furthest->entered == mine->entered
             ? words + "; the others wait there"
             : fmt::format("{}; the others wait at {}", words, describe_place(*furthest));
}

}  // namespace paceline
