#include "analysis/best.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <tuple>

#include "analysis/contrast.h"
#include "analysis/labels.h"
#include "analysis/point_names.h"
#include "analysis/row_facts.h"
#include "engine/core/error.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

const char* name_of(Nearness nearness) {
  switch (nearness) {
    case Nearness::within:
      return "within";
    case Nearness::beyond:
      return "beyond";
    case Nearness::undecided:
      return "undecided";
  }
  return "?";
}

Nearness nearness_of(const Ratio& over_best, double within) {
  const auto& interval = over_best.estimate.interval;
  if (!interval || over_best.estimate.count < kFewestRuns) return Nearness::undecided;
  if (interval->high <= 1 + within) return Nearness::within;
  return interval->low > 1 + within ? Nearness::beyond : Nearness::undecided;
}

bool may_be_within(const NearPoint& point, double within) {
  const Estimate& estimate = point.over_best.estimate;
  return (estimate.interval ? estimate.interval->low : estimate.value) <= 1 + within;
}

double cpus_of(const Run& run) {
  if (!run.cpus_per_task) return 0;
  return static_cast<double>(*run.cpus_per_task) * run.ntasks.value_or(1);
}

// Rows that can be compared: measured ones, or where there are none those of one kind and system.
std::vector<std::size_t> candidates_of(const Study& study) {
  std::vector<std::size_t> measured, all;
  for (std::size_t i = 0; i < study.rows.size(); ++i) {
    if (!reached_goal(study.rows[i])) continue;
    all.push_back(i);
    if (study.rows[i].first().kind == "measured") measured.push_back(i);
  }
  if (all.empty()) {
    throw Error(ErrorKind::input, "no run reached its goal", study.rows.front().first().where,
                "train longer, or for less");
  }
  const std::vector<std::size_t>& chosen = measured.empty() ? all : measured;
  const Run& first = study.rows[chosen.front()].first();
  for (const std::size_t i : chosen) {
    const Run& run = study.rows[i].first();
    if (run.system == first.system && run.kind == first.kind) continue;
    throw Error(ErrorKind::usage, "the best of unlike systems is no answer",
                first.where + " and " + run.where, "choose one with --only system=...");
  }
  return chosen;
}

std::string percent_over(const NearPoint& point) {
  const auto over = [](double ratio) { return 100 * (ratio - 1); };
  const Estimate& estimate = point.over_best.estimate;
  std::string text = fmt::format("{:+.1f} %", over(estimate.value));
  if (estimate.interval) {
    text += fmt::format(" [{:+.1f}, {:+.1f}]", over(estimate.interval->low),
                        over(estimate.interval->high));
  }
  return text;
}

std::string cost_text(const Study& study, const Best& best, const NearPoint& point) {
  const Estimate cost = mean_cost(study.rows[point.row], best.rates);
  return best.rates ? fmt::format("{:.4g} samples/s", 1 / cost.value)
                    : fmt::format("{:.4g} s", cost.value);
}

std::string line_of(const Study& study, const Best& best, const NearPoint& point) {
  const std::size_t runs = study.rows[point.row].runs.size();
  return fmt::format("  {}: {}, {} over the best, {} run{}, {}\n", point.name,
                     cost_text(study, best, point), percent_over(point), runs, runs == 1 ? "" : "s",
                     name_of(point.nearness));
}

