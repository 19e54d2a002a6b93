#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <tuple>
#include <unordered_map>

#include "analysis/gate/side.h"
#include "analysis/statistics/statistics.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

template <typename Key, typename KeyOf>
std::map<Key, double> means_by(const Samples& samples, const QuantityInfo& info, KeyOf make_key) {
  std::map<Key, std::pair<double, int>> sums;
  for (const Sample& sample : samples) {
    auto& [sum, count] = sums[make_key(sample)];
    sum += scaled(sample.value, info);
    ++count;
  }
  std::map<Key, double> means;
  for (const auto& [key, sum] : sums) means[key] = sum.first / sum.second;
  return means;
}

// The layout is matched as it was asked for, and a program of the user's own by its name: it is a
// build, and how it is started may differ.
PointKey subject_key(const Subject& subject) {
  static const MatchRule rule{.without = MatchRule::point().without};
  Point named = subject.parameters;
  if (const auto tag = named.text("program")) named.set("program", name_of_program(*tag));
  return {
      {.parameters = named, .workload = subject.workload.empty() ? subject.name : subject.workload},
      rule};
}

class Matcher {
 public:
  Matcher(const Side& baseline, const Side& current, bool one_spec)
      : baseline_(baseline),
        current_(current),
        one_spec_(one_spec),
        taken_(current.subjects.size()) {
    result_.of_baseline.resize(baseline.subjects.size());
    std::set<std::string> studies;
    for (const Subject& mine : baseline.subjects) {
      studies.insert(mine.studies.begin(), mine.studies.end());
    }
    have_common_study_ = std::ranges::any_of(current.subjects, [&](const Subject& other) {
      return have_common(other.studies, studies);
    });
  }

  Matches match() {
    match_equal();
    for (std::size_t i = 0; i < baseline_.subjects.size(); ++i) {
      if (!result_.of_baseline[i]) match_nearest(i);
    }
    std::vector<std::string> fresh;
    for (std::size_t k = 0; k < taken_.size(); ++k) {
      if (!taken_[k]) fresh.push_back(current_.subjects[k].name);
    }
    if (!fresh.empty()) {
      constexpr std::size_t kShown = 5;
      result_.notes.push_back("not in the baseline, so not judged: " +
                              join_first(kShown, fresh, "; "));
    }
    return std::move(result_);
  }

 private:
  void take(std::size_t i, std::size_t k) {
    result_.of_baseline[i] = k;
    taken_[k] = true;
    const Subject& mine = baseline_.subjects[i];
    const auto was = mine.parameters.text("program");
    const auto is = current_.subjects[k].parameters.text("program");
    if (one_spec_ || !was || !is || *was == *is) return;
    result_.notes.push_back(
        mine.name +
        ": the program is started, or its results are read, in another way than before");
  }

  // Programs of several studies on each side are compared within their study: two train.py may have
  // nothing but their name in common.
  bool may_match(const Subject& mine, const Subject& other) const {
    const auto program = mine.parameters.text("program");
    return !have_common_study_ || !program || program == other.parameters.text("program") ||
           have_common(mine.studies, other.studies);
  }

  void match_equal() {
    std::unordered_map<PointKey, std::vector<std::size_t>> keys;
    for (std::size_t k = 0; k < current_.subjects.size(); ++k) {
      keys[subject_key(current_.subjects[k])].push_back(k);
    }
    for (std::size_t i = 0; i < baseline_.subjects.size(); ++i) {
      const Subject& mine = baseline_.subjects[i];
      const std::vector<std::size_t>& equal = keys[subject_key(mine)];
      const auto it = std::ranges::find_if(equal, [&](std::size_t k) {
        return !taken_[k] && may_match(mine, current_.subjects[k]);
      });
      if (it != equal.end()) take(i, *it);
    }
  }

