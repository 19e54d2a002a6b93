#include "analysis/plan/design.h"

#include <cmath>

namespace paceline {

namespace {

// The noisiest point of the spec, else of the pilot.
void find_noisiest(Design& design) {
  const auto& known = design.noise.points;
  const auto consider = [&](const std::string& name) {
    const auto it = known.find(name);
    if (it == known.end() || it->second.degrees_of_freedom <= 0) return;
    const double assumed = upper_sd(it->second.sd, it->second.degrees_of_freedom);
    if (assumed <= design.assumed) return;
    design.assumed = assumed;
    design.sd = it->second.sd;
    design.noisiest = name;
  };
  for (const std::string& name : design.request.points) consider(name);
  if (!design.noisiest.empty()) return;
  for (const auto& [name, point] : known) consider(name);
}

// The share of pairs of runs in which either run is an outlier.
double share_of_pairs(double share_of_runs) {
  return 1 - (1 - share_of_runs) * (1 - share_of_runs);
}

void add_hours(Design& design) {
  double hours = 0;
  for (const std::string& name : design.request.points) {
    const auto it = design.noise.points.find(name);
    if (it == design.noise.points.end() || !it->second.hours) {
      ++design.points_without_hours;
    } else {
      hours += 2 * *it->second.hours;
    }
  }
  if (hours > 0) design.hours_per_round = hours;
}

void add_sessions(Design& design, const Limits& limits, double effect) {
  const Level& session = design.noise.level("session");
  if (!session.sd) return;
  const double between = upper_sd(*session.sd, session.degrees_of_freedom);
  const double round = design.noise.level("round").sd.value_or(0);
  const double within = round * round + design.assumed * design.assumed;
  for (const int repeats : {1, 2, 3, 5, 10}) {
    SessionDesign each;
    each.repeats = repeats;
    const double sd = std::sqrt(between * between + within / repeats);
    each.sessions =
        sessions_needed(limits, sd, effect, design.request.points.size() - 1, design.request.power);
    const auto runs = static_cast<std::size_t>(each.sessions * repeats);
    each.runs = 2 * runs * design.request.points.size();
    if (design.hours_per_round) each.hours = *design.hours_per_round * static_cast<double>(runs);
    design.sessions.push_back(each);
  }
}

}  // namespace

Noise stated_noise(double sd) {
  Noise noise;
  for (const char* name : {"step", "run", "round", "session", "node"}) {
    noise.levels.push_back({name, std::nullopt, 0, "not stated"});
  }
  noise.levels[1].sd = sd;
  noise.levels[1].remark = "stated";
  return noise;
}

Design make_design(const DesignRequest& request, const Noise& noise) {
  Design design;
  design.request = request;
  design.noise = noise;
  design.is_stated = noise.points.empty();
  if (design.is_stated) {
    design.sd = design.assumed = noise.level("run").sd.value_or(0);
  } else {
    find_noisiest(design);
  }
  // A difference of two runs of one round.
  const double pair = std::sqrt(2.0) * design.assumed;
  if (!design.is_stated && noise.runs > 0) {
    design.outlying = likely_share(noise.outlying, noise.runs);
    design.outlying_at_most = upper_share(noise.outlying, noise.runs);
  }
  const double aside = share_of_pairs(design.outlying);
  const std::size_t others = request.points.size() - 1;
  const Limits now = make_limits(request.threshold, true);
  const double seen = smallest_seen(
      [&](double effect) {
        return chance_confirmed(now, Rounds{request.rounds, pair, aside}, effect, others);
      },
      request.power);
  if (std::isfinite(seen)) design.seen = std::expm1(seen);
  design.threshold = request.detect / 2;
  const Limits limits = make_limits(design.threshold, true);
  const double effect = std::log1p(request.detect);
  design.rounds = rounds_needed(limits, pair, aside, effect, others, request.power);
  design.rounds_as_estimated =
      rounds_needed(limits, std::sqrt(2.0) * design.sd, aside, effect, others, request.power);
  design.rounds_at_most = rounds_needed(limits, pair, share_of_pairs(design.outlying_at_most),
                                        effect, others, request.power);
  if (design.is_stated && design.rounds > 0) {
    constexpr double kShare = 0.05;
    design.power_if_some_stand_out = chance_confirmed(
        limits, Rounds{design.rounds, pair, share_of_pairs(kShare)}, effect, others);
  }
  const Rounds each{0, pair, aside};
  design.equal = until_decided(limits, each, 0, others + 1, kMostRoundsUntilDecided);
  design.slower = until_decided(limits, each, effect, others + 1, kMostRoundsUntilDecided);
  design.runs = 2 * static_cast<std::size_t>(design.rounds) * request.points.size();
  add_hours(design);
  add_sessions(design, limits, effect);
  return design;
}

}  // namespace paceline