Json json_of(const Study& study, const NearPoint& point) {
  const Row& row = study.rows[point.row];
  const Run& run = row.first();
  const auto whole = [](const std::optional<int>& value) {
    return value ? Json(*value) : Json(nullptr);
  };
  const auto mean = [&](std::optional<double> Run::*quantity) {
    std::vector<double> values;
    for (const Run& each : row.runs) {
      if (each.*quantity) values.push_back(*(each.*quantity));
    }
    return values.empty() ? Json(nullptr) : Json(geometric_mean(values).value);
  };
  const auto& interval = point.over_best.estimate.interval;
  return {{"name", point.name},
          {"nodes", whole(run.nodes)},
          {"ntasks", whole(run.ntasks)},
          {"cpus_per_task", whole(run.cpus_per_task)},
          {"gpus", run.gpus},
          {"cpus", point.cpus > 0 ? Json(point.cpus) : Json(nullptr)},
          {"backend", run.backend},
          {"runs", row.runs.size()},
          {"fit_seconds", mean(&Run::fit_seconds)},
          {"samples_per_second", mean(&Run::samples_per_second)},
          {"over_best", point.over_best.estimate.value},
          {"over_best_low", interval ? Json(interval->low) : Json(nullptr)},
          {"over_best_high", interval ? Json(interval->high) : Json(nullptr)},
          {"interval", !interval                                   ? "none"
                       : point.over_best.kind == RatioKind::paired ? "paired"
                                                                   : "welch"},
          {"verdict", name_of(point.nearness)}};
}

// Which points cannot be told from the fastest.
void find_alike(const Study& study, Best& best) {
  const RowValues fastest = log_costs(study.rows[best.best.row], best.rates);
  std::vector<const NearPoint*> others;
  std::vector<double> p;
  best.judged = true;
  for (const NearPoint& point : best.points) {
    if (point.row == best.best.row) continue;
    const Difference slower =
        contrast({fastest, log_costs(study.rows[point.row], best.rates)},
                 [](const RowMeans& means) { return means[1][0] - means[0][0]; });
    best.judged = best.judged && is_judged(slower);
    if (!is_judged(slower)) continue;
    others.push_back(&point);
    p.push_back(slower.p_value());
  }
  p = holm_adjusted(p);
  for (std::size_t i = 0; i < others.size(); ++i) {
    if (p[i] >= 1 - kConfidence) best.alike.push_back(*others[i]);
  }
}

// "2.23 to 2.53 s"
std::string costs_text(const Study& study, const Best& best) {
  const auto shown = [&](const NearPoint& point) {
    const double cost = mean_cost(study.rows[point.row], best.rates).value;
    return best.rates ? 1 / cost : cost;
  };
  double low = shown(best.best), high = low;
  for (const NearPoint& point : best.alike) {
    low = std::min(low, shown(point));
    high = std::max(high, shown(point));
  }
  return fmt::format("{:.4g} to {:.4g} {}", low, high, best.rates ? "samples/s" : "s");
}

bool has_smaller(const Best& best) {
  return best.points.front().row != best.best.row;
}

}  // namespace

std::string fastest_sentence(const Study& study, const Best& best) {
  const std::string fastest = best.best.name + ": " + cost_text(study, best, best.best);
  const std::size_t others = best.points.size() - 1;
  if (others == 0) return "the only point: " + fastest;
  if (!best.alike.empty() && best.alike.size() == others) {
    return fmt::format(
        "the {} points cannot be told apart at 95 %, tested together ({}); fastest by its mean: {}",
        others + 1, costs_text(study, best), fastest);
  }
  if (!best.alike.empty()) {
    std::vector<std::string> names;
    for (const NearPoint& point : best.alike) names.push_back(point.name);
    return fmt::format(
        "fastest by its mean: {}; cannot be told apart from it at 95 %, tested together ({}): {}",
        fastest, costs_text(study, best), join(names, "; "));
  }
  if (!best.judged) {
    return fmt::format(
        "fastest by its mean: {} (points of fewer than {} runs cannot be told apart)", fastest,
        kFewestRuns);
  }
  return "fastest: " + fastest;
}

