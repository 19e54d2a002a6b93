#include "analysis/statistics/run_order.h"

#include <algorithm>
#include <boost/math/distributions/normal.hpp>
#include <cmath>
#include <functional>
#include <numeric>

#include "results/step_samples.h"

namespace paceline {

namespace {

using Numbers = std::vector<double>;

constexpr std::size_t kFewestRounds = 4;
constexpr std::size_t kMostApart = 16;  // rows

std::size_t rounds_in(const RoundMatrix& matrix) {
  return matrix.empty() ? 0 : matrix.front().size();
}

// The mean of the given rows in each round.
Numbers round_means(const RoundMatrix& matrix, const std::vector<std::size_t>& rows) {
  Numbers means(rounds_in(matrix), 0.0);
  for (const std::size_t row : rows) {
    for (std::size_t k = 0; k < means.size(); ++k) {
      means[k] += matrix[row][k] / static_cast<double>(rows.size());
    }
  }
  return means;
}

std::vector<std::size_t> all_rows(const RoundMatrix& matrix) {
  std::vector<std::size_t> rows(matrix.size());
  std::iota(rows.begin(), rows.end(), std::size_t{0});
  return rows;
}

// The sum of squares of 0, 1, ..., n - 1 about their mean.
double squares_of_indices(double n) {
  return n * (n * n - 1) / 12;
}

double fitted_slope(const Numbers& values) {
  const auto n = static_cast<double>(values.size());
  double product = 0;
  for (std::size_t k = 0; k < values.size(); ++k) {
    product += (static_cast<double>(k) - (n - 1) / 2) * values[k];
  }
  return product / squares_of_indices(n);
}

// By how much the first exceeds the mean of the others.
double first_excess(const Numbers& values) {
  return values.front() - average({values.begin() + 1, values.end()});
}

double sum_of_squares(const Numbers& values) {
  const double mean = average(values);
  double sum = 0;
  for (const double value : values) sum += (value - mean) * (value - mean);
  return sum;
}

// The one with the larger p-value.
Difference less_significant(const Difference& over_rounds, const Numbers& over_rows) {
  const Difference rows = paired_difference(over_rows);
  return rows.p_value() > over_rounds.p_value() ? rows : over_rounds;
}

// Whether deviations are so small that they are rounding.
bool is_constant(double squares, std::size_t count) {
  return squares <= kRounding * kRounding * static_cast<double>(count);
}

// Squared differences of rounds, summed over rows, each in units of its own variation.
std::vector<Numbers> squared_differences(const RoundMatrix& matrix) {
  const std::size_t rounds = rounds_in(matrix);
  std::vector<Numbers> sums(rounds, Numbers(rounds, 0.0));
  for (const Numbers& row : matrix) {
    const double squares = sum_of_squares(row);
    if (is_constant(squares, row.size())) continue;
    for (std::size_t i = 0; i < rounds; ++i) {
      for (std::size_t k = 0; k < rounds; ++k) {
        sums[i][k] += (row[i] - row[k]) * (row[i] - row[k]) / squares;
      }
    }
  }
  return sums;
}

// The sum of `squares` over neighbouring rounds, and its moments over all orders of the rounds.
struct NeighbourSum {
  double sum = 0, mean = 0, variance = 0;
};

NeighbourSum sum_over_neighbours(const std::vector<Numbers>& squares) {
  const auto n = static_cast<double>(squares.size());
  NeighbourSum result;
  double all = 0;
  for (std::size_t k = 1; k < squares.size(); ++k) result.sum += squares[k - 1][k];
  for (const Numbers& row : squares) all += std::accumulate(row.begin(), row.end(), 0.0);
  const double each = all / (n * (n - 1));
  result.mean = (n - 1) * each;
  // Sums of products of the deviations of pairs of rounds: of a pair with itself, and with the
  // pairs that share a round with it.
  double own = 0, of_round = 0;
  for (std::size_t i = 0; i < squares.size(); ++i) {
    double row = 0;
    for (std::size_t k = 0; k < squares.size(); ++k) {
      const double off = i == k ? 0 : squares[i][k] - each;
      own += off * off;
      row += off;
    }
    of_round += row * row;
  }
  const double same = own / (n * (n - 1));
  const double adjacent = (of_round - own) / (n * (n - 1) * (n - 2));
  const double apart = (2 * own - 4 * of_round) / (n * (n - 1) * (n - 2) * (n - 3));
  result.variance = (n - 1) * same + 2 * (n - 2) * adjacent + (n - 2) * (n - 3) * apart;
  return result;
}

Difference mean_shift(const RoundMatrix& first, const RoundMatrix& second,
                      const std::vector<std::size_t>& rows) {
  return independent_difference(round_means(second, rows), round_means(first, rows));
}

Numbers against_rest(const RoundMatrix& matrix, std::size_t row,
                     const std::vector<std::size_t>& rest) {
  Numbers values = matrix[row];
  const Numbers means = round_means(matrix, rest);
  for (std::size_t k = 0; k < values.size(); ++k) values[k] -= means[k];
  return values;
}

double log_choices(double of, double chosen) {
  return std::lgamma(of + 1) - std::lgamma(chosen + 1) - std::lgamma(of - chosen + 1);
}

// By how much the mean of these rounds exceeds that of the others.
Difference level_excess(const Numbers& values, const std::vector<std::size_t>& rounds) {
  Numbers here, others;
  for (std::size_t k = 0; k < values.size(); ++k) {
    (std::ranges::count(rounds, k) > 0 ? here : others).push_back(values[k]);
  }
  return pooled_difference(here, others);
}

// The best line, step and slow rounds, whether or not they differ from none.
class PatternSearch {
 public:
  explicit PatternSearch(const std::vector<RoundMatrix>& sessions)
      : log_sessions_(std::log(static_cast<double>(sessions.size()))) {
    double squares = 0;
    for (const RoundMatrix& matrix : sessions) {
      if (rounds_in(matrix) < kFewestRounds) continue;
      const Numbers means = round_means(matrix, all_rows(matrix));
      all_squares_ += sum_of_squares(means);
      squares += squares_of_indices(static_cast<double>(means.size()));
      rounds_ += static_cast<double>(means.size());
    }
    const Difference trend = trend_over_rounds(sessions);
    if (trend.count == 0) return;
    add({RoundPattern::line, 0, {}, trend, 0}, trend.mean * trend.mean * squares, 0,
        trend.p_value() < kTrendLevel);
    for (std::size_t i = 0; i < sessions.size(); ++i) {
      if (rounds_in(sessions[i]) < kFewestRounds || sessions[i].size() < kFewestRuns) continue;
      add_steps(sessions[i], i);
      add_slow_rounds(sessions[i], i);
    }
  }

