#include "analysis/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <ostream>

#include "analysis/collective.h"
#include "analysis/plots/draw.h"
#include "analysis/plots/study_plots.h"
#include "analysis/row_facts.h"
#include "analysis/table.h"
#include "engine/core/error.h"
#include "engine/core/file.h"
#include "results/store.h"
#include "results/wanted.h"

namespace paceline {

namespace {

struct Result {
  Table table;
  std::vector<Plot> plots;
};

Result result_of(const Study& study, Base base) {
  const Comparison comparison = compare(study, base);
  std::vector<RowFacts> facts;
  for (std::size_t i = 0; i < study.rows.size(); ++i) {
    facts.push_back(row_facts(study, comparison, i));
  }
  Result result{make_table(study, comparison, facts), {}};
  result.plots = study_plots({study, comparison, facts, result.table.title});
  return result;
}

// `text_in` gives the whole file in a format.
void write_tables(const std::string& stem, const std::function<std::string(Format)>& text_in,
                  const std::filesystem::path& out, ReportFiles& files) {
  make_folder(out);
  for (const Format format : {Format::markdown, Format::csv, Format::json}) {
    files.tables.push_back(out / fmt::format("{}.{}", stem, extension_of(format)));
    replace_file(files.tables.back(), text_in(format));
  }
}

void draw_plots(const std::vector<Plot>& plots, const ReportOptions& options, ReportFiles& files) {
  for (const Plot& plot : plots) {
    for (const std::string& format : options.plots) {
      const std::filesystem::path file = options.out / fmt::format("{}.{}", plot.name, format);
      draw_plot(plot, format, file);
      files.plots.push_back(file);
    }
  }
}

// Of all tables; those of a second one are named after it.
std::vector<Plot> plots_of(const std::vector<Result>& results) {
  std::vector<Plot> all;
  for (std::size_t i = 0; i < results.size(); ++i) {
    for (Plot plot : results[i].plots) {
      if (i > 0) plot.name += fmt::format("-{}", i + 1);
      all.push_back(std::move(plot));
    }
  }
  return all;
}

void print_table_files(const ReportFiles& files, std::ostream& stream) {
  for (const auto& file : files.tables) stream << "table: " << file.string() << '\n';
}

void print_files(const ReportFiles& files, std::ostream& stream) {
  stream << '\n';
  for (const auto& file : files.plots) {
    const bool is_speed_up = file.filename().string().starts_with(kSpeedUpPlot);
    stream << (is_speed_up ? "speed-up plot: " : "plot: ") << file.string() << '\n';
  }
  if (files.plots.empty()) stream << "no plot was drawn\n";
  print_table_files(files, stream);
}

// Of the studies named and of those right below a folder named.
std::vector<WantedRuns> wanted_of(const std::vector<std::filesystem::path>& studies,
                                  StoreContent& content) {
  namespace fs = std::filesystem;
  std::vector<WantedRuns> all;
  const auto add = [&](const fs::path& folder) {
    try {
      if (auto wanted = read_wanted(folder)) all.push_back(std::move(*wanted));
    } catch (const Error& error) {
      content.rejected.push_back({folder / kWantedFile, error.what()});
    }
  };
  for (const fs::path& study : studies) {
    std::error_code none;
    add(study);
    for (const auto& entry : fs::directory_iterator(study, none)) {
      if (entry.is_directory(none)) add(entry.path());
    }
  }
  return all;
}

bool is_selected(const Record& record, const std::vector<Selection>& only) {
  return std::all_of(only.begin(), only.end(), [&](const Selection& selection) {
    if (selection.key == "kind") return record.kind() == selection.value;
    if (selection.key == "study") return record.study() == selection.value;
    return record.parameters().text(selection.key) == selection.value;
  });
}

// Takes them all out of `content`, and returns those that were asked for.
std::vector<Record> take_collectives(StoreContent& content, const std::vector<Selection>& only) {
  const auto first =
      std::stable_partition(content.records.begin(), content.records.end(),
                            [](const Record& record) { return record.kind() != "collective"; });
  std::vector<Record> collectives(first, content.records.end());
  content.records.erase(first, content.records.end());
  if (collectives.empty()) return {};
  if (std::any_of(only.begin(), only.end(), [](const Selection& selection) {
        return selection.key == "kind" && selection.value == "collective";
      })) {
    content.records.clear();
  }
  std::erase_if(collectives, [&](const Record& record) { return !is_selected(record, only); });
  if (collectives.empty() && content.records.empty()) {
    throw Error(ErrorKind::usage, "no record of a collective has these values", "--only",
                "choose others");
  }
  return collectives;
}

// A CSV or JSON text is of one thing.
void check_one_kind(const StoreContent& content, Format format) {
  if (content.records.empty() || format == Format::text || format == Format::markdown) return;
  throw Error(ErrorKind::usage, "records of collectives and of training are no one table",
              "--format", "name the records of one kind, or use text or md");
}

}  // namespace

ReportFiles write_report(const std::vector<std::filesystem::path>& studies,
                         const ReportOptions& options, std::ostream& stream) {
  for (const std::string& format : options.plots) check_plot_format(format);
  StoreContent content = load_stores(studies);
  const std::vector<WantedRuns> wanted = wanted_of(studies, content);
  const std::vector<Record> collectives = take_collectives(content, options.only);
  ReportFiles files;
  if (!collectives.empty()) {
    check_one_kind(content, options.format);
    const auto text_in = [&](Format format) { return render_collectives(collectives, format); };
    stream << text_in(options.format) << std::flush;
    if (!options.out.empty()) {
      write_tables("collectives", text_in, options.out, files);
      draw_plots(bandwidth_plots(collectives), options, files);
    }
    if (content.records.empty()) {
      if (options.format == Format::text) print_files(files, stream);
      return files;
    }
    stream << '\n';
  }
  const std::vector<Study> all = make_studies(content, options.only, wanted);
  std::vector<Result> results;
  std::vector<Table> tables;
  for (const Study& study : all) {
    results.push_back(result_of(study, options.base));
    tables.push_back(results.back().table);
  }
  stream << render(tables, options.format, options.style) << std::flush;
  if (options.out.empty()) return files;
  write_tables(
      "report", [&](Format format) { return render(tables, format); }, options.out, files);
  std::optional<Error> refused;
  try {
    draw_plots(plots_of(results), options, files);
  } catch (const Error& error) {
    refused = error;
  }
  if (options.format == Format::text) print_files(files, stream);
  if (refused) throw *refused;
  return files;
}

}  // namespace paceline
