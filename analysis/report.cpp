#include "analysis/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <ostream>

#include "analysis/explain/explain.h"
#include "analysis/findings/best.h"
#include "analysis/gate/side.h"
#include "analysis/plots/script.h"
#include "analysis/plots/study_plots.h"
#include "analysis/render/render.h"
#include "analysis/study/scaling_series.h"
#include "analysis/study/study.h"
#include "analysis/table/definition.h"
#include "analysis/table/table.h"
#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/text.h"
#include "results/expected_runs.h"
#include "results/store.h"

namespace paceline {

namespace fs = std::filesystem;

namespace {

struct Result {
  Table table;
  std::vector<Plot> plots;
  std::string best = {};  // for pages
  HtmlExplanation explanation = {};
};

constexpr double kNearEnough = 0.05;

Base choose_base(const Study& study, const Base& asked) {
  return asked == Base::matched ? default_base(study) : asked;
}

Result make_result(const Study& study, const ReportOptions& options) {
  const Comparison comparison = compare(study, choose_base(study, options.base));
  std::vector<RowFacts> facts;
  for (std::size_t i = 0; i < study.rows.size(); ++i) {
    facts.push_back(row_facts(study, comparison, i));
  }
  Result result{make_table(study, comparison, facts), {}};
  choose_columns(result.table, options.columns);
  result.plots = study_plots({study, comparison, facts, result.table.title});
  return result;
}

bool is_selected(const Record& record, const std::vector<Selection>& only) {
  return std::all_of(only.begin(), only.end(), [&](const Selection& selection) {
    if (selection.key == "kind") {
      return selection.value == "collective" || selection.value == record->kind;
    }
    if (selection.key == "study") return record->study == selection.value;
    return record->parameters.text(selection.key) == selection.value;
  });
}

// Takes them all out of `content`, and returns those that were asked for.
std::vector<Record> take_collectives(StoreContent& content, const std::vector<Selection>& only) {
  const auto first =
      std::stable_partition(content.records.begin(), content.records.end(),
                            [](const Record& record) { return !record->is_collective(); });
  std::vector<Record> collectives(first, content.records.end());
  content.records.erase(first, content.records.end());
  if (collectives.empty()) return {};
  // Of a kind that no training has, there are collectives alone.
  const bool only_collectives = std::any_of(only.begin(), only.end(), [&](const Selection& chosen) {
    return chosen.key == "kind" &&
           std::none_of(content.records.begin(), content.records.end(),
                        [&](const Record& record) { return record->kind == chosen.value; });
  });
  std::erase_if(collectives, [&](const Record& record) { return !is_selected(record, only); });
  if (only_collectives && !collectives.empty()) content.records.clear();
  if (collectives.empty() && content.records.empty()) {
    throw Error(ErrorKind::usage, "no record of a collective has these values", "--only",
                "choose others");
  }
  return collectives;
}

// A CSV or JSON text is of one thing.
void check_one_kind(const StoreContent& content, Format format) {
  if (format == Format::latex) {
    throw Error(ErrorKind::usage, "records of collectives cannot be printed as LaTeX", "--format",
                "use text, md, csv, json or html");
  }
  if (content.records.empty() || (format != Format::csv && format != Format::json)) return;
  throw Error(ErrorKind::usage, "records of collectives and of training cannot share a table",
              "--format", "name the records of one kind, or use text, md or html");
}

// All that is reported, and how it is printed, drawn and written.
class Report {
 public:
  Report(const std::vector<fs::path>& studies, const ReportOptions& options) : options_(options) {
    if (options.pooling != Pooling::always && add_sides(studies)) {
      name_plots();
      return;
    }
    StoreContent content = load_stores(studies);
    const std::vector<ExpectedRuns> wanted = load_plans(studies, content);
    if (options.anonymous) content = anonymous(std::move(content));
    collectives_ = take_collectives(content, options.only);
    if (!collectives_.empty()) {
      check_one_kind(content, options.format);
      bandwidth_ = bandwidth_plots(collectives_);
    }
    if (!collectives_.empty() && content.records.empty()) return;
    const std::vector<Study> made = make_studies(content, options.only, wanted, options.pooling);
    check_base(made, options.base);
    for (const Study& study : made) {
      results_.push_back(make_result(study, options));
      tables_.push_back(results_.back().table);
    }
    if (options.format == Format::html || !options.out.empty()) add_answers(content, made);
    name_plots();
  }

