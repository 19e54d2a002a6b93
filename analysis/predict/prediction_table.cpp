#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "analysis/plots/script.h"
#include "analysis/plots/study_plots.h"
#include "analysis/predict/prediction.h"
#include "analysis/render/render.h"
#include "analysis/table/definition.h"
#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

std::string sizes_text(const std::vector<int>& sizes) {
  std::vector<std::string> texts;
  for (const int size : sizes) texts.push_back(std::to_string(size));
  const std::string last = texts.back();
  texts.pop_back();
  return texts.empty() ? last : join(texts, ", ") + " and " + last;
}

std::string signed_percent(double share) {
  return fmt::format("{:+.1f} %", 100 * share);
}

const char* unit_name(const Prediction& prediction) {
  return prediction.rates ? "samples/s" : "fit seconds";
}

// The smallest size that was run.
const SizeValue& find_base(const Prediction& prediction) {
  return *std::ranges::find(prediction.sizes, false, &SizeValue::is_predicted);
}

double speed_up(const Prediction& prediction, const SizeValue& size) {
  const double ratio = size.value.value / find_base(prediction).value.value;
  return prediction.rates ? ratio : 1 / ratio;
}

std::vector<Column> make_columns(const Prediction& prediction) {
  Column value = prediction.rates ? interval_column("samples_per_second", "samples/s")
                                  : interval_column("fit_seconds", "fit\nseconds");
  const int base = find_base(prediction).gpus;
  const std::string over = base == 1 ? "speed-up" : fmt::format("speed-up\nover {}", base);
  std::vector<Column> columns = {text_column("kind", "kind"),
                                 whole_column("gpus", "gpus"),
                                 detail(3, whole_column("nodes", "nodes")),
                                 value,
                                 real_column("speed_up", over.c_str()),
                                 real_column("efficiency", "effi-\nciency"),
                                 detail(2, text_column("predictor", "by")),
                                 real_column("held_out_error", "held-out\nerror"),
                                 detail(1, whole_column("held_out_gpus", "held-out\ngpus")),
                                 text_column("beyond", "beyond")};
  for (const PredictorResult& each : prediction.predictors) {
    columns.push_back(interval_column((each.name + "_" + value.key).c_str(), each.name.c_str()));
    columns.back().is_extra = true;
  }
  for (const LawWeight& each : prediction.laws) {
    std::string key = fmt::format("law_{}_{}", to_lower(each.law.name()), value.key);
    std::ranges::replace(key, ' ', '_');
    columns.push_back(real_column(key.c_str(), each.law.name()));
    columns.back().is_extra = true;
  }
  return columns;
}

std::vector<Cell> make_cells(const Prediction& prediction, const SizeValue& size) {
  const double ratio = speed_up(prediction, size);
  const double efficiency = ratio * find_base(prediction).gpus / size.gpus;
  std::vector<Cell> cells = {{size.is_predicted ? "predicted" : prediction.kind, {}, {}},
                             whole(size.gpus),
                             whole(size.nodes),
                             measured_cell(size.value),
                             number(ratio, decimals_for(ratio, 3)),
                             percent(efficiency)};
  const auto& held_out = prediction.predictor().held_out;
  if (!size.is_predicted) {
    cells.resize(cells.size() + 4 + prediction.predictors.size() + prediction.laws.size());
    return cells;
  }
  cells.push_back({prediction.predictor().name, {}, {}});
  cells.push_back(held_out ? Cell{signed_percent(held_out->error), held_out->error, {}} : Cell{});
  cells.push_back(held_out ? whole(held_out->gpus) : Cell{});
  cells.push_back({size.beyond, {}, {}});
  for (const auto& each : size.by_predictor) cells.push_back(measured_cell(each));
  for (const double each : size.by_law) cells.push_back(number(each, decimals_for(each, 3)));
  return cells;
}

