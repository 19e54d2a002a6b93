#include "engine/train/checkpoint/rank_vote.h"

#include <algorithm>
#include <vector>

#include "engine/core/clock.h"

namespace paceline {

namespace {

constexpr double kSeconds = 0.5;    // between questions
constexpr std::size_t kGrowth = 2;  // of their distance in steps: the first steps are no measure

struct Answer {
  double seconds_per_step = 0;  // 0: not known yet
  bool stop = false, save = false;
};

}  // namespace

PendingRequests RankVote::ask(std::size_t step, PendingRequests mine) {
  const double now = now_seconds();
  Answer answer;
  answer.stop = mine.stop;
  answer.save = mine.save;
  if (last_time_ > 0 && step > last_step_) {
    answer.seconds_per_step = (now - last_time_) / static_cast<double>(step - last_step_);
  }
  std::vector<Answer> answers(static_cast<std::size_t>(communicator_.size()));
  communicator_.all_gather(&answer, sizeof answer, answers.data());
  PendingRequests all;
  double slowest = 0;
  for (const Answer& one : answers) {
    all.stop = all.stop || one.stop;
    all.save = all.save || one.save;
    slowest = std::max(slowest, one.seconds_per_step);
  }
  const auto most = static_cast<double>(kGrowth * std::max<std::size_t>(1, step - last_step_));
  const double steps = slowest > 0 ? std::clamp(kSeconds / slowest, 1.0, most) : 1;
  next_ = step + static_cast<std::size_t>(steps);
  last_step_ = step;
  last_time_ = now_seconds();
  return all;
}

}  // namespace paceline
