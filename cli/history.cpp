// paceline history DIR...
#include <CLI/CLI.hpp>
#include <cstdlib>
#include <memory>

#include "analysis/history/history_text.h"
#include "analysis/plots/script.h"
#include "analysis/render/render.h"
#include "cli/study_options.h"
#include "cli/verb.h"
#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/output.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

namespace fs = std::filesystem;

constexpr char kHistoryFooter[] = R"(Examples:
  paceline history nightly/quick
  paceline history monday/quick tuesday/quick wednesday/quick ...
  paceline history nightly/quick --metric serial-fraction --point gpus=16
  paceline history results/reference/csc-gpt-neo
  paceline history nightly/quick --since 2026-01-01 --out history     # page and pictures
  paceline history nightly/quick --json
  paceline history nightly/quick --fail-on-shift --since 2026-01-01   # in CI

A shift is a change of level beyond chance, neither a spike nor a drift. What each figure is, and
how often a shift is false: docs/history.md)";

struct HistoryArguments {
  std::vector<std::string> studies, metrics, points;
  PlotOptions plots;
  std::string since, format = "text", out;
  bool json = false, fail_on_shift = false;
};

HistoryOptions make_options(const HistoryArguments& arguments) {
  HistoryOptions options;
  for (const std::string& metric : arguments.metrics) {
    options.metrics.push_back(parse_history_metric(metric));
  }
  for (const std::string& point : arguments.points) {
    options.points.push_back(parsed_selection(point, "--point", "gpus=16"));
  }
  if (!arguments.since.empty()) {
    options.since = parse_day(arguments.since);
    if (!options.since) {
      throw Error(ErrorKind::usage, "\"" + arguments.since + "\" is not a date", "--since",
                  "write for example --since 2026-01-31");
    }
  }
  return options;
}

Format choose_page_format(const HistoryArguments& arguments) {
  if (arguments.json) return Format::json;
  const Format format = parse_format(arguments.format);
  if (format == Format::latex) {
    throw Error(ErrorKind::usage, "a history cannot be printed as LaTeX", "--format",
                "use text, md, csv, json or html");
  }
  return format;
}

// What is printed and written, in every format.
class Pages {
 public:
  Pages(const History& history, const std::vector<std::string>& formats)
      : history_(history), formats_(formats) {
    for (const StudyHistory& study : history.studies) {
      tables_.push_back(history_table(history, study));
      plots_.push_back(history_plots(study, number_));
      number_ += plots_.back().size();
    }
  }

  // Where pictures cannot be drawn, why is kept for the page and for the end.
  void draw() {
    if (formats_.empty()) return;
    try {
      for (const auto& plots : plots_) {
        for (const Plot& plot : plots) svgs_.push_back(draw_plot(plot, "svg"));
      }
    } catch (const Error& error) {
      svgs_.clear();
      refused_ = error;
    }
  }

  std::string text(Format format, const TextStyle& style) const {
    if (format == Format::json) return history_json(history_);
    if (format == Format::text) return history_text(history_, style);
    return format == Format::html ? page() : render(tables_, format);
  }

  std::vector<std::string> file_names() const {
    std::vector<std::string> names;
    for (const Format format : kFileFormats) names.push_back(file_name(format));
    for (const auto& plots : plots_) {
      for (const Plot& plot : plots) {
        for (const std::string& format : formats_) names.push_back(plot.name + "." + format);
      }
    }
    return names;
  }

  void write(const fs::path& folder) const {
    make_folder(folder);
    for (const Format format : kFileFormats) {
      report_file(folder, file_name(format)).write(text(format, {}));
    }
    std::size_t at = 0;
    for (const auto& plots : plots_) {
      for (const Plot& plot : plots) {
        if (at >= svgs_.size()) return;
        const std::string& svg = svgs_[at++];
        for (const std::string& format : formats_) {
          report_file(folder, plot.name + "." + format)
              .write(format == "svg" ? svg : draw_plot(plot, format));
        }
      }
    }
  }

