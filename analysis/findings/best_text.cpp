// The sentences and the JSON of what best.cpp finds.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "analysis/findings/best.h"
#include "analysis/study/labels.h"
#include "engine/core/enum_names.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

constexpr EnumName<LimitVerdict> kLimitVerdictNames[] = {{LimitVerdict::within, "within"},
                                                         {LimitVerdict::beyond, "beyond"},
                                                         {LimitVerdict::undecided, "undecided"}};

const char* to_string(LimitVerdict limit_verdict) {
  return name_in(kLimitVerdictNames, limit_verdict);
}

bool may_be_within(const NearPoint& point, double within) {
  const Estimate& estimate = point.over_best.estimate;
  return (estimate.interval ? estimate.interval->low : estimate.value) <= 1 + within;
}

std::string cost_text(double cost, bool rates) {
  return rates ? fmt::format("{:.4g} samples/s", 1 / cost) : fmt::format("{:.4g} s", cost);
}

std::string cost_text(const Study& study, const Best& best, const NearPoint& point) {
  return cost_text(mean_cost(study.rows[point.row], best.rates).value, best.rates);
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
  const bool is_distinct = ratio.interval && ratio.count >= kFewestRuns &&
                           (ratio.interval->high < 1 || ratio.interval->low > 1);
  return text + (is_distinct ? ", " : " (the runs cannot distinguish them), ");
}

std::string format_line(const Study& study, const Best& best, const NearPoint& point) {
  const Row& row = study.rows[point.row];
  std::string over = percent_text(point.over_best.estimate);
  if (point.trimmed_over_best) {
    over += " (without the extreme runs " + percent_text(*point.trimmed_over_best) + ")";
  }
  return fmt::format("  {}: {}{}, {} over the best, {}, {}\n", point.name, amount_text(best, point),
                     cost_text(study, best, point), over,
                     counted(units_in(row), row.pooled ? "session" : "run"),
                     to_string(point.limit_verdict));
}

Json to_json(const Study& study, const Best& best, const NearPoint& point) {
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
               {"trimmed_over_best",
                point.trimmed_over_best ? Json(point.trimmed_over_best->value) : Json(nullptr)},
               {"verdict", to_string(point.limit_verdict)}};
  if (!best.least || !point.amount) return json;
  const Estimate& ratio = point.amount_over_best.estimate;
  json["amount"] = point.amount->value / best.least->scale;
  json["amount_over_best"] = point.row == best.best.row ? 1 : ratio.value;
  json["amount_over_best_low"] = ratio.interval ? Json(ratio.interval->low) : Json(nullptr);
  json["amount_over_best_high"] = ratio.interval ? Json(ratio.interval->high) : Json(nullptr);
  return json;
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

// "; not judged, as rows of fewer than 3 runs are not enough: ring, 2 replicas"
std::string unjudged_text(const Best& best) {
  constexpr std::size_t kMostNames = 5;
  if (best.unjudged.empty()) return "";
  return "; not judged, as rows of " + best.doubt.text() +
         " are not enough: " + join_first(kMostNames, best.unjudged, "; ");
}

std::string left_aside_text(const Best& best) {
  std::map<std::string, std::size_t> reasons;
  std::vector<std::string> texts, faster;
  for (const LeftAside& each : best.left_aside) {
    ++reasons[each.why];
    if (each.faster) faster.push_back(each.name + ": " + cost_text(*each.faster, best.rates));
  }
  for (const auto& [why, points] : reasons) texts.push_back(counted(points, "point") + " " + why);
  if (texts.empty()) return "";
  return "; left aside: " + join(texts, ", ") +
         (faster.empty() ? "" : "; of these faster: " + join(faster, "; "));
}

// " with energy by the same meters in each run": what the points have that some left aside lack.
std::string scope_text(const Best& best) {
  if (std::ranges::none_of(best.left_aside, &LeftAside::lacks_amount)) return "";
  return fmt::format(" with {}{} in each run", best.least->name,
                     best.least->is_metered ? " by the same meters" : "");
}