  // Names of every file that will be written.
  std::vector<std::string> file_names() const {
    std::vector<std::string> names;
    for (const std::string& stem : stems()) {
      for (const Format format : kFileFormats) {
        names.push_back(fmt::format("{}.{}", stem, file_extension(format)));
      }
    }
    for (const Plot* plot : plots()) {
      for (const std::string& format : options_.plots) names.push_back(plot->name + "." + format);
    }
    return names;
  }

  // Pages show pictures. Where they cannot be drawn, why is kept for the page and for the end.
  void draw_for_pages() {
    if (options_.plots.empty()) return;
    try {
      for (const Plot* plot : plots()) svgs_[plot->name] = draw_plot(*plot, "svg");
    } catch (const Error& error) {
      refused_ = error;
    }
  }

  void print(std::ostream& stream) const {
    if (options_.format == Format::html) {
      stream << page(true, true) << std::flush;
      return;
    }
    if (!collectives_.empty()) stream << render_collectives(collectives_, options_.format);
    if (!collectives_.empty() && !tables_.empty()) stream << '\n';
    if (!tables_.empty()) stream << render(tables_, options_.format, options_.style);
    stream << std::flush;
  }

  void write(ReportFiles& files) {
    make_folder(options_.out);
    for (const std::string& stem : stems()) {
      for (const Format format : kFileFormats) {
        const std::string name = fmt::format("{}.{}", stem, file_extension(format));
        report_file(options_.out, name).write(render_text(stem, format));
        files.tables.push_back(options_.out / name);
      }
    }
    if (refused_) return;
    for (const Plot* plot : plots()) {
      for (const std::string& format : options_.plots) {
        const std::string name = plot->name + "." + format;
        report_file(options_.out, name)
            .write(format == "svg" ? svgs_.at(plot->name) : draw_plot(*plot, format));
        files.plots.push_back(options_.out / name);
      }
    }
  }

  void rethrow_plot_error() const {
    if (refused_) throw *refused_;
  }

 private:
  // JSON first: it says that the folder is a report's, should we be stopped on the way.
  static constexpr Format kFileFormats[] = {Format::json, Format::markdown, Format::csv,
                                            Format::html};

  // Studies that have points in common, side by side: the comparisons with the first, then the
  // tables of each. False where there are none such: tables of all of them have no run in common.
  bool add_sides(const std::vector<fs::path>& studies) {
    Sides found = load_sides(studies, options_.only, options_.anonymous);
    if (found.comparisons.empty() || found.has_collectives) return false;
    for (Table& table : found.comparisons) results_.push_back({std::move(table), {}});
    std::vector<Study> made;
    for (const ReportSide& side : found.sides) {
      made.insert(made.end(), side.studies.begin(), side.studies.end());
    }
    check_base(made, options_.base);
    for (const ReportSide& side : found.sides) {
      for (const Study& study : side.studies) {
        results_.push_back(make_result(study, options_));
        results_.back().table.title = side.name + ": " + results_.back().table.title;
      }
    }
    for (const Result& result : results_) tables_.push_back(result.table);
    return true;
  }

  // What `best` and `explain` say. Of some studies they have nothing to say, and throw why;
  // `explain` has no answer where a setting is the base.
  void add_answers(const StoreContent& content, const std::vector<Study>& studies) {
    for (std::size_t i = 0; i < studies.size(); ++i) {
      try {
        results_[i].best = best_answer(studies[i], find_best(studies[i], kNearEnough));
      } catch (const Error&) {
        results_[i].best.clear();
      }
      const Base base = choose_base(studies[i], options_.base);
      if (base.kind == Base::setting) continue;
      try {
        const auto explanations = explain(content, base, {studies[i]});
        results_[i].explanation =
            drop_duplicate_sentences(make_view(explanations.front()), results_[i].table);
        add_losses(explanations.front(), results_[i].plots);
      } catch (const Error&) {
        results_[i].explanation = {};
      }
    }
  }

  // A page has the findings and the legend of the table above.
  static HtmlExplanation drop_duplicate_sentences(const ExplanationView& view, const Table& table) {
    HtmlExplanation explanation;
    const auto append = [](const std::vector<std::string>& sentences,
                           const std::vector<std::string>& said, std::vector<std::string>& to) {
      std::ranges::copy_if(sentences, std::back_inserter(to), [&](const std::string& sentence) {
        return std::ranges::find(said, sentence) == said.end();
      });
    };
    append(view.first, table.findings, explanation.first);
    explanation.table = view.table;
    append(view.points, {}, explanation.sentences);
    append(view.series, table.findings, explanation.sentences);
    append(view.notes, table.notes, explanation.notes);
    return explanation;
  }

