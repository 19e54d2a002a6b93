#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "analysis/document/columns.h"
#include "analysis/plots/study_plots.h"
#include "analysis/predict/prediction.h"
#include "analysis/study/labels.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

std::string sizes_text(const std::vector<int>& sizes) {
  std::vector<std::string> texts = mapped(sizes, [](int size) { return std::to_string(size); });
  const std::string last = texts.back();
  texts.pop_back();
  return texts.empty() ? last : join(texts, ", ") + " and " + last;
}

std::string signed_percent(double share) {
  return fmt::format("{:+.1f} %", 100 * share);
}

std::string unit_name(const Prediction& prediction) {
  return prediction.rates ? prediction.unit.rate() : "fit seconds";
}

// The smallest size that was run.
const SizeValue& find_base(const Prediction& prediction) {
  return *std::ranges::find(prediction.sizes, false, &SizeValue::is_predicted);
}

double speed_up(const Prediction& prediction, const SizeValue& size) {
  const double ratio = size.value.value / find_base(prediction).value.value;
  return prediction.rates ? ratio : 1 / ratio;
}

// Times, or rates in their unit.
Estimate shown(const Prediction& prediction, const Estimate& value) {
  return prediction.rates ? *prediction.unit.shown(value) : value;
}

// A predicted value is as exact as its predictor's own interval.
Cell value_cell(const Prediction& prediction, const SizeValue& size) {
  const Estimate value = shown(prediction, size.value);
  if (!size.is_predicted || !value.interval) return measured_cell(value);
  const Interval own = *shown(prediction, *size.by_predictor[prediction.used]).interval;
  return estimate_cell(value, count_digits(value.value, false),
                       std::max(own.high - value.value, value.value - own.low));
}

Table sizes_table(const Prediction& prediction) {
  using Row = const SizeValue&;
  const std::string key = prediction.rates ? prediction.unit.rate_key() : "fit_seconds";
  const int base = find_base(prediction).gpus;
  const std::string& by = prediction.predictor().name;
  const std::optional<HeldOut>& held_out = prediction.predictor().held_out;
  const auto of_predicted = [](const Cell& cell) {
    return [cell](Row size) { return size.is_predicted ? cell : Cell{}; };
  };
  ColumnsOf<SizeValue> columns;
  columns.text("point", "point", [&](Row size) {
    return counted(size.gpus, prediction.replicas_are_cores ? "replica" : "GPU");
  });
  columns.interval(key, prediction.rates ? prediction.unit.rate() : "fit\nseconds",
                   [&](Row size) { return value_cell(prediction, size); });
  columns.real("speed_up", base == 1 ? "speed-up" : fmt::format("speed-up\nover {}", base),
               [&](Row size) {
                 const double ratio = speed_up(prediction, size);
                 return number(ratio, decimals_for(ratio, 3));
               });
  columns.real("efficiency", "effi-\nciency",
               [&](Row size) { return percent(speed_up(prediction, size) * base / size.gpus); });
  columns.text("kind", "kind",
               [&](Row size) { return size.is_predicted ? "predicted" : prediction.kind; });
  columns.real(
      "held_out_error", "held-out\nerror",
      of_predicted(held_out ? Cell{signed_percent(held_out->error), held_out->error} : Cell{}));
  columns
      .real("held_out_gpus", "held-out\ngpus",
            of_predicted(held_out ? whole(held_out->gpus) : Cell{}))
      .set(&Column::is_whole, true)
      .detail(1);
  columns.text("predictor", "by", [&](Row size) { return size.is_predicted ? by : ""; }).detail(2);
  columns.text("beyond", "beyond", &SizeValue::beyond);
  columns.whole("gpus", "gpus", &SizeValue::gpus).layout();
  columns.whole("nodes", "nodes", &SizeValue::nodes).layout();
  for (std::size_t i = 0; i < prediction.predictors.size(); ++i) {
    columns
        .interval(prediction.predictors[i].name + "_" + key, "",
                  [&, i](Row size) {
                    if (!size.is_predicted || !size.by_predictor[i]) return Cell{};
                    return measured_cell(shown(prediction, *size.by_predictor[i]));
                  })
        .programs();
  }
  for (std::size_t i = 0; i < prediction.laws.size(); ++i) {
    std::string law_key = fmt::format("law_{}_{}", to_lower(prediction.laws[i].law.name()), key);
    std::ranges::replace(law_key, ' ', '_');
    columns
        .real(law_key, "",
              [&, i](Row size) {
                return size.is_predicted ? Cell{"", shown(prediction, {size.by_law[i], {}}).value}
                                         : Cell{};
              })
        .programs();
  }
  return columns.table(prediction.sizes);
}