std::string held_out_text(const Prediction& prediction, const PredictorResult& each) {
  if (!each.why_not.empty()) return fmt::format("{}: none; {}", each.name, each.why_not);
  if (!each.held_out) {
    return fmt::format("{}: no size could be held out: {}", each.name, each.no_held_out);
  }
  const HeldOut& held_out = *each.held_out;
  const char* noun = prediction.replicas_are_cores ? "replica" : "GPU";
  const bool is_one = held_out.fitted.size() == 1 && held_out.fitted.front() == 1;
  return fmt::format("{}: fitted to {} {}{}, off by {} at {} ({})", each.name,
                     sizes_text(held_out.fitted), noun, is_one ? "" : "s",
                     signed_percent(held_out.error), held_out.gpus, unit_name(prediction));
}

std::string laws_text(const Prediction& prediction) {
  std::vector<LawWeight> laws = prediction.laws;
  std::ranges::stable_sort(laws, std::greater<>(), &LawWeight::weight);
  std::vector<std::string> texts;
  for (const LawWeight& each : laws) {
    texts.push_back(fmt::format("{} {:.0f} % ({})", each.law.name(), 100 * each.weight,
                                signed_percent(each.error)));
  }
  return fmt::format(
      "weights of the laws, and in brackets by what each missed the worker-time (replicas times "
      "seconds) of the held-out size: {}",
      join(texts, ", "));
}

void add_notes(const Prediction& prediction, Table& table) {
  const bool by_laws = prediction.used == 0;
  table.notes.push_back(fmt::format(
      "predicted rows were not run; ± is their interval, nominally 90 %{}, and of other rows the "
      "larger side of the 95 % interval of the mean",
      by_laws ? " of published series" : ""));
  if (prediction.predictor().held_out) {
    table.notes.push_back(fmt::format(
        "held-out error: of {} at the largest measured size, predicted by the same procedure from "
        "the smaller ones",
        unit_name(prediction)));
  }
  table.notes.push_back(
      "a prediction is of the same machine, backend and settings at another size; how well the "
      "network trains there is not predicted");
  if (by_laws) {
    table.notes.push_back(
        "the interval of laws is from how far they differ and how far published series miss; of "
        "costs that follow one law exactly, or cross to a slower link, it may hold far less than "
        "90 % (docs/predict.md)");
  }
  std::string beyond;
  for (const SizeValue& size : prediction.sizes) beyond += size.beyond;
  if (beyond.find('?') != std::string::npos) {
    table.notes.push_back(
        "node?: all measured sizes are of one node, as far as records say, and these may not fit "
        "in one: then a link is used that no measured size crosses");
  } else if (!beyond.empty()) {
    table.notes.push_back(
        "beyond: a level that no measured size crosses; the prediction knows nothing of its links");
  }
  table.notes.push_back("records do not name switches, so rows say nothing of crossing one");
  if (prediction.scaling == Scaling::unknown) {
    table.notes.push_back(
        "the records do not say what the sizes hold fixed: the laws take the batch of a replica as "
        "fixed");
  }
  for (const std::string& note : prediction.predictor().notes) table.notes.push_back(note);
  table.notes.insert(table.notes.end(), prediction.notes.begin(), prediction.notes.end());
}

}  // namespace

Table prediction_table(const Prediction& prediction) {
  Table table;
  table.is_comparison = true;  // the rules of publishing are for measurements
  table.title = "Prediction: " + prediction.title;
  if (!prediction.what_if.empty()) table.title += "; what if " + prediction.what_if;
  table.scaling = to_string(prediction.scaling);
  table.columns = make_columns(prediction);
  table.warnings = prediction.warnings;
  for (const SizeValue& size : prediction.sizes) {
    table.rows.push_back(make_cells(prediction, size));
    table.is_gap.push_back(false);
    table.row_names.push_back(fmt::format("{} gpus", size.gpus));
    table.commands.emplace_back();
    table.records.emplace_back();
  }
  for (std::size_t k = 0; k < table.columns.size(); ++k) {
    Column& column = table.columns[k];
    column.has_data = std::ranges::any_of(
        table.rows, [k](const auto& row) { return !row[k].text.empty() || row[k].value; });
    column.shown = column.has_data && !column.is_extra;
  }
  for (const PredictorResult& each : prediction.predictors) {
    table.findings.push_back(held_out_text(prediction, each));
  }
  if (prediction.used == 0) table.findings.push_back(laws_text(prediction));
  add_notes(prediction, table);
  return table;
}

