// The sentences and the JSON of what best.cpp finds.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "analysis/document/columns.h"
#include "analysis/findings/best.h"
#include "analysis/study/labels.h"
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

std::string cost_text(const Study& study, double cost, bool rates) {
  return rates ? study.unit.text(1 / cost) : seconds_text(cost);
}

std::string cost_text(const Study& study, const Best& best, const NearPoint& point) {
  return cost_text(study, mean_cost(study.rows[point.row], best.rates).value, best.rates);
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

// In percent more than the best, for people; as a ratio for programs.
Cell over_cell(const Estimate& ratio) {
  return {percent_text(ratio), ratio.value, ratio.interval};
}

Table make_rows(const Study& study, const Best& best) {
  using Row = const NearPoint&;
  ColumnsOf<NearPoint> columns;
  const auto row_of = [&](Row point) -> const auto& {
    return study.rows[point.row];
  };
  const auto run_of = [=](Row point) -> const Run& { return row_of(point).first(); };
  const auto mean = [&, row_of](const RunFact& fact) {
    return [&, row_of, fact](Row point) {
      const std::vector<double> values = known_values(row_of(point).runs, fact);
      if (values.empty()) return Cell{};
      return Cell{cost_text(study, best, point), geometric_mean(values).value};
    };
  };
  columns.text("name", "point", &NearPoint::name)
      .real("fit_seconds", "time", mean(&Run::fit_seconds))
      .set(&Column::shown, !best.rates)
      .real(study.unit.rate_key(), "rate", mean([&study](const Run& run) {
              const auto& rate = run.samples_per_second;
              return rate ? std::optional(study.unit.shown(*rate)) : std::nullopt;
            }))
      .set(&Column::shown, best.rates)
      .interval("over_best", "time over\nthe best",
                [](Row point) { return over_cell(point.over_best.estimate); })
      .real("trimmed_over_best", "without the\nextreme runs", [](Row point) {
        return point.trimmed_over_best ? over_cell(*point.trimmed_over_best) : Cell{};
      });
  if (best.least) {
    columns
        .real("amount", best.least->name,
              [&](Row point) {
                if (!point.amount) return Cell{};
                const double amount = point.amount->value / best.least->scale;
                const bool has_unit = to_lower(best.least->unit) != best.least->name;
                return Cell{
                    fmt::format("{:.4g}", amount) + (has_unit ? " " + best.least->unit : ""),
                    amount};
              })
        .interval("amount_over_best", best.least->name + "\nover the best", [&](Row point) {
          if (!point.amount) return Cell{};
          if (point.row == best.best.row) return Cell{"", 1};
          return over_cell(point.amount_over_best.estimate);
        });
  }
  return columns
      .text("verdict", "verdict", [](Row point) { return to_string(point.limit_verdict); })
      .text("label", "label", [=](Row point) { return row_label(row_of(point)); })
      .set(&Column::shown, common_label(study).empty())  // the title has it
      .text("doubt", "", &NearPoint::doubt)
      .text("interval", "",
            [](Row point) {
              return !point.over_best.estimate.interval          ? "none"
                     : point.over_best.kind == RatioKind::paired ? "paired"
                                                                 : "welch";
            })
      .programs()
      .whole("runs", "runs", [=](Row point) { return row_of(point).runs.size(); })
      .layout()
      .whole("gpus", "gpus", [=](Row point) { return run_of(point)->layout.gpus; })
      .layout()
      .real("cpus", "CPUs",
            [](Row point) {
              return number(point.cpus > 0 ? std::optional(point.cpus) : std::nullopt, 0);
            })
      .layout()
      .whole("cpus_per_task", "cpus-\nper-task",
             [=](Row point) { return run_of(point)->layout.cpus_per_task; })
      .layout()
      .whole("ntasks", "ntasks", [=](Row point) { return run_of(point)->layout.ntasks; })
      .layout()
      .whole("nodes", "nodes", [=](Row point) { return run_of(point)->layout.nodes; })
      .layout()
      .text("backend", "backend", [=](Row point) { return run_of(point).backend; })
      .layout()
      .table(best.points, "points");
}

// "2.23 s to 2.53 s"
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
  const auto text = [&](double value) {
    return best.rates ? study.unit.text(value) : seconds_text(value);
  };
  return text(low) == text(high) ? text(low) : text(low) + " to " + text(high);
}

// "; not judged, as rows of fewer than 3 runs are not enough: ring, 2 replicas"
std::string unjudged_text(const Best& best) {
  constexpr std::size_t kMostNames = 5;
  if (best.unjudged.empty()) return "";
  return "; not judged, as rows of " + best.doubt.text() +
         " do not decide: " + join_first(kMostNames, best.unjudged, "; ");
}

std::string left_aside_text(const Study& study, const Best& best) {
  std::map<std::string, std::size_t> reasons;
  std::vector<std::string> texts, faster;
  for (const LeftAside& each : best.left_aside) {
    ++reasons[each.why];
    if (!each.faster) continue;
    faster.push_back(each.name + ": " + cost_text(study, *each.faster, best.rates) +
                     (each.detail.empty() ? "" : " (" + each.detail + ")"));
  }
  for (const auto& [why, points] : reasons) texts.push_back(counted(points, "point") + " " + why);
  if (texts.empty()) return "";
  return "; left aside: " + join(texts, ", ") +
         (faster.empty() ? "" : "; of these faster: " + join(faster, "; "));
}