  void match_nearest(std::size_t i) {
    const Subject& mine = baseline_.subjects[i];
    if (mine.workload.empty()) return;
    using Rank = std::tuple<bool, std::size_t, bool, std::size_t>;
    std::vector<std::size_t> closest;
    PointDifferences nearest;
    Rank nearest_rank;
    static const MatchRule rule = MatchRule::point();
    for (std::size_t k = 0; k < current_.subjects.size(); ++k) {
      if (taken_[k] || current_.subjects[k].workload != mine.workload) continue;
      if (!may_match(mine, current_.subjects[k])) continue;
      PointDifferences found =
          differences(mine.parameters, current_.subjects[k].parameters, rule, true);
      const bool other_name = current_.subjects[k].name != mine.name;
      const Rank rank(one_spec_ && other_name, found.changed.size(), other_name,
                      found.one_sided.size());
      if (!closest.empty() && nearest_rank == rank) closest.push_back(k);
      if (!closest.empty() && nearest_rank <= rank) continue;
      closest = {k};
      nearest = std::move(found);
      nearest_rank = rank;
    }
    if (closest.empty()) return;
    const bool same_name = current_.subjects[closest.front()].name == mine.name;
    const std::string unlike = join(nearest.changed, ", ");
    if (nearest.changed.empty() && closest.size() > 1) {
      result_.notes.push_back(fmt::format("{} cannot be compared: it may be {} or {}", mine.name,
                                          current_.subjects[closest.front()].name,
                                          current_.subjects[closest.back()].name));
    } else if (nearest.changed.empty()) {
      take(i, closest.front());
      result_.notes.push_back(fmt::format("{}: parameters that only one side knows: {}", mine.name,
                                          nearest.one_sided.size()));
    } else if (same_name && one_spec_) {
      take(i, closest.front());
      result_.notes.push_back(fmt::format("{}: defaults differ: {}", mine.name, unlike));
    } else if (same_name) {
      result_.notes.push_back(fmt::format("{} cannot be compared: {}", mine.name, unlike));
    }
  }

  const Side& baseline_;
  const Side& current_;
  bool one_spec_, have_common_study_ = false;
  std::vector<bool> taken_;
  Matches result_;
};

}  // namespace

double scaled(double value, const QuantityInfo& info) {
  const double magnitude = info.is_factor ? std::log(value) : value;
  return info.more_is_worse ? magnitude : -magnitude;
}

bool is_in_round(const Sample& sample) {
  return sample.round > 0 && !sample.session.empty();
}

RoundKey round_key(const Sample& sample) {
  return {sample.session, sample.round};
}

std::set<RoundKey> list_rounds(const Samples& samples) {
  std::set<RoundKey> rounds;
  for (const Sample& sample : samples) {
    if (is_in_round(sample)) rounds.insert(round_key(sample));
  }
  return rounds;
}

Samples samples_in(const Samples& samples, const std::set<RoundKey>& rounds) {
  Samples kept;
  std::copy_if(samples.begin(), samples.end(), std::back_inserter(kept),
               [&](const Sample& s) { return is_in_round(s) && rounds.contains(round_key(s)); });
  return kept;
}

std::set<RoundKey> shared_rounds(const Samples& baseline, const Samples& current) {
  const std::set<RoundKey> before = list_rounds(baseline), now = list_rounds(current);
  std::set<RoundKey> shared;
  std::set_intersection(before.begin(), before.end(), now.begin(), now.end(),
                        std::inserter(shared, shared.end()));
  const bool all_shared = shared.size() == std::min(before.size(), now.size());
  return all_shared || shared.size() >= kFewestRuns ? shared : std::set<RoundKey>{};
}

std::size_t count_sessions(const Samples& samples) {
  return distinct(samples, &Sample::session).size();
}

std::map<RoundKey, double> means_of_rounds(const Samples& samples, const QuantityInfo& info) {
  return means_by<RoundKey>(samples, info, round_key);
}

std::map<std::string, double> means_of_sessions(const Samples& samples, const QuantityInfo& info) {
  return means_by<std::string>(samples, info, [](const Sample& sample) { return sample.session; });
}

Matches match_subjects(const Side& baseline, const Side& current, bool one_spec) {
  return Matcher(baseline, current, one_spec).match();
}

}  // namespace paceline
