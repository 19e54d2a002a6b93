#include "analysis/plan/noise.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/math/distributions/beta.hpp>
#include <boost/math/distributions/chi_squared.hpp>
#include <cmath>
#include <set>

#include "analysis/evidence/run.h"
#include "analysis/gate/side.h"
#include "analysis/gate/weigh.h"
#include "analysis/statistics/robust.h"
#include "analysis/study/cost.h"
#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/facts/rank.h"
#include "results/step_samples.h"

namespace paceline {

namespace {

constexpr double kChance = 0.8;  // that the noise is within its upper bound

struct PilotRun {
  std::string name, point, session,
      node;  // name: of the point in its study; point: among all
  int round = 0;
  double value = 0;     // logarithm of the time
  double residual = 0;  // after the means of its point and round in its session
};

using Key = std::pair<std::string, std::string>;

struct Sum {
  double sum = 0, count = 0;
  double mean() const { return sum / count; }
};

std::string round_name(const PilotRun& one) {
  return one.session + "|" + std::to_string(one.round);
}

// Subtracts from residuals the means of their keys. Returns the number of keys.
template <typename KeyOf>
std::size_t subtract_means(std::vector<PilotRun>& all, KeyOf make_key) {
  std::map<Key, Sum> sums;
  for (const PilotRun& one : all) {
    Sum& sum = sums[make_key(one)];
    sum.sum += one.residual;
    ++sum.count;
  }
  for (PilotRun& one : all) one.residual -= sums[make_key(one)].mean();
  return sums.size();
}

Key point_key(const PilotRun& one) {
  return {one.point, one.session};
}

// The variance of the means of groups within their parents, which includes that of the levels below
// divided by `count`: values of a group, harmonic mean.
struct GroupVariance {
  double variance = 0, degrees_of_freedom = 0, count = 0;
};

template <typename KeyOf, typename ParentOf>
GroupVariance estimate_variance(const std::vector<PilotRun>& all, double PilotRun::*value,
                                KeyOf make_key, ParentOf parent_key) {
  std::map<std::string, std::map<Key, Sum>> parents;
  for (const PilotRun& one : all) {
    Sum& sum = parents[parent_key(one)][make_key(one)];
    sum.sum += one.*value;
    ++sum.count;
  }
  GroupVariance result;
  double squares = 0, inverse = 0, groups = 0;
  for (const auto& [parent, children] : parents) {
    Sum mean;
    for (const auto& [key, sum] : children) {
      mean.sum += sum.mean();
      ++mean.count;
    }
    if (children.size() < 2) continue;
    for (const auto& [key, sum] : children) {
      squares += (sum.mean() - mean.mean()) * (sum.mean() - mean.mean());
      inverse += 1 / sum.count;
      ++groups;
    }
    result.degrees_of_freedom += static_cast<double>(children.size()) - 1;
  }
  if (result.degrees_of_freedom > 0) {
    result.variance = squares / result.degrees_of_freedom;
    result.count = groups / inverse;
  }
  return result;
}

class NoiseEstimator {
 public:
  explicit NoiseEstimator(const StoreContent& content) {
    const Side side = load_side("pilot", content);
    noise_.notes = side.notes;
    for (const Subject& subject : side.subjects) {
      for (const Run& run : subject.members) add(run, subject);
    }
    exclude_outlying();
    std::erase_if(all_, [&](const PilotRun& one) { return noise_.points[one.name].runs < 2; });
    if (all_.empty()) {
      throw input_error("no point of the pilot has 2 runs that count", "--pilot",
                        "run it with --repeats 5, or state the noise with --noise");
    }
  }

  Noise make() {
    add_runs();
    add_rounds();
    add_sessions();
    add_nodes();
    add_steps();
    return std::move(noise_);
  }

 private:
  void add(const Run& run, const Subject& subject) {
    const std::string name = subject_name(*run.record);
    const auto cost = run.cost();
    if (!cost) return;
    noise_.is_of_published = noise_.is_of_published || run->kind != "measured";
    PointNoise& point = noise_.points[name];
    const auto hours = run.replicas_are_cores() ? core_hours(run) : gpu_hours(run);
    if (hours) {
      const auto n = static_cast<double>(point.runs);
      point.hours = (point.hours.value_or(0) * n + *hours) / (n + 1);
    }
    ++point.runs;
    PilotRun one{name, subject.name, run->session, run->hosts(), run->round, 0, 0};
    one.value = std::log(*cost);
    all_.push_back(one);
    add_scatter(run);
  }