Best find_best(const Study& study, double within) {
  Best best;
  best.within = within;
  best.rates = compare(study, Base::best).rates;
  const std::vector<std::size_t> rows = candidates_of(study);
  const auto key = [&](std::size_t i) {
    return std::tuple(study.rows[i].tainted, mean_cost(study.rows[i], best.rates).value);
  };
  const std::size_t fastest = *std::min_element(
      rows.begin(), rows.end(), [&](std::size_t a, std::size_t b) { return key(a) < key(b); });
  std::vector<const Row*> pointers;
  for (const std::size_t i : rows) pointers.push_back(&study.rows[i]);
  const std::vector<std::string> names = point_names(study, pointers);
  for (std::size_t k = 0; k < rows.size(); ++k) {
    NearPoint point;
    point.row = rows[k];
    point.name = names[k];
    point.cpus = cpus_of(study.rows[rows[k]].first());
    if (rows[k] == fastest) {
      point.over_best.estimate = {1, std::nullopt, study.rows[fastest].runs.size()};
      point.nearness = Nearness::within;
      best.best = point;
    } else {
      point.over_best = ratio_of(study.rows[rows[k]], study.rows[fastest], best.rates);
      point.nearness = nearness_of(point.over_best, within);
    }
    best.points.push_back(point);
  }
  std::stable_sort(best.points.begin(), best.points.end(),
                   [&](const NearPoint& a, const NearPoint& b) {
                     const Run& left = study.rows[a.row].first();
                     const Run& right = study.rows[b.row].first();
                     return std::tuple(left.gpus, a.cpus, a.over_best.estimate.value) <
                            std::tuple(right.gpus, b.cpus, b.over_best.estimate.value);
                   });
  const auto smallest =
      std::find_if(best.points.begin(), best.points.end(),
                   [](const NearPoint& point) { return point.nearness == Nearness::within; });
  best.smallest = *smallest;
  best.by_mean = *std::find_if(best.points.begin(), best.points.end(), [&](const NearPoint& point) {
    return point.over_best.estimate.value <= 1 + within;
  });
  std::copy_if(best.points.begin(), smallest, std::back_inserter(best.undecided),
               [](const NearPoint& point) { return point.nearness == Nearness::undecided; });
  find_alike(study, best);
  return best;
}

std::string best_text(const Study& study, const Best& best) {
  std::string text =
      fmt::format("{}: the smallest point within {:g} % of the best {}\n\n", study_title(study),
                  100 * best.within, best.rates ? "rate" : "time");
  text += fastest_sentence(study, best) + '\n';
  if (!has_smaller(best)) {
    text += "no point is smaller\n";
  } else if (best.smallest.row == best.best.row) {
    text += fmt::format("no smaller point is certainly within {:g} %: use the fastest\n",
                        100 * best.within);
  } else {
    text += "smallest:\n" + line_of(study, best, best.smallest);
  }
  if (best.undecided.empty()) return text;
  if (best.by_mean.row != best.smallest.row) {
    text += "smallest by the means alone, which decides nothing:\n" +
            line_of(study, best, best.by_mean);
  }
  std::size_t far = 0;
  std::string near;
  for (const NearPoint& point : best.undecided) {
    if (!may_be_within(point, best.within)) {
      ++far;
    } else if (point.row != best.by_mean.row) {
      near += line_of(study, best, point);
    }
  }
  if (!near.empty()) text += "smaller points that may be within:\n" + near;
  if (far > 0) {
    text += fmt::format("{} smaller point{} of fewer than 3 runs, by their means beyond\n", far,
                        far == 1 ? "" : "s");
  }
  return text + "run more repeats of these and of the best to decide\n";
}

Json best_json(const Study& study, const Best& best) {
  const auto names_of = [](const std::vector<NearPoint>& points) {
    Json names = Json::array();
    for (const NearPoint& point : points) names.push_back(point.name);
    return names;
  };
  const auto list = [&](const std::vector<NearPoint>& points) {
    Json json = Json::array();
    for (const NearPoint& point : points) json.push_back(json_of(study, point));
    return json;
  };
  return {{"schema", 1},
          {"within", best.within},
          {"compared", best.rates ? "samples_per_second" : "fit_seconds"},
          {"decided", best.undecided.empty()},
          {"best", json_of(study, best.best)},
          {"alike", names_of(best.alike)},
          {"smallest", json_of(study, best.smallest)},
          {"smallest_by_mean", json_of(study, best.by_mean)},
          {"undecided", list(best.undecided)},
          {"points", list(best.points)}};
}

}  // namespace paceline
