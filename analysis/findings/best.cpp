#include "analysis/findings/best.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "analysis/study/cost.h"
#include "analysis/study/energy.h"
#include "analysis/study/labels.h"
#include "analysis/study/point_names.h"
#include "analysis/study/row_facts.h"
#include "analysis/study/switches.h"
#include "engine/core/aligned.h"
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

// The rows that can be compared, and why the others cannot.
class Candidates {
 public:
  Candidates(const Study& study, const Expense* least) : study_(study) {
    for (std::size_t i = 0; i < study.rows.size(); ++i) rows.push_back(i);
    keep("whose runs did not all reach their goal",
         [&](std::size_t i) { return reached_goal(study.rows[i]); });
    check_goal();
    keep_if_any("that were not measured",
                [&](std::size_t i) { return study.rows[i].first().kind == "measured"; });
    const std::vector<bool> spared = spared_work(study);
    keep_if_any("that are spared work (backend null, synthetic input, no update)",
                [&](std::size_t i) { return !spared[i]; });
    const Comparison comparison = compare(study, Base::matched);
    keep_if_any("that trained worse than their base (lower accuracy or higher loss)",
                [&](std::size_t i) {
                  const auto& speed_up = comparison.speed_ups[i];
                  return !speed_up || !speed_up->lost;
                });
    keep_if_any("of only disturbed runs", [&](std::size_t i) { return !study.rows[i].tainted; });
    check_system();
    if (least) keep_with(*least);
  }

  std::vector<std::size_t> rows;
  std::vector<std::pair<std::size_t, std::string>> left_aside;  // row and why

 private:
  template <typename Which>
  void keep(const std::string& why, Which which) {
    for (const std::size_t i : rows) {
      if (!which(i)) left_aside.emplace_back(i, why);
    }
    std::erase_if(rows, [&](std::size_t i) { return !which(i); });
  }

  template <typename Which>
  void keep_if_any(const char* why, Which which) {
    if (std::any_of(rows.begin(), rows.end(), which)) keep(why, which);
  }

  void keep_with(const Expense& least) {
    const auto has_it = [&](std::size_t i) {
      return std::ranges::all_of(study_.rows[i].runs,
                                 [&](const Run& run) { return least.of(run).value_or(0) > 0; });
    };
    if (std::none_of(rows.begin(), rows.end(), has_it)) {
      throw Error(
          ErrorKind::input, "no point has a figure of " + least.name,
          study_.rows.front().first().where,
          least.is_metered ? missing_energy(study_) : "--least core-hours ranks replicas on cores");
    }
    keep(("without a figure of " + least.name + " for each run").c_str(), has_it);
    if (!least.is_metered) return;
    const std::string covers = energy_covers(study_.rows[rows.front()]);
    keep("whose energy other meters measured, or other jobs shared",
         [&](std::size_t i) { return energy_covers(study_.rows[i]) == covers; });
  }

  void check_goal() const {
    if (!rows.empty()) return;
    std::size_t runs = 0, reached = 0;
    for (const Row& row : study_.rows) {
      runs += row.runs.size();
      reached += static_cast<std::size_t>(std::count_if(
          row.runs.begin(), row.runs.end(), [](const Run& run) { return run.goal_reached; }));
    }
    throw Error(
        ErrorKind::input,
        fmt::format("no point reached its goal in all of its runs ({} of {} did)", reached, runs),
        study_.rows.front().first().where, "train longer, or choose an easier goal");
  }

  void check_system() const {
    const Run& first = study_.rows[rows.front()].first();
    for (const std::size_t i : rows) {
      const Run& run = study_.rows[i].first();
      if (run.system == first.system && run.kind == first.kind) continue;
      throw Error(ErrorKind::usage, "the records are from different systems",
                  first.where + " and " + run.where, "choose one with --only system=...");
    }
  }

  const Study& study_;
};

std::string cost_text(const Study& study, const Best& best, const NearPoint& point) {
  const Estimate cost = mean_cost(study.rows[point.row], best.rates);
  return best.rates ? fmt::format("{:.4g} samples/s", 1 / cost.value)
                    : fmt::format("{:.4g} s", cost.value);
}

std::string percent_text(const Estimate& ratio) {
  const auto over = [](double value) { return 100 * (value - 1); };
  std::string text = fmt::format("{:+.1f} %", over(ratio.value));
  if (ratio.interval) {
    text +=
        fmt::format(" [{:+.1f}, {:+.1f}]", over(ratio.interval->low), over(ratio.interval->high));
  }
  return text;
}

// "12.3 Wh, -31.2 % [-33.0, -29.1] of the best's"; says so where the runs cannot tell.
std::string amount_text(const Best& best, const NearPoint& point) {
  if (!best.least || !point.amount) return "";
  std::string text =
      fmt::format("{:.4g} {}, ", point.amount->value / best.least->scale, best.least->unit);
  if (point.row == best.best.row) return text;
  const Estimate& ratio = point.amount_over_best.estimate;
  text += percent_text(ratio) + " against the best's";
  const bool is_told = ratio.interval && ratio.count >= kFewestRuns &&
                       (ratio.interval->high < 1 || ratio.interval->low > 1);
  return text + (is_told ? ", " : " (the runs cannot tell them apart), ");
}