  // Excludes runs far from the median of their point and session.
  void exclude_outlying() {
    constexpr double kLeast = 0.1;  // the same as the gate's
    std::map<Key, std::vector<double>> values;
    for (const PilotRun& one : all_) values[point_key(one)].push_back(one.value);
    std::vector<double> deviations;
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < all_.size(); ++i) {
      const std::vector<double>& alike = values[point_key(all_[i])];
      if (most_outlying(alike.size()) == 0) continue;
      deviations.push_back(all_[i].value - median(alike));
      places.push_back(i);
    }
    const auto found = outlying(deviations, kLeast);
    noise_.runs = places.size();
    noise_.outlying = found.size();
    for (auto each = found.rbegin(); each != found.rend(); ++each) {
      --noise_.points[all_[places[*each]].name].runs;
      all_.erase(all_.begin() + static_cast<std::ptrdiff_t>(places[*each]));
    }
  }

  // Scatter of the steps of the first rank with quantiles, as if it were normal.
  void add_scatter(const Run& run) {
    for (const RankFacts& facts : *run->each_rank) {
      const StepQuantiles rank = facts.step_seconds.value_or(StepQuantiles{});
      const auto steps = run.steps();
      if (!rank.p05 || !rank.p50 || !rank.p95 || !steps || *steps < 1) continue;
      const double sd = (*rank.p95 - *rank.p05) / (2 * 1.645) / *rank.p50;
      step_variances_.sum += sd * sd;
      run_variances_.sum += sd * sd / *steps;
      ++step_variances_.count;
      ++run_variances_.count;
      break;
    }
  }

  bool has_rounds() const {
    return std::all_of(all_.begin(), all_.end(), [](const PilotRun& one) { return one.round > 0; });
  }

  // The level of runs: what is left without the means of points, and of rounds if points share
  // them.
  void add_runs() {
    for (PilotRun& one : all_) one.residual = one.value;
    const std::size_t points = subtract_means(all_, point_key);
    const auto round_key = [](const PilotRun& one) { return Key{round_name(one), ""}; };
    std::map<std::string, std::set<std::string>> points_of_round;
    for (const PilotRun& one : all_) points_of_round[round_name(one)].insert(one.point);
    are_rounds_shared_ =
        has_rounds() && std::all_of(points_of_round.begin(), points_of_round.end(),
                                    [](const auto& e) { return e.second.size() > 1; });
    double freedom = static_cast<double>(all_.size() - points);
    const auto sessions = distinct(all_, &PilotRun::session);
    if (are_rounds_shared_) {
      before_rounds_ = all_;
      std::size_t rounds = 0;
      // Converges to the least squares of point and round, also with gaps.
      for (int pass = 0; pass < 50; ++pass) {
        rounds = subtract_means(all_, round_key);
        subtract_means(all_, point_key);
      }
      freedom -= static_cast<double>(rounds - sessions.size());
    }
    double squares = 0;
    for (const PilotRun& one : all_) squares += one.residual * one.residual;
    Level level{"run", std::nullopt, freedom, ""};
    if (freedom > 0) level.sd = std::sqrt(squares / freedom);
    level.remark = freedom <= 0         ? "each point has one run a session"
                   : are_rounds_shared_ ? "what a gate with paired rounds sees"
                                        : "includes rounds: points share none";
    variance_ = freedom > 0 ? squares / freedom : 0;
    freedom_ = freedom;
    noise_.levels.push_back(level);
    moderate_points(freedom);
  }

  void moderate_points(double freedom) {
    if (freedom <= 0) return;
    const double share = freedom / static_cast<double>(all_.size());  // of each value
    std::map<std::string, Sum> squares;
    for (const PilotRun& one : all_) {
      squares[one.name].sum += one.residual * one.residual;
      ++squares[one.name].count;
    }
    std::vector<Difference> own;
    for (const auto& [name, sum] : squares) {
      const double count = sum.count * share;
      own.push_back({0, std::sqrt(sum.sum / count), count, 1});
    }
    moderate(mapped(own, [](Difference& each) { return &each; }));
    std::size_t i = 0;
    for (const auto& [name, sum] : squares) {
      noise_.points[name].sd = own[i].standard_error;
      noise_.points[name].degrees_of_freedom = own[i].degrees_of_freedom;
      ++i;
    }
  }

  void push_level(const std::string& name, const GroupVariance& found, double below,
                  const std::string& why_not, const std::string& remark) {
    Level level{name, std::nullopt, found.degrees_of_freedom, why_not};
    if (why_not.empty() && found.degrees_of_freedom > 0) {
      level.sd = std::sqrt(std::max(0.0, found.variance - below));
      level.remark = remark;
      if (*level.sd == 0) level.remark = "no more than the levels below explain";
    }
    noise_.levels.push_back(level);
  }