  std::vector<RoundPattern> found() {
    constexpr double kAboutAsWell = 6;  // twice the logarithm of 20
    if (!any_) return {};
    std::ranges::stable_sort(best_, {}, &RoundPattern::criterion);
    std::erase_if(best_, [least = best_.front().criterion](const RoundPattern& pattern) {
      return pattern.criterion > least + kAboutAsWell;
    });
    return best_;
  }

 private:
  void add(RoundPattern pattern, double explained, double log_choices, bool differs) {
    any_ = any_ || differs;
    const double left = std::max(all_squares_ - explained, kRounding * kRounding * rounds_);
    pattern.criterion = rounds_ * std::log(left) + 2 * log_choices;
    const auto same = std::ranges::find(best_, pattern.shape, &RoundPattern::shape);
    if (same == best_.end()) {
      best_.push_back(std::move(pattern));
    } else if (pattern.criterion < same->criterion) {
      *same = std::move(pattern);
    }
  }

  void add_level(RoundPattern pattern, const RoundMatrix& matrix, double log_choices,
                 double level) {
    Numbers of_rows;
    for (const Numbers& row : matrix) of_rows.push_back(level_excess(row, pattern.rounds).mean);
    const Difference all = level_excess(round_means(matrix, all_rows(matrix)), pattern.rounds);
    pattern.size = less_significant(all, of_rows);
    const double p = all.p_value() * std::exp(log_choices + log_sessions_);
    const bool differs = p < level && paired_difference(of_rows).p_value() < kStepLevel;
    const auto n = static_cast<double>(rounds_in(matrix));
    const auto here = static_cast<double>(pattern.rounds.size());
    add(std::move(pattern), all.mean * all.mean * here * (n - here) / n,
        log_choices + log_sessions_, differs);
  }

  void add_steps(const RoundMatrix& matrix, std::size_t session) {
    const std::size_t rounds = rounds_in(matrix);
    RoundPattern pattern{RoundPattern::step, session, {rounds - 1}, {}, 0};
    for (std::size_t first = rounds - 2; first > 1; --first) {
      pattern.rounds.insert(pattern.rounds.begin(), first);
      add_level(pattern, matrix, std::log(static_cast<double>(rounds - 3)), kStepLevel);
    }
  }

  void add_slow_rounds(const RoundMatrix& matrix, std::size_t session) {
    const Numbers means = round_means(matrix, all_rows(matrix));
    std::vector<std::size_t> order(means.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, std::greater(), [&](std::size_t k) { return means[k]; });
    RoundPattern pattern{RoundPattern::slow_rounds, session, {}, {}, 0};
    for (std::size_t slow = 1; 3 * slow <= means.size(); ++slow) {
      auto& rounds = pattern.rounds;
      rounds.insert(std::ranges::upper_bound(rounds, order[slow - 1]), order[slow - 1]);
      const bool is_end = rounds.back() == slow - 1 || rounds.front() + slow == means.size();
      if (is_end && slow > 1) continue;  // a step
      const double log_of_all =
          log_choices(static_cast<double>(means.size()), static_cast<double>(slow));
      add_level(pattern, matrix, log_of_all, kSlowRoundsLevel);
    }
  }