// "64 replicas: 0.453 s, speed-up 4.32, efficiency 6.7 %": of the largest predicted size.
std::string make_headline(const Prediction& prediction) {
  const auto largest = std::ranges::max_element(prediction.sizes, {}, [](const SizeValue& size) {
    return size.is_predicted ? size.gpus : 0;
  });
  if (!largest->is_predicted) return "";
  const double ratio = speed_up(prediction, *largest);
  const int base = find_base(prediction).gpus;
  return fmt::format(
      "{}: {} {}{}, speed-up {}{}, efficiency {}",
      counted(largest->gpus, prediction.replicas_are_cores ? "replica" : "GPU"),
      value_cell(prediction, *largest).text, prediction.rates ? prediction.unit.rate() : "s",
      largest->value.interval ? "" : " (no ±)", number(ratio, decimals_for(ratio, 3)).text,
      base == 1 ? "" : fmt::format(" over {}", base), percent(ratio * base / largest->gpus).text);
}

std::string held_out_text(const Prediction& prediction, const PredictorResult& each) {
  if (!each.why_not.empty()) return fmt::format("no prediction by {}: {}", each.name, each.why_not);
  if (!each.held_out) {
    return fmt::format("{}: no size could be held out, so there is no ±: {}", each.name,
                       each.no_held_out);
  }
  const HeldOut& held_out = *each.held_out;
  const char* noun = prediction.replicas_are_cores ? "replica" : "GPU";
  const bool is_one = held_out.fitted.size() == 1 && held_out.fitted.front() == 1;
  return fmt::format("{}: fitted to {} {}{}, off by {} at {} ({})", each.name,
                     sizes_text(held_out.fitted), noun, is_one ? "" : "s",
                     signed_percent(held_out.error), held_out.gpus, unit_name(prediction));
}

int largest_measured(const Prediction& prediction) {
  return std::ranges::find(prediction.sizes.rbegin(), prediction.sizes.rend(), false,
                           &SizeValue::is_predicted)
      ->gpus;
}

// What the intervals beyond the measured sizes are, and why there are none. May be empty.
std::vector<std::string> interval_sentences(const Prediction& prediction) {
  const char* noun = prediction.replicas_are_cores ? "replica" : "GPU";
  const int largest = largest_measured(prediction);
  std::vector<std::string> held, unmeasured;
  std::string level;
  for (const SizeValue& size : prediction.sizes) {
    if (!size.is_predicted || size.gpus <= largest) continue;
    if (size.value.interval) {
      held.push_back(fmt::format(
          "{} on {}", measured_cell(shown(prediction, *size.by_predictor[prediction.used])).text,
          size.gpus));
    } else if (size.crosses_unmeasured_link()) {
      unmeasured.push_back(std::to_string(size.gpus));
      level = size.beyond;
    }
  }
  std::vector<std::string> sentences;
  if (!held.empty()) {
    sentences.push_back(
        fmt::format("intervals reach to no gain beyond {}, as no measured size shows whether a "
                    "limit begins there; without one: {} ({})",
                    counted(largest, noun), join(held, ", "), unit_name(prediction)));
  }
  if (!unmeasured.empty()) {
    sentences.push_back(
        fmt::format("measure a size that crosses a {}: no measured one does, so {} {}s have no ±",
                    level, join(unmeasured, ", "), noun));
  }
  return sentences;
}

std::string laws_text(const Prediction& prediction) {
  std::vector<LawWeight> laws = prediction.laws;
  std::ranges::stable_sort(laws, std::greater<>(), &LawWeight::weight);
  std::vector<std::string> texts = mapped(laws, [](const LawWeight& each) {
    return fmt::format("{} {:.0f} % ({})", each.law.name(), 100 * each.weight,
                       signed_percent(each.error));
  });
  return fmt::format(
      "weight of each law (in brackets, its error of replicas times seconds at the held-out size): "
      "{}",
      join(texts, ", "));
}