  void add_rounds() {
    const bool known = are_rounds_shared_ && freedom_ > 0;
    const GroupVariance found = known ? estimate_variance(
                                            before_rounds_, &PilotRun::residual,
                                            [](const PilotRun& one) {
                                              return Key{round_name(one), ""};
                                            },
                                            [](const PilotRun& one) { return one.session; })
                                      : GroupVariance{};
    push_level("round", found, known ? variance_ / found.count : 0,
               known ? "" : "in the run's: points share no rounds",
               "all points of a round share it");
  }

  void add_sessions() {
    const GroupVariance found = estimate_variance(
        all_, &PilotRun::value,
        [](const PilotRun& one) {
          return Key{one.session, ""};
        },
        [](const PilotRun& one) { return one.point; });
    const Level& round = noise_.levels.back();
    const double within = variance_ + round.sd.value_or(0) * round.sd.value_or(0);
    const auto sessions = distinct(all_, &PilotRun::session);
    const auto nodes = distinct(all_, &PilotRun::node);
    const auto pairs = distinct(all_, [](const PilotRun& one) {
      return Key{one.session, one.node};
    });
    const std::string why = sessions.size() < 2             ? "one session"
                            : found.degrees_of_freedom <= 0 ? "no point has runs in two sessions"
                                                            : "";
    const bool moved = nodes.size() > 1 && pairs.size() == sessions.size();
    push_level("session", found, found.count > 0 ? within / found.count : 0, why,
               moved ? "includes nodes, which change with sessions"
                     : fmt::format("{} sessions; all points of one share it", sessions.size()));
    // More points of a session say no more about how sessions differ.
    noise_.levels.back().degrees_of_freedom = static_cast<double>(sessions.size()) - 1;
  }

  void add_nodes() {
    const auto nodes = distinct(all_, &PilotRun::node);
    const GroupVariance found = estimate_variance(
        all_, &PilotRun::residual,
        [](const PilotRun& one) {
          return Key{one.node, ""};
        },
        [](const PilotRun& one) { return one.session; });
    const std::string why = nodes.size() < 2 ? "one node"
                            : found.degrees_of_freedom <= 0
                                ? "in the session's: no session has several nodes"
                                : "";
    push_level("node", found, found.count > 0 ? variance_ / found.count : 0, why,
               "the run's includes it");
  }

  void add_steps() {
    Level level{"step", std::nullopt, 0, "the records have no quantiles of steps"};
    if (step_variances_.count > 0) {
      level.sd = std::sqrt(step_variances_.mean());
      const double of_run = std::sqrt(run_variances_.mean());
      level.remark =
          fmt::format("{:.2g} % of a run's time, if steps were independent", 100 * of_run);
      if (variance_ > 0 && of_run * of_run < 0.25 * variance_) {
        noise_.notes.push_back(
            "longer runs may vary as much: independent steps explain less than a quarter of how "
            "runs vary, and only disturbances shorter than a run average out");
      }
    }
    noise_.levels.insert(noise_.levels.begin(), level);
  }

  Noise noise_;
  std::vector<PilotRun> all_, before_rounds_;
  bool are_rounds_shared_ = false;
  double variance_ = 0, freedom_ = 0;
  Sum step_variances_, run_variances_;
};

}  // namespace

const Level& Noise::level(const std::string& name) const {
  const auto it = std::ranges::find(levels, name, &Level::name);
  if (it == levels.end()) throw internal_error("no level " + name);
  return *it;
}

Noise estimate_noise(const StoreContent& content) {
  return NoiseEstimator(content).make();
}

double upper_share(std::size_t found, std::size_t runs) {
  if (runs == 0 || found >= runs) return found > 0 ? 1 : 0;
  const boost::math::beta_distribution<double> distribution(static_cast<double>(found) + 1,
                                                            static_cast<double>(runs - found));
  return boost::math::quantile(distribution, kChance);
}

double likely_share(std::size_t found, std::size_t runs) {
  return (static_cast<double>(found) + 0.5) / (static_cast<double>(runs) + 25);
}

double upper_sd(double sd, double degrees_of_freedom) {
  if (degrees_of_freedom <= 0) return sd;
  const boost::math::chi_squared_distribution<double> distribution(degrees_of_freedom);
  return sd * std::sqrt(degrees_of_freedom / boost::math::quantile(distribution, 1 - kChance));
}

}  // namespace paceline
