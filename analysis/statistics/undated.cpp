#include "analysis/statistics/undated.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

#include "engine/core/text.h"

namespace paceline {

namespace {

using Values = std::vector<double>;

constexpr double kFree = 1e-9;                 // share of a regressor that others do not explain
constexpr double kRampsGrowBy = 1.25;          // lengths that are tried
constexpr std::size_t kStarts = 8;             // of a ramp of one length, so many for its length
constexpr std::size_t kNearStep = 10;          // sessions on each side to which a step may move
constexpr double kLeastLikelihood = 1 / 20.0;  // of a date
constexpr std::size_t kVagueSessions = 3;      // of a date that is none, at the least
constexpr double kShortestDecay = 4;           // sessions of a decay to 1 / e
constexpr double kCostOfDrift = 3;             // parameters; that a step ends one is a guess, too
constexpr double kCostOfShortRamp = 3;         // parameters
constexpr double kOfFurtherStep = 2;           // parameters: its date and its size
constexpr std::size_t kNearSpell = 2;          // sessions
constexpr std::size_t kFewestSpells = 4;       // of two modes

double dot(std::span<const double> a, std::span<const double> b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

// Tries curves, and keeps the one that explains most.
class BestCurve {
 public:
  explicit BestCurve(const Residuals& beside) : beside_(beside) {}

  void consider(UndatedKind kind, std::size_t begin, std::size_t end, Values first,
                Values second = {}, std::size_t period = 0) {
    const Residuals::Further found = beside_.further(first, second);
    if (found.explained <= explained) return;
    explained = found.explained;
    for (std::size_t i = 0; i < first.size(); ++i) {
      first[i] = found.first * first[i] + (second.empty() ? 0 : found.second * second[i]);
    }
    const auto [low, high] = std::ranges::minmax(first);
    const double size = kind == UndatedKind::wave ? high - low : first.back() - first.front();
    curve = {{kind, begin, end, size, period, 0}, std::move(first)};
  }

  double explained = 0;
  UndatedCurve curve;

 private:
  const Residuals& beside_;
};

// A ramp of one length, during which `at` lies in several ways.
template <typename Consider>
void for_each_ramp(std::size_t sessions, std::size_t at, double length, Consider consider) {
  const double last = static_cast<double>(sessions) - 1;
  for (std::size_t k = 1; k < kStarts; ++k) {
    const double start = static_cast<double>(at) - 0.5 -
                         length * static_cast<double>(k) / static_cast<double>(kStarts);
    Values ramp;
    for (std::size_t i = 0; i < sessions; ++i) {
      ramp.push_back(std::clamp((static_cast<double>(i) - start) / length, 0.0, 1.0));
    }
    consider(std::max(start, 0.0), std::min(start + length, last), std::move(ramp));
  }
}

void consider_ramps(BestCurve& best, std::size_t sessions, std::size_t at) {
  const auto least = static_cast<double>(shortest_ramp(sessions));
  for (double length = least; length < 2 * static_cast<double>(sessions); length *= kRampsGrowBy) {
    for_each_ramp(sessions, at, length, [&](double begin, double end, Values ramp) {
      if (end - begin < least) return;
      best.consider(UndatedKind::ramp, static_cast<std::size_t>(begin),
                    static_cast<std::size_t>(std::ceil(end)), std::move(ramp));
    });
  }
}

void consider_smooth_curves(BestCurve& best, std::size_t sessions) {
  const auto n = static_cast<double>(sessions);
  for (double slow = kShortestDecay; slow < n; slow *= kRampsGrowBy) {
    Values decay;
    for (std::size_t i = 0; i < sessions; ++i) {
      decay.push_back(std::exp(-static_cast<double>(i) / slow));
    }
    const std::size_t end = std::min(sessions - 1, static_cast<std::size_t>(3 * slow));
    best.consider(UndatedKind::decay, 0, end, std::move(decay));
  }
  for (std::size_t k = 2; k * kShortestWave <= 2 * sessions; ++k) {
    Values sine, cosine;
    for (std::size_t i = 0; i < sessions; ++i) {
      const double angle = std::numbers::pi * static_cast<double>(k * i) / n;
      sine.push_back(std::sin(angle));
      cosine.push_back(std::cos(angle));
    }
    best.consider(UndatedKind::wave, 0, sessions - 1, std::move(sine), std::move(cosine),
                  2 * sessions / k);
  }
}

// The least squares that the judged steps leave.
double rest_of_steps(const Residuals& beside, const StepsAndCurve& judged, double of_parameter) {
  const auto& [steps, first, last, curve] = judged;
  const std::size_t sessions = beside.sessions();
  Residuals with = beside;
  if (!curve.empty()) with.add(curve);
  if (first < last) {
    for (std::size_t k = first; k <= last; ++k) with.add(step_at(sessions, steps[k]));
    return with.squares();
  }
  const std::size_t at = steps[first];
  const std::size_t least = first > 0 ? steps[first - 1] + 1 : 1;
  const std::size_t most = last + 1 < steps.size() ? steps[last + 1] : sessions;
  double explained = 0;
  for (std::size_t i = std::max(least, at - std::min(at, kNearStep));
       i < std::min(most, at + kNearStep); ++i) {
    explained = std::max(explained, with.further(step_at(sessions, i)).explained);
  }
  // A short ramp has a date as well; it pays for its length, and for being a guess.
  for (double length = 2; length <= static_cast<double>(shortest_ramp(sessions)) / 2;
       length *= kRampsGrowBy) {
    for_each_ramp(sessions, at, length, [&](double, double, const Values& ramp) {
      explained =
          std::max(explained, with.further(ramp).explained - kCostOfShortRamp * of_parameter);
    });
  }
  return with.squares() - explained;
}

struct Spell {
  std::size_t begin = 0, end = 0;  // sessions, end excluded
  bool is_high = false;
  std::size_t length() const { return end - begin; }
};

// Of values above the limit that divides them into two groups of the least squares, which are
// `squares`.
std::vector<Spell> find_spells(std::span<const double> values, double& squares) {
  Values sorted(values.begin(), values.end());
  std::ranges::sort(sorted);
  const double middle = sorted[sorted.size() / 2];
  double all = 0, sum = 0, total = 0, most = 0, limit = middle;
  for (const double value : sorted) {
    total += value - middle;
    all += (value - middle) * (value - middle);
  }
  const auto n = static_cast<double>(sorted.size());
  for (std::size_t i = 0; i + 1 < sorted.size(); ++i) {
    sum += sorted[i] - middle;
    const auto below = static_cast<double>(i + 1);
    const double explained = sum * sum / below + (total - sum) * (total - sum) / (n - below);
    if (explained <= most) continue;
    most = explained;
    limit = (sorted[i] + sorted[i + 1]) / 2;
  }
  squares = all - most;
  std::vector<Spell> spells;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const bool is_high = values[i] > limit;
    if (spells.empty() || spells.back().is_high != is_high) spells.push_back({i, i, is_high});
    spells.back().end = i + 1;
  }
  return spells;
}

// Minus the logarithm of the likelihood of a chain with as many spells in so many sessions.
double cost_of_spells(std::size_t spells, std::size_t sessions) {
  const auto left = static_cast<double>(spells), stays = static_cast<double>(sessions) - left;
  const auto all = static_cast<double>(sessions);
  return left > 0 ? -left * std::log(left / all) - (stays > 0 ? stays * std::log(stays / all) : 0)
                  : 0;
}

// The longest spell of a mode, if chance makes it so long in less than a share `level`: a
// geometric length of which the other spells say what is usual.
std::optional<Spell> outlasting_spell(const std::vector<Spell>& spells, bool is_high,
                                      double level) {
  Spell longest;
  double count = 0, sessions = 0;
  for (const Spell& spell : spells) {
    if (spell.is_high != is_high) continue;
    ++count;
    sessions += static_cast<double>(spell.length());
    if (spell.length() > longest.length()) longest = spell;
  }
  const double others = sessions - static_cast<double>(longest.length());
  if (count < 2 || count * std::pow(others / sessions, count - 1) > level) return std::nullopt;
  return longest;
}

}  // namespace

Values step_at(std::size_t sessions, std::size_t at) {
  Values step(sessions);
  std::fill(step.begin() + static_cast<std::ptrdiff_t>(at), step.end(), 1.0);
  return step;
}

Values explained_by_steps(const ScaledSeries& series, double resemblance) {
  Residuals beside(series, resemblance);
  beside.add(Values(series.values.size(), 1));
  Values explained = {0};
  for (std::size_t at = 1; at < series.values.size(); ++at) {
    explained.push_back(beside.further(step_at(series.values.size(), at)).explained);
  }
  return explained;
}

std::size_t shortest_ramp(std::size_t sessions) {
  return std::max(sessions / 10, std::min(kShortestRamp, (2 * sessions + 2) / 3));
}

Residuals::Residuals(const ScaledSeries& series, double resemblance) : resemblance_(resemblance) {
  for (std::size_t i = 0; i < series.values.size(); ++i) {
    roots_.push_back(1 / series.scales[i]);
    rest_.push_back(series.values[i] - series.values[0]);
  }
  rest_ = independent(rest_);
}

// Weighted, and without what a session has of the one before.
Values Residuals::independent(std::span<const double> values) const {
  const double left = std::sqrt(1 - resemblance_ * resemblance_);
  Values made;
  double before = 0;
  for (std::size_t i = 0; i < roots_.size(); ++i) {
    const double value = values[i] * roots_[i];
    made.push_back(i == 0 ? value : (value - resemblance_ * before) / left);
    before = value;
  }
  return made;
}

Values Residuals::unexplained(std::span<const double> regressor) const {
  Values made = independent(regressor);
  const double before = dot(made, made);
  for (const Values& each : basis_) {
    const double part = dot(made, each);
    for (std::size_t i = 0; i < made.size(); ++i) made[i] -= part * each[i];
  }
  if (dot(made, made) <= kFree * before) made.clear();
  return made;
}

void Residuals::add(std::span<const double> regressor) {
  Values made = unexplained(regressor);
  if (made.empty()) return;
  const double length = std::sqrt(dot(made, made));
  for (double& each : made) each /= length;
  const double part = dot(rest_, made);
  for (std::size_t i = 0; i < made.size(); ++i) rest_[i] -= part * made[i];
  basis_.push_back(std::move(made));
}

double Residuals::squares() const {
  return dot(rest_, rest_);
}

Residuals::Further Residuals::further(std::span<const double> first,
                                      std::span<const double> second) const {
  const Values a = unexplained(first), b = second.empty() ? Values() : unexplained(second);
  if (a.empty()) return {};
  const double aa = dot(a, a), ay = dot(a, rest_);
  if (b.empty()) return {ay * ay / aa, ay / aa, 0, aa};
  const double ab = dot(a, b), bb = dot(b, b), by = dot(b, rest_);
  const double determinant = aa * bb - ab * ab;
  if (determinant <= kFree * aa * bb) return {ay * ay / aa, ay / aa, 0, aa};
  const double x = (ay * bb - by * ab) / determinant, y = (by * aa - ay * ab) / determinant;
  return {x * ay + y * by, x, y, aa};
}

std::optional<UndatedCurve> find_rival(const ScaledSeries& series, std::span<const double> days,
                                       const StepsAndCurve& judged, double variance,
                                       double resemblance) {
  const auto& [steps, first, last, curve] = judged;
  const std::size_t sessions = series.values.size();
  const double of_parameter = std::log(static_cast<double>(sessions)) * variance;
  const auto more = kOfFurtherStep * (static_cast<double>(last - first) + (curve.empty() ? 0 : 1));
  double least_of_steps = std::numeric_limits<double>::infinity(), least = least_of_steps;
  std::optional<UndatedCurve> found;
  for (const bool drifts : {false, true}) {
    if (drifts && days.empty()) break;
    Residuals beside(series, resemblance);
    beside.add(Values(sessions, 1));
    if (drifts) beside.add(mapped(days, [&](double day) { return day - days.front(); }));
    for (std::size_t k = 0; k < steps.size(); ++k) {
      if (k < first || k > last) beside.add(step_at(sessions, steps[k]));
    }
    const double cost = drifts ? kCostOfDrift * of_parameter : 0;
    least_of_steps = std::min(least_of_steps, cost + rest_of_steps(beside, judged, of_parameter));
    BestCurve best(beside);
    consider_ramps(best, sessions, (steps[first] + steps[last]) / 2);
    if (sessions >= kShortestWave) consider_smooth_curves(best, sessions);
    const double rest = cost + beside.squares() - best.explained;
    if (best.explained <= 0 || rest >= least) continue;
    least = rest;
    found = std::move(best.curve);
  }
  const double margin = kRivalMargin * variance + more * of_parameter;
  if (!found || least > least_of_steps + margin) return std::nullopt;
  found->cost = least - more * of_parameter;
  return found;
}

std::optional<UndatedChange> find_modes(std::span<const double> values,
                                        std::vector<std::size_t>& changes, double cost,
                                        double level) {
  const std::size_t sessions = values.size();
  double left = 0;
  const std::vector<Spell> spells = find_spells(values, left);
  if (spells.size() < kFewestSpells || left <= 0) return std::nullopt;
  std::size_t high = 0, high_spells = 0;
  double high_sum = 0, sum = 0;
  for (const Spell& spell : spells) {
    for (std::size_t i = spell.begin; i < spell.end; ++i) {
      sum += values[i] - values[0];
      high_sum += spell.is_high ? values[i] - values[0] : 0;
    }
    high += spell.is_high ? spell.length() : 0;
    high_spells += spell.is_high ? 1 : 0;
  }
  const double of_modes = cost_of_squares(left, sessions) + cost_of_spells(high_spells, high) +
                          cost_of_spells(spells.size() - high_spells, sessions - high);
  if (of_modes >= cost) return std::nullopt;
  std::vector<std::size_t> kept;
  for (const bool is_high : {false, true}) {
    const auto spell = outlasting_spell(spells, is_high, level / 2);
    for (const std::size_t change : changes) {
      const auto is_near = [&](std::size_t end) {
        return change <= end + kNearSpell && end <= change + kNearSpell;
      };
      if (spell && (is_near(spell->begin) || is_near(spell->end))) kept.push_back(change);
    }
  }
  std::ranges::sort(kept);
  kept.erase(std::unique(kept.begin(), kept.end()), kept.end());
  changes = std::move(kept);
  const double size = high_sum / static_cast<double>(high) -
                      (sum - high_sum) / static_cast<double>(sessions - high);
  return UndatedChange{UndatedKind::modes, 0, sessions - 1, size, 0, high};
}

StepDates plausible_dates(const ScaledSeries& series, std::size_t at, double variance,
                          double resemblance) {
  const Values explained = explained_by_steps(series, resemblance);
  const double least = explained[at] + 2 * std::log(kLeastLikelihood) * variance;
  StepDates dates{at, at};
  for (std::size_t other = 1; other < explained.size(); ++other) {
    if (explained[other] < least) continue;
    dates.earliest = std::min(dates.earliest, other);
    dates.latest = std::max(dates.latest, other);
  }
  return dates;
}

bool has_date(const StepDates& dates, std::size_t sessions) {
  return dates.latest - dates.earliest < std::max(sessions / 10, kVagueSessions);
}

double cost_of_squares(double squares, std::size_t sessions) {
  const auto n = static_cast<double>(sessions);
  return n / 2 * std::log(std::max(squares, 1e-300) / n);
}

}  // namespace paceline
