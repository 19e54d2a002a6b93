#include "analysis/gate/samples.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "analysis/statistics/statistics.h"

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

}  // namespace paceline
