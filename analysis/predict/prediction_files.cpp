#include "analysis/predict/prediction_files.h"

#include <fmt/format.h>

#include <optional>

#include "analysis/plots/draw.h"
#include "analysis/predict/prediction_table.h"
#include "analysis/render/render.h"
#include "analysis/render/render_html.h"
#include "analysis/render/report_files.h"
#include "engine/core/error.h"
#include "engine/core/file.h"

namespace paceline {

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