  // Behind the speed-up, where there is one.
  static void add_losses(const Explanation& explanation, std::vector<Plot>& plots) {
    const std::vector<Plot> losses = loss_plots(explanation);
    const bool has_speed_up = !plots.empty() && plots.front().name == kSpeedUpPlot;
    plots.insert(plots.begin() + (has_speed_up ? 1 : 0), losses.begin(), losses.end());
  }

  // Plots of a second table are named after it.
  void name_plots() {
    std::size_t number = 0;
    for (Result& result : results_) {
      if (result.table.is_comparison || ++number == 1) continue;
      for (Plot& plot : result.plots) plot.name += fmt::format("-{}", number);
    }
  }

  std::vector<std::string> stems() const {
    std::vector<std::string> names;
    if (!collectives_.empty()) names.emplace_back("collectives");
    if (!tables_.empty()) names.emplace_back("report");
    return names;
  }

  std::vector<const Plot*> plots() const {
    std::vector<const Plot*> all;
    for (const Plot& plot : bandwidth_) all.push_back(&plot);
    for (const Result& result : results_) {
      for (const Plot& plot : result.plots) all.push_back(&plot);
    }
    return all;
  }

  std::string render_text(const std::string& stem, Format format) const {
    const bool is_report = stem == "report";
    if (format == Format::html) return page(is_report, !is_report);
    return is_report ? render(tables_, format) : render_collectives(collectives_, format);
  }

  std::vector<HtmlPicture> pictures(const std::vector<Plot>& plots) const {
    std::vector<HtmlPicture> all;
    for (const Plot& plot : plots) {
      const auto svg = svgs_.find(plot.name);
      if (svg == svgs_.end()) continue;
      all.push_back({plot.name, plot.title + ": " + plot.subtitle, svg->second});
    }
    return all;
  }

  // To the records of each row, from a page in the folder of the report.
  std::vector<std::vector<std::string>> list_links(const Table& table) const {
    if (options_.out.empty() || options_.format == Format::html || options_.anonymous) return {};
    const fs::path folder = fs::absolute(options_.out);
    std::vector<std::vector<std::string>> links = table.records;
    for (std::vector<std::string>& row : links) {
      std::erase(row, "");  // a point without a run
      for (std::string& file : row) {
        file = fs::absolute(file).lexically_normal().lexically_relative(folder.lexically_normal());
      }
    }
    return links;
  }

  std::string page(bool with_tables, bool with_collectives) const {
    HtmlPage page;
    if (refused_) page.missing = refused_->what();
    for (std::size_t i = 0; with_tables && i < results_.size(); ++i) {
      page.sections.push_back({results_[i].table, pictures(results_[i].plots), results_[i].best,
                               results_[i].explanation, list_links(results_[i].table)});
    }
    if (with_collectives && !collectives_.empty()) {
      page.collectives = render_collectives(collectives_, Format::html);
      page.collective_pictures = pictures(bandwidth_);
    }
    if (options_.format != Format::html) {
      for (const std::string& name : file_names()) {
        if (!name.ends_with(".html")) page.files.push_back(name);
      }
    }
    return render_html(page);
  }

  const ReportOptions& options_;
  std::vector<Record> collectives_;
  std::vector<Plot> bandwidth_;
  std::vector<Result> results_;
  std::vector<Table> tables_;
  std::map<std::string, std::string> svgs_;  // by the plot's name
  std::optional<Error> refused_;
};

void print_files(const ReportFiles& files, std::size_t width, std::ostream& stream) {
  stream << '\n';
  std::vector<std::string> others;
  for (const auto* all : {&files.tables, &files.plots}) {
    for (const fs::path& file : *all) {
      if (file.extension() == ".html") {
        stream << "report: " << file.string() << " (open it in a browser)\n";
      } else {
        others.push_back(file.filename().string());
      }
    }
  }
  stream << wrapped("beside it: " + join(others, ", "), width);
  if (files.plots.empty()) stream << "no plot was drawn\n";
}

}  // namespace

ReportFiles write_report(const std::vector<fs::path>& studies, const ReportOptions& options,
                         std::ostream& stream) {
  for (const std::string& format : options.plots) check_plot_format(format);
  Report report(studies, options);
  if (!options.out.empty()) check_report_folder(options.out, report.file_names());
  if (options.format == Format::html) report.draw_for_pages();
  report.print(stream);
  ReportFiles files;
  if (!options.out.empty()) {
    if (options.format != Format::html) report.draw_for_pages();
    report.write(files);
    if (options.format == Format::text) print_files(files, options.style.width, stream);
  }
  report.rethrow_plot_error();
  return files;
}

}  // namespace paceline