// "; cannot tell whether it trained as well: ..."
std::string doubt_text(const NearPoint& point) {
  return point.doubt.empty() ? "" : "; " + point.doubt;
}

// " with energy by the same meters in each run": what the points have that some left aside lack.
std::string scope_text(const Best& best) {
  if (std::ranges::none_of(best.left_aside, &LeftAside::lacks_amount)) return "";
  return fmt::format(" with {}{} in each run", best.least->name,
                     best.least->is_metered ? " by the same meters" : "");
}

// The answer in a few sentences.
std::vector<Statement> make_answer(const Study& study, const Best& best) {
  const std::string of_less = best.least ? " of less " + best.least->name : "";
  const std::string noun = best.least ? "point" : "smaller point";
  const std::string smallest = best.least ? "least " + best.least->name : "smallest";
  std::vector<Statement> answer = {fastest_sentence(study, best)};
  if (best.points.front().row == best.best.row) {
    answer.emplace_back(
        best.least ? fmt::format("no point{} takes less {}", scope_text(best), best.least->name)
                   : "no point is smaller");
  } else if (best.smallest.row == best.best.row) {
    const bool is_distinct = best.alike.empty() && best.unjudged.empty();
    answer.emplace_back(fmt::format(
        "no {}{} is certainly within {:g} %: {}", noun, of_less, 100 * best.within,
        is_distinct
            ? "use the fastest"
            : "run more repeats; so far, " + best.best.name + " is the fastest by its mean"));
  } else {
    answer.emplace_back(smallest + (best.least ? ", by the means: " : ": ") + best.smallest.name +
                        doubt_text(best.smallest));
  }
  if (best.undecided.empty()) return answer;
  if (best.by_mean.row != best.smallest.row) {
    answer.emplace_back(smallest +
                        " by the means alone, which do not decide: " + best.by_mean.name);
  }
  std::vector<std::string> near;
  std::size_t far = 0;
  for (const NearPoint& point : best.undecided) {
    if (!may_be_within(point, best.within)) {
      ++far;
    } else if (point.row != best.by_mean.row) {
      near.push_back(point.name);
    }
  }
  if (!near.empty()) {
    answer.emplace_back(noun + "s" + of_less + " that may be within: " + join(near, "; "));
  }
  if (far > 0) {
    answer.emplace_back(fmt::format("not decided, but beyond by the means: {}{} ({})",
                                    counted(far, noun), of_less, best.doubt.text()));
  }
  answer.emplace_back("run more repeats of these and of the best to decide");
  return answer;
}

Json best_facts(const Study& study, const Best& best, const Table& table) {
  const Json rows = to_json(table);
  const auto row = [&](const NearPoint& point) {
    const auto it = std::ranges::find(best.points, point.row, &NearPoint::row);
    return rows[static_cast<std::size_t>(it - best.points.begin())];
  };
  Json left_aside = Json::array(), alike = Json::array(), undecided = Json::array();
  for (const NearPoint& point : best.alike) alike.push_back(point.name);
  for (const NearPoint& point : best.undecided) undecided.push_back(row(point));
  for (const LeftAside& each : best.left_aside) {
    left_aside.push_back({{"name", each.name}, {"why", each.why}, {"detail", each.detail}});
  }
  return {{"within", best.within},
          {"least", best.least ? Json(best.least->name) : Json(nullptr)},
          {"compared", best.rates ? study.unit.rate_key() : "fit_seconds"},
          {"decided", best.undecided.empty() && best.unjudged.empty()},
          {"best", row(best.best)},
          {"alike", std::move(alike)},
          {"smallest", row(best.smallest)},
          {"smallest_by_mean", row(best.by_mean)},
          {"undecided", std::move(undecided)},
          {"unjudged", best.unjudged},
          {"warnings", study.warnings},
          {"left_aside", std::move(left_aside)}};
}

}  // namespace

std::string fastest_sentence(const Study& study, const Best& best) {
  const std::string aside = left_aside_text(study, best), scope = scope_text(best);
  const std::string word = scope.empty() ? "fastest" : "fastest of the points" + scope;
  const std::string fastest =
      best.best.name + ": " + cost_text(study, best, best.best) + doubt_text(best.best);
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
                                        ? " (faster without the extreme runs of both)"
                                        : ""));
    }
    return fmt::format(
               "{} by its mean: {}; these cannot be distinguished from it at 95 %, tested together "
               "({}): {}",
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
    part.unit = study.unit;
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

Document best_document(const Study& study, const Best& best,
                       const std::vector<std::string>& notes) {
  Document document{.name = "best", .warnings = study.warnings, .is_brief = true};
  document.title = fmt::format("{}: the {} within {:g} % of the best {}", study_title(study),
                               best.least ? "point of least " + best.least->name : "smallest point",
                               100 * best.within, best.rates ? "rate" : "time");
  Section& section = document.sections.emplace_back();
  section.table = make_rows(study, best);
  section.findings = make_answer(study, best);
  section.caveats = notes;
  document.facts = make_facts(best_facts(study, best, section.table));
  return document;
}

}  // namespace paceline
