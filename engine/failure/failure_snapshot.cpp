#include "engine/failure/failure_snapshot.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "engine/core/list_text.h"

namespace paceline {

namespace {

constexpr double kSilence = 1.5;  // seconds; a ring beats at least once in one
constexpr double kLongWait = 2;   // seconds

bool is_among(const std::vector<int>& ranks, int rank) {
  return std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
}

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
  const auto found = std::find_if(flights_.begin(), flights_.end(),
                                  [rank](const Flight& flight) { return flight.rank == rank; });
  return found == flights_.end() ? nullptr : &*found;
}

std::vector<int> FailureSnapshot::late() const {
  if (flights_.size() < 2) return {};
  const auto [least, most] =
      std::minmax_element(flights_.begin(), flights_.end(),
                          [](const Flight& a, const Flight& b) { return a.entered < b.entered; });
  if (least->entered == most->entered) return silent();
  std::vector<int> ranks;
  for (const Flight& flight : flights_) {
    if (flight.entered == least->entered) ranks.push_back(flight.rank);
  }
  return ranks;
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
  std::vector<int> ranks;
  for (const Flight& flight : flights_) {
    if (newest - flight.last_beat(when_) > kSilence) ranks.push_back(flight.rank);
  }
  return ranks;
}

std::vector<int> FailureSnapshot::replicas_of_task(int task) const {
  std::vector<int> ranks;
  for (const Flight& flight : flights_) {
    if (flight.task == task) ranks.push_back(flight.rank);
  }
  return ranks;
}

std::string FailureSnapshot::format_ranks(const std::vector<int>& ranks) const {
  std::set<std::string> hosts;
  for (const int rank : ranks) {
    if (const Flight* flight = of(rank)) hosts.insert(flight->host);
  }
  return fmt::format("rank{} {}{}", ranks.size() == 1 ? "" : "s", numbers_text(ranks),
                     hosts.empty() ? "" : " on " + names_text({hosts.begin(), hosts.end()}));
}

std::string FailureSnapshot::words_on(const std::vector<int>& ranks) const {
  const Flight *mine = nullptr, *furthest = nullptr;
  for (const Flight& flight : flights_) {
    const Flight*& one = is_among(ranks, flight.rank) ? mine : furthest;
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