  void rethrow_plot_error() const {
    if (refused_) throw *refused_;
  }

 private:
  // JSON first: it says that the folder is ours, should we be stopped on the way.
  static constexpr Format kFileFormats[] = {Format::json, Format::markdown, Format::csv,
                                            Format::html};
  static std::string file_name(Format format) {
    return "history." + std::string(file_extension(format));
  }

  std::string page() const {
    HtmlPage page;
    if (refused_) page.missing = refused_->what();
    std::size_t at = 0;
    for (std::size_t i = 0; i < tables_.size(); ++i) {
      HtmlSection section{tables_[i], {}};
      for (const Plot& plot : plots_[i]) {
        if (at >= svgs_.size()) break;
        section.pictures.push_back({plot.name, plot.title + ": " + plot.subtitle, svgs_[at++]});
      }
      page.sections.push_back(std::move(section));
    }
    return render_html(page);
  }

  const History& history_;
  const std::vector<std::string>& formats_;
  std::size_t number_ = 1;
  std::vector<Table> tables_;
  std::vector<std::vector<Plot>> plots_;  // per study
  std::vector<std::string> svgs_;         // of all plots
  std::optional<Error> refused_;
};

int history(const HistoryArguments& arguments) {
  const Format format = choose_page_format(arguments);
  const HistoryOptions options = make_options(arguments);
  const std::vector<std::string> formats = plot_formats(arguments.plots, arguments.out);
  StoreContent content = load_stores({arguments.studies.begin(), arguments.studies.end()});
  const History found = find_history(make_history(std::move(content), options));
  Pages pages(found, formats);
  if (!arguments.out.empty()) check_report_folder(arguments.out, pages.file_names());
  if (!arguments.out.empty() || format == Format::html) pages.draw();
  print_text(pages.text(format, style_of_output()));
  if (!arguments.out.empty()) {
    pages.write(arguments.out);
    if (format == Format::text) {
      print("\nhistory: {} (open it in a browser)\n",
            (fs::path(arguments.out) / "history.html").string());
    }
  }
  const bool fails = arguments.fail_on_shift && found.has_worse();
  if (!fails) pages.rethrow_plot_error();
  return fails ? EXIT_FAILURE : EXIT_SUCCESS;
}

}  // namespace

void add_history(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<HistoryArguments>();
  CLI::App* verb =
      app.add_subcommand("history", "Find when a study changed, and what changed with it");
  verb->footer(kHistoryFooter);
  verb->add_option("STUDY", arguments->studies,
                   "folders of run records of several sessions, or published tables with dates")
      ->required();
  verb->add_option(
          "--metric", arguments->metrics,
          "what to look at, separated by commas: time, throughput, speed-up, efficiency, "
          "serial-fraction, exposed-communication, energy, accuracy; if not given, time (or else "
          "throughput), serial-fraction (or else efficiency) and the last three")
      ->type_name("NAME")
      ->delimiter(',')
      ->allow_extra_args(false);
  verb->add_option("--point,--only", arguments->points, "use only these records (repeatable)")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  verb->add_option("--since", arguments->since, "use only sessions from this day on")
      ->type_name("DATE");
  verb->add_option("--format", arguments->format, "print the history as this")
      ->type_name("TEXT:{text,md,csv,json,html}")
      ->capture_default_str();
  verb->add_flag("--json", arguments->json, "the same as --format json");
  verb->add_flag("--fail-on-shift", arguments->fail_on_shift,
                 "exit with 1 if a level shift for the worse is found");
  verb->add_option("--out", arguments->out,
                   "write history.html, .md, .csv, .json and the plots into this folder")
      ->type_name("FOLDER");
  add_plot_options(*verb, arguments->plots);
  verb->callback([arguments, &action] { action = [arguments] { return history(*arguments); }; });
}

}  // namespace paceline