  double log_sessions_, all_squares_ = 0, rounds_ = 0;
  std::vector<RoundPattern> best_;  // of each shape
  bool any_ = false;
};

}  // namespace

std::vector<RoundPattern> find_patterns(const std::vector<RoundMatrix>& sessions) {
  return PatternSearch(sessions).found();
}

Difference trend_over_rounds(const std::vector<RoundMatrix>& sessions) {
  Numbers slopes;  // of rows
  double product = 0, squares = 0, total = 0, rounds = 0, freedom = -1;
  for (const RoundMatrix& matrix : sessions) {
    if (rounds_in(matrix) < kFewestRounds) continue;
    for (const Numbers& row : matrix) slopes.push_back(fitted_slope(row));
    const Numbers means = round_means(matrix, all_rows(matrix));
    const auto n = static_cast<double>(means.size());
    product += fitted_slope(means) * squares_of_indices(n);
    squares += squares_of_indices(n);
    total += sum_of_squares(means);
    rounds += n;
    freedom += n - 1;
  }
  if (slopes.size() < kFewestRuns) return {};
  const double slope = product / squares;
  const double left = std::max(0.0, total - slope * product);
  return less_significant(
      {slope, std::sqrt(left / freedom / squares), freedom, static_cast<std::size_t>(rounds)},
      slopes);
}

Difference first_round_excess(const std::vector<RoundMatrix>& sessions) {
  Numbers excesses, of_sessions;
  double squares = 0, weights = 0, freedom = 0, rounds = 0;
  for (const RoundMatrix& matrix : sessions) {
    if (rounds_in(matrix) < kFewestRuns) continue;
    for (const Numbers& row : matrix) excesses.push_back(first_excess(row));
    const Numbers means = round_means(matrix, all_rows(matrix));
    const auto others = static_cast<double>(means.size() - 1);
    of_sessions.push_back(first_excess(means));
    squares += sum_of_squares({means.begin() + 1, means.end()});
    freedom += others - 1;
    weights += 1 + 1 / others;
    rounds += others + 1;
  }
  if (excesses.size() < kFewestRuns) return {};
  const auto count = static_cast<double>(of_sessions.size());
  return less_significant({average(of_sessions), std::sqrt(squares / freedom * weights) / count,
                           freedom, static_cast<std::size_t>(rounds)},
                          excesses);
}

Resemblance resemblance_of_rounds(const std::vector<RoundMatrix>& sessions) {
  double below = 0, expected = 0, variance = 0;
  for (const RoundMatrix& matrix : sessions) {
    if (rounds_in(matrix) < kFewestRounds) continue;
    const NeighbourSum neighbours = sum_over_neighbours(squared_differences(matrix));
    below += neighbours.mean - neighbours.sum;
    expected += neighbours.mean;
    variance += neighbours.variance;
  }
  if (variance < kRounding) return {};
  const boost::math::normal normal;
  return {below / expected,
          boost::math::cdf(boost::math::complement(normal, below / std::sqrt(variance)))};
}

SessionShift session_shift(const RoundMatrix& first, const RoundMatrix& second, double level) {
  SessionShift result;
  std::vector<std::size_t> rows = all_rows(first);
  if (rows.empty() || rounds_in(first) < 2 || rounds_in(second) < 2) return result;
  const double each = level / static_cast<double>(rows.size());
  const std::size_t most_apart = std::min(kMostApart, (first.size() + 1) / 2);
  while (rows.size() > 1 && result.apart.size() < most_apart) {
    Numbers shifts;
    for (const std::size_t row : rows) shifts.push_back(average(second[row]) - average(first[row]));
    // Of two rows, the one that moved more.
    const double middle = rows.size() > 2 ? median(shifts) : 0;
    const auto farthest = std::ranges::max_element(
        shifts, [&](double a, double b) { return std::abs(a - middle) < std::abs(b - middle); });
    const auto at = rows.begin() + (farthest - shifts.begin());
    const std::size_t row = *at;
    std::vector<std::size_t> rest = rows;
    rest.erase(rest.begin() + (farthest - shifts.begin()));
    const Difference unlike =
        independent_difference(against_rest(second, row, rest), against_rest(first, row, rest));
    if (unlike.p_value() >= each) break;
    result.apart.emplace_back(row, mean_shift(first, second, {row}));
    rows = std::move(rest);
  }
  result.rest = mean_shift(first, second, rows);
  result.rest_rows = rows.size();
  return result;
}

}  // namespace paceline
