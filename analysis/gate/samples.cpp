#include "analysis/gate/samples.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "analysis/statistics/statistics.h"

namespace paceline {

namespace {

template <typename Key, typename KeyOf>
std::map<Key, double> means_by(const Samples& samples, const QuantityInfo& info, KeyOf key_of) {
  std::map<Key, std::pair<double, int>> sums;
  for (const Sample& sample : samples) {
    auto& [sum, count] = sums[key_of(sample)];
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

RoundKey round_of(const Sample& sample) {
  return {sample.session, sample.round};
}

std::set<RoundKey> rounds_of(const Samples& samples) {
  std::set<RoundKey> rounds;
  for (const Sample& sample : samples) {
    if (is_in_round(sample)) rounds.insert(round_of(sample));
  }
  return rounds;
}

Samples samples_in(const Samples& samples, const std::set<RoundKey>& rounds) {
  Samples kept;
  std::copy_if(samples.begin(), samples.end(), std::back_inserter(kept),
               [&](const Sample& s) { return is_in_round(s) && rounds.contains(round_of(s)); });
  return kept;
}

std::set<RoundKey> shared_rounds(const Samples& baseline, const Samples& current) {
  const std::set<RoundKey> before = rounds_of(baseline), now = rounds_of(current);
  std::set<RoundKey> shared;
  std::set_intersection(before.begin(), before.end(), now.begin(), now.end(),
                        std::inserter(shared, shared.end()));
  const bool all_shared = shared.size() == std::min(before.size(), now.size());
  return all_shared || shared.size() >= kFewestRuns ? shared : std::set<RoundKey>{};
}

std::size_t sessions_of(const Samples& samples) {
  std::set<std::string> sessions;
  for (const Sample& sample : samples) sessions.insert(sample.session);
  return sessions.size();
}

std::map<RoundKey, double> means_of_rounds(const Samples& samples, const QuantityInfo& info) {
  return means_by<RoundKey>(samples, info, round_of);
}

std::map<std::string, double> means_of_sessions(const Samples& samples, const QuantityInfo& info) {
  return means_by<std::string>(samples, info, [](const Sample& sample) { return sample.session; });
}

}  // namespace paceline
