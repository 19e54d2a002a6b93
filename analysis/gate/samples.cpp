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
  std::set<std::string> sessions;
  for (const Sample& sample : samples) sessions.insert(sample.session);
  return sessions.size();
}

std::map<RoundKey, double> means_of_rounds(const Samples& samples, const QuantityInfo& info) {
  return means_by<RoundKey>(samples, info, round_key);
}

std::map<std::string, double> means_of_sessions(const Samples& samples, const QuantityInfo& info) {
  return means_by<std::string>(samples, info, [](const Sample& sample) { return sample.session; });
}

namespace {

// How two points differ. Parameters that only one side has are those that its build knows.
struct Distance {
  std::vector<std::string> unlike;  // "epochs was 5, is 10"
  std::size_t one_sided = 0;
};

// The values of the parameters that identify a point, in the order of all parameters.
using Values = std::vector<std::optional<std::string>>;

bool counts(const Parameter& parameter) {
  return parameter.identity() && parameter.role != Role::replication;
}

// A program of the user's is a build: how it is started may differ.
std::string value_text(std::string_view name, const Value& value) {
  return name == "program" ? name_of_program(to_text(value)) : to_text(value);
}

Values list_values(const Subject& subject) {
  Values values;
  for (const Parameter& parameter : recorded_parameters()) {
    if (!counts(parameter)) continue;
    const Value* value = subject.parameters.find(parameter.name);
    values.push_back(value ? std::optional(value_text(parameter.name, *value)) : std::nullopt);
  }
  return values;
}

Distance distance(const Values& baseline, const Values& current) {
  Distance result;
  std::size_t at = 0;
  for (const Parameter& parameter : recorded_parameters()) {
    if (!counts(parameter)) continue;
    const auto &was = baseline[at], &is = current[at];
    ++at;
    if (was == is) continue;
    if (was && is) {
      result.unlike.push_back(fmt::format("{} was {}, is {}", parameter.name, *was, *is));
    } else {
      ++result.one_sided;
    }
  }
  return result;
}

std::string make_key(const Subject& subject) {
  if (subject.workload.empty()) return subject.name;
  std::string key = subject.workload + '|';
  for (const auto& [name, value] : subject.parameters.values()) {
    if (!has_role(name, Role::replication) && find_parameter(name)->identity())
      key += name + '=' + value_text(name, value) + ',';
  }
  return key;
}

class Matcher {
 public:
  Matcher(const Side& baseline, const Side& current, bool one_spec)
      : baseline_(baseline),
        current_(current),
        one_spec_(one_spec),
        taken_(current.subjects.size()) {
    result_.of_baseline.resize(baseline.subjects.size());
  }

  Matches match() {
    match_equal();
    for (const Subject& subject : current_.subjects) values_.push_back(list_values(subject));
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

  void match_equal() {
    std::unordered_map<std::string, std::size_t> keys;
    for (std::size_t k = 0; k < current_.subjects.size(); ++k) {
      keys.emplace(make_key(current_.subjects[k]), k);
    }
    for (std::size_t i = 0; i < baseline_.subjects.size(); ++i) {
      const auto it = keys.find(make_key(baseline_.subjects[i]));
      if (it != keys.end() && !taken_[it->second]) take(i, it->second);
    }
  }

  void match_nearest(std::size_t i) {
    const Subject& mine = baseline_.subjects[i];
    if (mine.workload.empty()) return;
    using Rank = std::tuple<bool, std::size_t, bool, std::size_t>;
    std::vector<std::size_t> closest;
    Distance nearest;
    Rank nearest_rank;
    const Values values = list_values(mine);
    for (std::size_t k = 0; k < current_.subjects.size(); ++k) {
      if (taken_[k] || current_.subjects[k].workload != mine.workload) continue;
      const Distance d = distance(values, values_[k]);
      const bool other_name = current_.subjects[k].name != mine.name;
      const Rank rank(one_spec_ && other_name, d.unlike.size(), other_name, d.one_sided);
      if (!closest.empty() && nearest_rank == rank) closest.push_back(k);
      if (!closest.empty() && nearest_rank <= rank) continue;
      closest = {k};
      nearest = d;
      nearest_rank = rank;
    }
    if (closest.empty()) return;
    const bool same_name = current_.subjects[closest.front()].name == mine.name;
    const std::string unlike = join(nearest.unlike, ", ");
    if (nearest.unlike.empty() && closest.size() > 1) {
      result_.notes.push_back(fmt::format("{} cannot be compared: it may be {} or {}", mine.name,
                                          current_.subjects[closest.front()].name,
                                          current_.subjects[closest.back()].name));
    } else if (nearest.unlike.empty()) {
      take(i, closest.front());
      result_.notes.push_back(
          fmt::format("{}: parameters that only one side knows: {}", mine.name, nearest.one_sided));
    } else if (same_name && one_spec_) {
      take(i, closest.front());
      result_.notes.push_back(fmt::format("{}: defaults differ: {}", mine.name, unlike));
    } else if (same_name) {
      result_.notes.push_back(fmt::format("{} cannot be compared: {}", mine.name, unlike));
    }
  }

  const Side& baseline_;
  const Side& current_;
  bool one_spec_;
  std::vector<bool> taken_;
  std::vector<Values> values_;  // of the current side's points
  Matches result_;
};

}  // namespace

Matches match_subjects(const Side& baseline, const Side& current, bool one_spec) {
  return Matcher(baseline, current, one_spec).match();
}

}  // namespace paceline
