// Sides of a gate, made by hand.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "analysis/gate/judge.h"

namespace paceline {
inline namespace testing {

// Sides with one point and equal values but for what a test sets.
inline Side side_with(const std::string& name, Quantity quantity, const std::vector<double>& values,
                      const std::string& session) {
  Side side;
  side.name = name;
  side.subjects.emplace_back();
  Subject& subject = side.subjects.back();
  subject.name = "gpus=2";
  subject.runs = values.size();
  for (std::size_t i = 0; i < values.size(); ++i) {
    subject.samples[quantity].push_back({values[i], session, static_cast<int>(i) + 1});
  }
  return side;
}

inline Check only_check(Quantity quantity, const std::vector<double>& before,
                        const std::vector<double>& now, const GateOptions& options = {}) {
  const Judgement judgement = judge(side_with("baseline", quantity, before, "s"),
                                    side_with("current", quantity, now, "s"), options);
  EXPECT_EQ(judgement.checks.size(), 1U);
  return judgement.checks.at(0);
}

inline bool has_note(const Judgement& judgement, const std::string& note) {
  return std::find(judgement.notes.begin(), judgement.notes.end(), note) != judgement.notes.end();
}

inline void add_session(Side& side, const std::string& session,
                        const std::vector<double>& seconds) {
  Subject& subject = side.subjects.at(0);
  for (std::size_t i = 0; i < seconds.size(); ++i) {
    subject.samples[Quantity::time].push_back({seconds[i], session, static_cast<int>(i) + 1});
  }
  subject.runs += seconds.size();
}

// Those of the point's first `busy` runs.
inline void make_busy(Side& side, std::size_t busy) {
  Subject& subject = side.subjects.at(0);
  subject.busy = busy;
  subject.busy_why = "18 % of the time of its CPUs went to other processes";
  for (auto& [quantity, samples] : subject.samples) {
    for (std::size_t i = 0; i < busy; ++i) samples.at(i).is_busy = true;
  }
}

}  // namespace testing
}  // namespace paceline