Plot prediction_plot(const Prediction& prediction) {
  PlotSeries measured{prediction.kind, {}};
  PlotSeries predicted{"predicted", {}};
  predicted.is_predicted = true;
  bool after_other = false;  // a line of predictions does not cross sizes that were run
  for (const SizeValue& size : prediction.sizes) {
    PlotSeries& series = size.is_predicted ? predicted : measured;
    series.points.push_back(
        {static_cast<double>(size.gpus), size.value.value, size.value.interval});
    series.points.back().begins_line = size.is_predicted && after_other;
    after_other = !size.is_predicted;
  }
  Lines lines;
  lines.series = {measured, predicted};
  lines.log_x = true;
  lines.log_y = 10;
  lines.x_tics = size_tics(lines.series, true);
  const double first = prediction.sizes.front().gpus, last = prediction.sizes.back().gpus;
  const SizeValue& base = find_base(prediction);
  const auto ideal = [&](double gpus) {
    const double times = gpus / base.gpus;
    return prediction.rates ? base.value.value * times : base.value.value / times;
  };
  lines.ideal = PlotSeries{"ideal", {{first, ideal(first), {}}, {last, ideal(last), {}}}};
  Plot plot;
  plot.name = "prediction";
  plot.title = "Prediction: " + prediction.title;
  plot.subtitle = fmt::format("by {}; bars: 90 % of predictions", prediction.predictor().name);
  if (has_bars({measured})) plot.subtitle += ", 95 % of other means";
  if (const auto& held_out = prediction.predictor().held_out) {
    plot.subtitle +=
        fmt::format("; held-out error {} at {}", signed_percent(held_out->error), held_out->gpus);
  }
  if (!prediction.what_if.empty()) plot.subtitle += "; what if " + prediction.what_if;
  plot.x_label = prediction.replicas_are_cores ? "replicas (groups of CPU cores)" : "GPUs";
  plot.y_label = prediction.rates ? "samples per second" : "fit seconds";
  plot.body = std::move(lines);
  return plot;
}

namespace {

constexpr Format kFormats[] = {Format::json, Format::markdown, Format::csv, Format::html};

std::string file_name(Format format) {
  return fmt::format("prediction.{}", file_extension(format));
}

}  // namespace

std::vector<std::filesystem::path> write_predictions(const std::vector<Prediction>& predictions,
                                                     const std::filesystem::path& folder,
                                                     const std::vector<std::string>& formats) {
  std::vector<Table> tables;
  std::vector<Plot> plots;
  std::vector<std::string> names;
  HtmlPage page;
  for (const Prediction& each : predictions) {
    tables.push_back(prediction_table(each));
    plots.push_back(prediction_plot(each));
    if (tables.size() > 1) plots.back().name += fmt::format("-{}", tables.size());
    for (const std::string& format : formats) names.push_back(plots.back().name + "." + format);
    page.sections.push_back({tables.back(), {}});
  }
  for (const Format format : kFormats) {
    names.push_back(file_name(format));
    if (format != Format::html) page.files.push_back(names.back());
  }
  check_report_folder(folder, names);
  std::optional<Error> refused;
  try {
    for (std::size_t i = 0; !formats.empty() && i < plots.size(); ++i) {
      page.sections[i].pictures.push_back(
          {plots[i].name, plots[i].title + ": " + plots[i].subtitle, draw_plot(plots[i], "svg")});
    }
  } catch (const Error& error) {
    refused = error;
    page.missing = error.what();
  }
  make_folder(folder);
  std::vector<std::filesystem::path> written;
  const auto write = [&](const std::string& name, const std::string& text) {
    report_file(folder, name).write(text);
    written.push_back(folder / name);
  };
  for (const Format format : kFormats) {
    write(file_name(format), format == Format::html ? render_html(page) : render(tables, format));
  }
  for (std::size_t i = 0; !refused && i < plots.size(); ++i) {
    for (const std::string& format : formats) {
      write(plots[i].name + "." + format, draw_plot(plots[i], format));
    }
  }
  if (refused) throw *refused;
  return written;
}

}  // namespace paceline