std::string line_of(const Study& study, const Best& best, const NearPoint& point) {
  const Row& row = study.rows[point.row];
  return fmt::format("  {}: {}{}, {} over the best, {}, {}\n", point.name, amount_text(best, point),
                     cost_text(study, best, point), percent_text(point.over_best.estimate),
                     counted(units_in(row), row.pooled ? "session" : "run"),
                     name_of(point.nearness));
}

Json json_of(const Study& study, const Best& best, const NearPoint& point) {
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
  Json json = {{"name", point.name},
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
  if (!best.least || !point.amount) return json;
  const Estimate& ratio = point.amount_over_best.estimate;
  json["amount"] = point.amount->value / best.least->scale;
  json["amount_over_best"] = point.row == best.best.row ? 1 : ratio.value;
  json["amount_over_best_low"] = ratio.interval ? Json(ratio.interval->low) : Json(nullptr);
  json["amount_over_best_high"] = ratio.interval ? Json(ratio.interval->high) : Json(nullptr);
  return json;
}

// Which points cannot be told from the fastest.
void find_alike(const Study& study, Best& best) {
  const Row& best_row = study.rows[best.best.row];
  const RowValues fastest = log_costs(best_row, best.rates);
  std::vector<const NearPoint*> others;
  std::vector<double> p;
  for (const NearPoint& point : best.points) {
    if (point.row == best.best.row) continue;
    const Row& row = study.rows[point.row];
    if (const Doubt doubt = doubt_of(best_row, row)) {
      best.unjudged.push_back(point.name);
      best.doubt.add(row);
      best.doubt.add(best_row);
      continue;
    }
    others.push_back(&point);
    p.push_back(contrast({fastest, log_costs(row, best.rates)}, [](const RowMeans& means) {
                  return means[1][0] - means[0][0];
                }).p_value());
  }
  p = holm_adjusted(p, others.size() * (others.size() + 1) / 2);
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

// "; not judged, as rows of fewer than 3 runs cannot tell: ring, 2 replicas"
std::string unjudged_text(const Best& best) {
  constexpr std::size_t kMostNames = 5;
  if (best.unjudged.empty()) return "";
  const std::size_t shown = std::min(kMostNames, best.unjudged.size());
  const auto end = best.unjudged.begin() + static_cast<std::ptrdiff_t>(shown);
  std::string text = "; not judged, as rows of " + best.doubt.text() +
                     " cannot tell: " + join({best.unjudged.begin(), end}, "; ");
  if (shown < best.unjudged.size()) {
    text += fmt::format("; {} more", best.unjudged.size() - shown);
  }
  return text;
}

std::string left_aside_text(const Best& best) {
  std::map<std::string, std::size_t> reasons;
  for (const LeftAside& each : best.left_aside) ++reasons[each.why];
  std::vector<std::string> texts;
  for (const auto& [why, points] : reasons) texts.push_back(counted(points, "point") + " " + why);
  return texts.empty() ? "" : "; left aside: " + join(texts, ", ");
}

bool has_smaller(const Best& best) {
  return best.points.front().row != best.best.row;
}

}  // namespace

std::string fastest_sentence(const Study& study, const Best& best) {
  const std::string aside = left_aside_text(best);
  const std::string fastest = best.best.name + ": " + cost_text(study, best, best.best);
  const std::size_t others = best.points.size() - 1;
  if (others == 0) {
    return (best.left_aside.empty() ? "the only point: " : "the only point to judge: ") + fastest +
           aside;
  }
  if (!best.alike.empty() && best.alike.size() == others) {
    return fmt::format(
               "the {} points cannot be told apart at 95 %, tested together ({}); fastest by its "
               "mean: {}",
               others + 1, costs_text(study, best), fastest) +
           aside;
  }
  const std::string unjudged = unjudged_text(best);
  if (!best.alike.empty()) {
    std::vector<std::string> names;
    for (const NearPoint& point : best.alike) names.push_back(point.name);
    return fmt::format(
               "fastest by its mean: {}; cannot be told apart from it at 95 %, tested together "
               "({}): {}",
               fastest, costs_text(study, best), join(names, "; ")) +
           unjudged + aside;
  }
  return (unjudged.empty() ? "fastest: " : "fastest by its mean: ") + fastest + unjudged + aside;
}

const std::vector<Expense>& expenses() {
  constexpr double kKilo = 1000;
  static const std::vector<Expense> all = {{"energy", "Wh", kWattHour, energy_joules, true},
                                           {"edp", "kJ s", kKilo, energy_delay, true},
                                           {"gpu-hours", "GPU-hours", 1, gpu_hours},
                                           {"core-hours", "core-hours", 1, core_hours}};
  return all;
}

Best find_best(const Study& study, double within, const Expense* least) {
  Best best;
  best.within = within;
  best.least = least;
  best.rates = compare(study, Base::best).rates;
  const Candidates candidates(study, least);
  const std::vector<std::size_t>& rows = candidates.rows;
  const auto cost = [&](std::size_t i) { return mean_cost(study.rows[i], best.rates).value; };
  const std::size_t fastest = *std::min_element(
      rows.begin(), rows.end(), [&](std::size_t a, std::size_t b) { return cost(a) < cost(b); });
  std::vector<const Row*> pointers;
  for (const std::size_t i : rows) pointers.push_back(&study.rows[i]);
  for (const auto& [row, why] : candidates.left_aside) pointers.push_back(&study.rows[row]);
  const std::vector<std::string> names = point_names(study, pointers);
  for (std::size_t k = 0; k < candidates.left_aside.size(); ++k) {
    best.left_aside.push_back({names[rows.size() + k], candidates.left_aside[k].second});
  }
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
    if (least) {
      const Row& row = study.rows[rows[k]];
      point.amount = estimate(row, least->of);
      point.amount_over_best = ratio_of_costs(row, study.rows[fastest], least->of);
      if (rows[k] == fastest) best.best.amount = point.amount;
    }
    best.points.push_back(point);
  }
  std::stable_sort(best.points.begin(), best.points.end(),
                   [&](const NearPoint& a, const NearPoint& b) {
                     const Run& left = study.rows[a.row].first();
                     const Run& right = study.rows[b.row].first();
                     if (least) return a.amount->value < b.amount->value;
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

std::vector<std::string> fastest_sentences(const Study& study) {
  std::map<std::string, Study> systems;
  for (const Row& row : study.rows) {
    Study& part = systems[row.first().system];
    part.scaling = study.scaling;
    part.axes = study.axes;
    part.replicas_are_cores = study.replicas_are_cores;
    part.rows.push_back(row);
  }
  std::vector<std::string> sentences;
  for (const auto& [system, part] : systems) {
    if (part.rows.size() < 2) continue;
    sentences.push_back((systems.size() > 1 ? system + ": " : "") + join(study.axes, ", ") + ": " +
                        fastest_sentence(part, find_best(part, 0)));
  }
  return sentences;
}

std::string best_text(const Study& study, const Best& best, std::size_t width) {
  std::string text =
      wrapped(fmt::format("{}: the {} within {:g} % of the best {}", study_title(study),
                          best.least ? "point of least " + best.least->name : "smallest point",
                          100 * best.within, best.rates ? "rate" : "time"),
              width);
  for (const std::string& warning : study.warnings) text += wrapped("Warning: " + warning, width);
  text += '\n';
  for (const std::string& line : split(best_answer(study, best), '\n')) {
    if (line.empty()) continue;
    const bool is_point = line.starts_with("  ");
    text += is_point ? wrapped(line.substr(2), width, "  ", 4) : wrapped(line, width);
  }
  return text;
}

std::string best_answer(const Study& study, const Best& best) {
  const std::string of_less = best.least ? " of less " + best.least->name : "";
  const char* noun = best.least ? "point" : "smaller point";
  std::string text = fastest_sentence(study, best) + '\n';
  if (best.least) text += "the fastest:\n" + line_of(study, best, best.best);
  if (!has_smaller(best)) {
    text += best.least ? "no point takes less " + best.least->name + '\n' : "no point is smaller\n";
  } else if (best.smallest.row == best.best.row) {
    text += fmt::format("no {}{} is certainly within {:g} %: use the fastest\n", noun, of_less,
                        100 * best.within);
  } else {
    text += (best.least ? "least " + best.least->name + ", by the means:\n" : "smallest:\n") +
            line_of(study, best, best.smallest);
  }
  if (best.undecided.empty()) return text;
  if (best.by_mean.row != best.smallest.row) {
    text += (best.least ? "least " + best.least->name : "smallest") +
            " by the means alone, which decides nothing:\n" + line_of(study, best, best.by_mean);
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
  if (!near.empty()) text += noun + ("s" + of_less) + " that may be within:\n" + near;
  if (far > 0) {
    text += fmt::format("{}{}, of {}, by their means beyond\n", counted(far, noun), of_less,
                        best.doubt.text());
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
    for (const NearPoint& point : points) json.push_back(json_of(study, best, point));
    return json;
  };
  Json left_aside = Json::array();
  for (const LeftAside& each : best.left_aside) {
    left_aside.push_back({{"name", each.name}, {"why", each.why}});
  }
  return {{"schema", 1},
          {"within", best.within},
          {"least", best.least ? Json(best.least->name) : Json(nullptr)},
          {"compared", best.rates ? "samples_per_second" : "fit_seconds"},
          {"decided", best.undecided.empty() && best.unjudged.empty()},
          {"best", json_of(study, best, best.best)},
          {"alike", names_of(best.alike)},
          {"smallest", json_of(study, best, best.smallest)},
          {"smallest_by_mean", json_of(study, best, best.by_mean)},
          {"undecided", list(best.undecided)},
          {"unjudged", best.unjudged},
          {"warnings", study.warnings},
          {"left_aside", std::move(left_aside)},
          {"points", list(best.points)}};
}

}  // namespace paceline