void add_notes(const Prediction& prediction, std::vector<std::string>& notes) {
  const bool by_laws = prediction.used == 0;
  notes.emplace_back(
      "predicted rows: a nominal 90 % interval, which also covers a limit (of input, links or file "
      "system) that may begin beyond the measured sizes; other rows: ± is the larger side of the "
      "95 % interval of the mean");
  if (prediction.predictor().held_out) {
    notes.push_back(fmt::format(
        "held-out error: of {} at the largest measured size, predicted by the same procedure from "
        "the smaller ones",
        unit_name(prediction)));
  }
  notes.push_back(
      "a prediction is of the same machine, backend and settings at another size; how well the "
      "network trains there is not predicted");
  if (by_laws) {
    notes.push_back(
        "without a new limit, the interval of laws comes from how far they differ and how far they "
        "missed published series; for costs that follow one law exactly it may hold far less than "
        "90 % (docs/predict.md)");
  }
  std::string beyond;
  for (const SizeValue& size : prediction.sizes) beyond += size.beyond;
  if (beyond.find('?') != std::string::npos) {
    notes.push_back(
        "node?: as far as records say, all measured sizes are of one node, and these may need "
        "more: the link between nodes may be slower than any interval says");
  } else if (!beyond.empty()) {
    notes.push_back(
        "beyond: a level that no measured size crosses; the prediction knows nothing of its links");
  }
  notes.push_back("records do not name switches, so rows say nothing of crossing one");
  if (prediction.scaling == Scaling::unknown || prediction.scaling == Scaling::same_work) {
    notes.push_back(
        "the laws assume a fixed batch per replica, as the records do not say what the sizes hold "
        "fixed");
  }
  for (const std::string& note : prediction.predictor().notes) notes.push_back(note);
  notes.insert(notes.end(), prediction.notes.begin(), prediction.notes.end());
}

}  // namespace

Plot prediction_plot(const Prediction& prediction) {
  PlotSeries measured{prediction.kind, {}};
  PlotSeries predicted{"predicted", {}};
  predicted.is_predicted = true;
  bool after_other = false;  // a line of predictions does not cross sizes that were run
  for (const SizeValue& size : prediction.sizes) {
    PlotSeries& series = size.is_predicted ? predicted : measured;
    const Estimate value = shown(prediction, size.value);
    series.points.push_back({static_cast<double>(size.gpus), value.value, value.interval});
    series.points.back().begins_line = size.is_predicted && after_other;
    after_other = !size.is_predicted;
  }
  Lines lines{.series = {measured, predicted}, .log_x = true, .log_y = 10};
  lines.x_tics = size_tics(lines.series, true);
  const double first = prediction.sizes.front().gpus, last = prediction.sizes.back().gpus;
  const SizeValue& base = find_base(prediction);
  const auto ideal = [&](double gpus) {
    const double times = gpus / base.gpus;
    return shown(prediction,
                 {prediction.rates ? base.value.value * times : base.value.value / times, {}})
        .value;
  };
  lines.ideal = PlotSeries{"ideal", {{first, ideal(first), {}}, {last, ideal(last), {}}}};
  Plot plot;
  plot.name = "prediction";
  plot.title = fmt::format("Prediction{}: {}", of_studies(prediction.studies), prediction.title);
  plot.subtitle = fmt::format("by {}; bars: 90 % of predictions", prediction.predictor().name);
  if (has_bars({measured})) plot.subtitle += ", 95 % of other means";
  if (const auto& held_out = prediction.predictor().held_out) {
    plot.subtitle +=
        fmt::format("; held-out error {} at {}", signed_percent(held_out->error), held_out->gpus);
  }
  if (!prediction.what_if.empty()) plot.subtitle += "; what if " + prediction.what_if;
  plot.x_label = prediction.replicas_are_cores ? "replicas (groups of CPU cores)" : "GPUs";
  plot.y_label = prediction.rates ? prediction.unit.long_rate() : "fit seconds";
  plot.body = std::move(lines);
  return plot;
}

Document prediction_document(const std::vector<Prediction>& predictions,
                             const std::vector<std::string>& notes) {
  std::set<std::string> studies;
  for (const Prediction& each : predictions) studies.merge(std::set(each.studies));
  Document document{.name = "prediction", .title = "Prediction" + of_studies(studies)};
  document.is_brief = true;
  document.list = "tables";
  for (const Prediction& prediction : predictions) {
    Section& section = document.sections.emplace_back();
    section.title = prediction.title;
    if (!prediction.what_if.empty()) section.title += "; what if " + prediction.what_if;
    section.headline = make_headline(prediction);
    section.warnings = prediction.warnings;
    section.table = sizes_table(prediction);
    Statement& held_out =
        section.findings.emplace_back(held_out_text(prediction, prediction.predictor()));
    held_out.on_screen = OnScreen::first;
    for (std::string& each : interval_sentences(prediction)) {
      section.findings.emplace_back(std::move(each));
    }
    for (std::size_t i = 0; i < prediction.predictors.size(); ++i) {
      if (i == prediction.used) continue;
      section.notes.push_back(held_out_text(prediction, prediction.predictors[i]));
    }
    if (prediction.used == 0) section.notes.push_back(laws_text(prediction));
    add_notes(prediction, section.notes);
    section.notes.insert(section.notes.end(), notes.begin(), notes.end());
    section.plots = {prediction_plot(prediction)};
    const std::size_t number = document.sections.size();
    if (number > 1) section.plots[0].name += fmt::format("-{}", number);
    section.facts = make_facts({{"scaling", to_string(prediction.scaling)}});
  }
  return document;
}

}  // namespace paceline
