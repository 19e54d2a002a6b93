#include "cli/study_options.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>

#include "analysis/gate/report_sides.h"
#include "analysis/plots/script.h"
#include "analysis/report.h"
#include "analysis/study/labels.h"
#include "cli/verb.h"
#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/output.h"
#include "engine/core/text.h"
#include "results/configuration.h"

namespace paceline {

void add_results(CLI::App& verb, std::string& results, const std::string& help) {
  results = configuration().settings.results.value;
  add_setting(verb, "--results FOLDER", results, help);
  verb.parse_complete_callback([] {
    if (configuration().fault) throw Error(*configuration().fault);
  });
}

void add_study_options(CLI::App& verb, StudyOptions& options) {
  verb.add_option("spec", options.spec, "a sweep spec: a file, or the name of one that ships")
      ->required();
  add_results(verb, options.results, "folder of studies; jobs write here, too");
  add_value(verb, "--data FOLDER", options.data,
            "the data set, or the folder that holds it (data/mnist, or data)");
  add_value(verb, "--set AXIS=VALUE", options.set,
            "replace values of the spec (or AXIS=V1,V2; repeatable)")
      ->expected(1)
      ->take_all();
  verb.add_option("--repeats", options.repeats, "runs of each point")->check(CLI::Range(1, 1000));
  CLI::Option* until =
      add_value(verb, "--until-precision PERCENT", options.until_precision,
                "run each point until the 95 % interval of its mean time is this narrow (±)");
  add_setting(verb, "--max-repeats", options.max_repeats, "with --until-precision, of each point")
      ->needs(until)
      ->check(CLI::Range(3, 1000));
  verb.add_flag("--control", options.control,
                "run the smallest point twice a round, to show run-to-run noise");
  verb.add_flag("--new-build", options.new_build, "rerun points that another build recorded");
}

Base parse_base(const std::string& text) {
  std::vector<std::string> known;
  for (const Base base : {Base::matched, Base::best, Base::smallest}) {
    if (text == base.text()) return base;
    known.push_back(base.text());
  }
  if (text.find('=') == std::string::npos) {
    throw usage_error(
        "unknown base \"" + text + "\"", "--base",
        nearest(text, known)
            ? suggestion(text, known)
            : "give matched, best, smallest, or a setting such as nodes=1 or bucket_mb=8");
  }
  const Selection chosen = parsed_selections({text}, "--base", "bucket_mb=8").front();
  return {chosen.key, chosen.values.front()};
}

Base parse_base_of_sizes(const std::string& text) {
  Base base = parse_base(text);
  if (base.compares_sizes()) return base;
  throw usage_error("the base \"" + text + "\" is not another size", "--base",
                    "give matched, best, smallest, or a size such as nodes=1");
}

std::string name_and_text(std::string_view name, std::size_t column, const std::string& text) {
  const std::string_view gap = name.size() < column ? "" : " ";  // a name may be longer
  return wrapped(text, style_of_output().width, fmt::format("{:<{}}{}", name, column, gap), column);
}

TextStyle style_of_output() {
  TextStyle style{.colours = colours_welcome(STDOUT_FILENO)};
  constexpr std::size_t kOfALog = 80;
  style.terminal_width = columns_of_output(STDOUT_FILENO);
  style.width = std::min(style.width, style.terminal_width > 0 ? style.terminal_width : kOfALog);
  return style;
}

std::vector<Selection> StudyArguments::selections() const {
  return parsed_selections(only);
}

void add_studies(CLI::App& verb, StudyArguments& arguments) {
  verb.add_option("STUDY", arguments.studies,
                  "folders of run records, records, or published tables")
      ->required();
  add_value(verb, "--only KEY=VALUE", arguments.only,
            "use only these records (or KEY=V1,V2; repeatable)")
      ->allow_extra_args(false);
}

void add_pool_options(CLI::App& verb, StudyArguments& arguments) {
  CLI::Option* pool = verb.add_flag_callback(
      "--pool", [&arguments] { arguments.pooling = Pooling::always; },
      "one table of all studies, with sessions as the unit of intervals, however few");
  verb.add_flag_callback(
          "--no-pool", [&arguments] { arguments.pooling = Pooling::never; },
          "runs as the unit of intervals, however many sessions")
      ->excludes(pool);
}

void require_training_records(const StoreContent& content, const StudyArguments& arguments) {
  const bool has_others =
      !content.rejected.empty() ||
      std::ranges::any_of(content.records, [](const auto& each) { return !each->is_collective(); });
  if (has_others || content.records.empty()) return;
  throw input_error(
      "these records are of collectives only", join(arguments.studies, " and "),
      "see paceline report " + arguments.studies.front() + ", or name records of training");
}

TrainingRecords load_training_records(const StudyArguments& arguments) {
  TrainingRecords records{load_stores(arguments.places()), {}};
  require_training_records(records.content, arguments);
  records.plans = load_plans(arguments.places(), records.content);
  std::erase_if(records.content.records,
                [](const Record& record) { return record->is_collective(); });
  return records;
}

void warn_of_rejected(const StoreContent& content, Document& document) {
  const std::vector<std::string> lines = left_out_notes(content, {});
  for (const std::string& line : lines) {
    for (Section& section : document.sections) {
      std::erase(section.notes, line);
      std::erase(section.caveats, line);
    }
  }
  std::vector<std::string>& warnings = document.sections.front().warnings;
  warnings.insert(warnings.begin(), lines.begin(), lines.end());
}

void require_one_study(const StudyArguments& arguments, const std::string& cure) {
  if (load_sides(arguments.places(), arguments.selections()).comparisons.empty()) return;
  throw usage_error("several studies have runs of the same points",
                    join(arguments.studies, " and "), cure);
}

namespace {

std::string list_titles(const std::vector<Study>& studies) {
  return join(mapped(studies, [](const Study& study) { return study_title(study); }), "; ");
}

// What chooses the first.
std::string select_study(const Study& first, const Study& second) {
  std::string choice;
  if (first.workload != second.workload) {
    choice = "workload=" + first.workload;
  } else if (first.precision != second.precision && !first.precision.empty()) {
    choice = "precision=" + first.precision;
  } else if (!first.work.empty() && first.work.front().first != "studies") {
    choice = first.work.front().first + "=" + to_text(first.work.front().second);
  } else {
    return "name the folders of one";
  }
  return "choose one, e.g. with --only " + choice;
}

}  // namespace

Study only_table(std::vector<Study> studies) {
  if (studies.size() > 1) {
    throw usage_error(
        fmt::format("these records make {} tables: {}", studies.size(), list_titles(studies)),
        studies[0].rows[0].first().where + " and " + studies[1].rows[0].first().where,
        select_study(studies[0], studies[1]));
  }
  return std::move(studies.front());
}

CLI::Option* add_format_options(CLI::App& verb, DocumentArguments& arguments) {
  add_setting(verb, "--format TEXT:{text,md,csv,json,html,latex}", arguments.format,
              "print it as this");
  verb.add_flag("--json", arguments.json, "the same as --format json");
  return verb.add_flag("--verbose", arguments.verbose, "print all of it, and what each number is");
}

void add_folder_options(CLI::App& verb, DocumentArguments& arguments, const std::string& name) {
  add_value(verb, "--out FOLDER", arguments.out,
            fmt::format("write {}.html, .md, .csv, .json and the plots into this folder", name));
  CLI::Option* formats =
      add_setting(verb, "--plots FORMAT", arguments.plots,
                  "formats of the plots: svg, png, pdf, separated by commas")
          ->delimiter(',')
          ->allow_extra_args(false)
          ->each([&arguments](const std::string&) { arguments.plots_given = true; });
  verb.add_flag("--no-plots", arguments.no_plots, "write no plots")->excludes(formats);
}

OutputOptions output_options(const DocumentArguments& arguments) {
  OutputOptions options{.format = arguments.json ? Format::json : parse_format(arguments.format),
                        .style = style_of_output(),
                        .out = arguments.out};
  if (arguments.out.empty() && arguments.plots_given) {
    throw usage_error("plots need an output folder", "--plots", "add --out DIR");
  }
  options.style.details = arguments.verbose;
  options.plots = arguments.no_plots ? std::vector<std::string>() : arguments.plots;
  for (const std::string& format : options.plots) check_plot_format(format);
  return options;
}

void print_study_report(const std::filesystem::path& study, bool verbose) {
  ReportOptions options;
  options.out = study / "report";
  Folder(study).make_folder("report");
  options.style = style_of_output();
  options.style.details = verbose;
  OutputStream output;
  write_report({study}, options, output);
}

bool confirm_cost() {
  if (!can_ask()) {
    throw usage_error("there is no terminal to confirm the cost on", "", "add --yes");
  }
  print_note("submit? [y/N] ");
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "y" || answer == "yes";
}

void print_now(const std::string& text) {
  print("{}", text);
  flush_output();
}

void print_documents(const std::vector<Document>& documents, const DocumentArguments& arguments) {
  OutputStream stream;
  write_documents(documents, output_options(arguments), stream);
}

}  // namespace paceline
