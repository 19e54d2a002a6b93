#include "run/preflight.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/launch/affinity.h"
#include "engine/launch/environment_check.h"
#include "run/version.h"
#include "run/world.h"

namespace paceline {

namespace {

RankCard card_of(const CpuSet& cpus, int other_jobs) {
  RankCard card;
  card.other_jobs = other_jobs;
  gethostname(card.host.data(), card.host.size() - 1);
  const std::string text = format_cpus(cpus);
  std::copy_n(text.begin(), std::min(text.size(), card.cpus.size() - 1), card.cpus.begin());
  return card;
}

bool share_a_cpu(const RankCard& a, const RankCard& b) {
  if (a.host != b.host) return false;
  const CpuSet mine = cpus_of(a), other = cpus_of(b);
  return std::any_of(mine.begin(), mine.end(), [&](int cpu) {
    return std::find(other.begin(), other.end(), cpu) != other.end();
  });
}

}  // namespace

CpuSet cpus_of(const RankCard& card) {
  CpuSet cpus;
  for (const std::string& range : split(card.cpus.data(), ',')) {
    const auto ends = split(range, '-');
    const auto low = to_integer(ends.front()), high = to_integer(ends.back());
    for (auto cpu = low.value_or(0); low && high && cpu <= *high; ++cpu) {
      cpus.push_back(static_cast<int>(cpu));
    }
  }
  return cpus;
}

std::vector<ConfigRow> rows_of_build() {
  const Build b = build();
  return {{"build", build_id()},
          {"compiler", b.compiler},
          {"compiler flags", b.compiler_flags},
          {"build type", b.build_type}};
}

std::vector<ConfigRow> rows_of(const Point& parameters) {
  std::vector<ConfigRow> rows;
  for (const auto& [name, value] : parameters.values()) {
    const Parameter& parameter = *find_parameter(name);
    if (parameter.identity() && !parameter.is_file) rows.push_back({name, to_text(value)});
  }
  return rows;
}

std::vector<RankCard> exchange_rank_cards(std::vector<std::unique_ptr<Communicator>>& communicators,
                                          const std::vector<CpuSet>& cpus,
                                          const std::vector<ConfigRow>& rows) {
  const auto size = static_cast<std::size_t>(communicators.front()->size());
  std::vector<RankCard> cards(size);
  const int other_jobs = count_other_jobs();
  if (communicators.size() == size) {
    std::transform(cpus.begin(), cpus.end(), cards.begin(),
                   [&](const CpuSet& set) { return card_of(set, other_jobs); });
    return cards;
  }
  on_every_replica(communicators, [&](Communicator& communicator, std::size_t i) {
    check_same_config(communicator, rows);
    const RankCard mine = card_of(cpus[i], other_jobs);
    std::vector<RankCard> all(size);
    communicator.all_gather(&mine, sizeof mine, all.data());
    if (i == 0) cards = std::move(all);
  });
  return cards;
}

int count_other_jobs() {
  const auto jobs = jobs_here(environment_of_process());
  return jobs ? static_cast<int>(jobs->size()) - 1 : -1;
}

bool check_rank_cards(const std::vector<RankCard>& cards, bool oversubscribe) {
  for (std::size_t r = 1; r < cards.size(); ++r) {
    for (std::size_t other = 0; other < r; ++other) {
      if (!share_a_cpu(cards[r], cards[other])) continue;
      if (oversubscribe) return true;
      throw Error(ErrorKind::usage,
                  fmt::format("replicas {} and {} would share CPUs ({} and {}) of {}", other, r,
                              cards[other].cpus.data(), cards[r].cpus.data(), cards[r].host.data()),
                  "", "use fewer replicas or CPUs each, bind the tasks, or give --oversubscribe");
    }
  }
  return false;
}

}  // namespace paceline