bool has_smaller(const Best& best) {
  return best.points.front().row != best.best.row;
}

}  // namespace

std::string fastest_sentence(const Study& study, const Best& best) {
  const std::string aside = left_aside_text(best), scope = scope_text(best);
  const std::string word = scope.empty() ? "fastest" : "fastest of the points" + scope;
  const std::string fastest = best.best.name + ": " + cost_text(study, best, best.best);
  const std::size_t others = best.points.size() - 1;
  if (others == 0) {
    return (best.left_aside.empty() ? "the only point: " : "the only point to judge: ") + fastest +
           aside;
  }
  const bool all_alike = best.alike.size() == others &&
                         std::ranges::none_of(best.alike, &NearPoint::faster_but_for_outliers);
  if (all_alike) {
    return fmt::format(
               "the {} points{} cannot be distinguished at 95 %, tested together ({}); fastest by "
               "its mean: {}",
               others + 1, scope, costs_text(study, best), fastest) +
           aside;
  }
  const std::string unjudged = unjudged_text(best);
  if (!best.alike.empty()) {
    std::vector<std::string> names;
    for (const NearPoint& point : best.alike) {
      names.push_back(point.name + (point.faster_but_for_outliers
                                        ? " (the faster without the extreme runs of both)"
                                        : ""));
    }
    return fmt::format(
               "{} by its mean: {}; cannot be distinguished from it at 95 %, tested together ({}): "
               "{}",
               word, fastest, costs_text(study, best), join(names, "; ")) +
           unjudged + aside;
  }
  return word + (unjudged.empty() ? ": " : " by its mean: ") + fastest + unjudged + aside;
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
  if (best.least) text += "the fastest:\n" + format_line(study, best, best.best);
  if (!has_smaller(best)) {
    text += best.least
                ? fmt::format("no point{} takes less {}\n", scope_text(best), best.least->name)
                : "no point is smaller\n";
  } else if (best.smallest.row == best.best.row) {
    const bool is_distinct = best.alike.empty() && best.unjudged.empty();
    text += fmt::format(
        "no {}{} is certainly within {:g} %: {}\n", noun, of_less, 100 * best.within,
        is_distinct
            ? "use the fastest"
            : "until more repeats decide, " + best.best.name + " is the fastest by its mean");
  } else {
    text += (best.least ? "least " + best.least->name + ", by the means:\n" : "smallest:\n") +
            format_line(study, best, best.smallest);
  }
  if (best.undecided.empty()) return text;
  if (best.by_mean.row != best.smallest.row) {
    text += (best.least ? "least " + best.least->name : "smallest") +
            " by the means alone, which decides nothing:\n" +
            format_line(study, best, best.by_mean);
  }
  std::size_t far = 0;
  std::string near;
  for (const NearPoint& point : best.undecided) {
    if (!may_be_within(point, best.within)) {
      ++far;
    } else if (point.row != best.by_mean.row) {
      near += format_line(study, best, point);
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
  const auto point_names = [](const std::vector<NearPoint>& points) {
    Json names = Json::array();
    for (const NearPoint& point : points) names.push_back(point.name);
    return names;
  };
  const auto list = [&](const std::vector<NearPoint>& points) {
    Json json = Json::array();
    for (const NearPoint& point : points) json.push_back(to_json(study, best, point));
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
          {"best", to_json(study, best, best.best)},
          {"alike", point_names(best.alike)},
          {"smallest", to_json(study, best, best.smallest)},
          {"smallest_by_mean", to_json(study, best, best.by_mean)},
          {"undecided", list(best.undecided)},
          {"unjudged", best.unjudged},
          {"warnings", study.warnings},
          {"left_aside", std::move(left_aside)},
          {"points", list(best.points)}};
}

}  // namespace paceline
