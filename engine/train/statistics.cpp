#include "engine/train/statistics.h"

#include <span>
#include <vector>

namespace paceline {

namespace {

std::vector<double> read_all(const Program& program, const Plan& plan) {
  std::vector<double> all;
  for (std::size_t i = 0; i < plan.statistics.size(); ++i) {
    const std::vector<double> values = program.read_statistic(static_cast<int>(i));
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

void write_all(Program& program, const Plan& plan, std::span<const double> all) {
  std::size_t at = 0;
  for (std::size_t i = 0; i < plan.statistics.size(); ++i) {
    const std::size_t count = plan.statistics[i].elements;
    program.write_statistic(static_cast<int>(i), all.subspan(at, count));
    at += count;
  }
}

}  // namespace

void with_averaged_statistics(Program& program, const Plan& plan, Communicator& communicator,
                              const std::function<void()>& body) {
  if (plan.statistics.empty() || communicator.size() == 1) return body();
  const std::vector<double> own = read_all(program, plan);
  std::vector<double> mean = own;
  sum_over_ranks(communicator, mean);
  for (double& value : mean) value /= communicator.size();
  write_all(program, plan, mean);
  body();
  write_all(program, plan, own);
}

}  // namespace paceline
