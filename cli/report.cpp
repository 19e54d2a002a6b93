#include "analysis/report.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <memory>

#include "cli/study_options.h"
#include "cli/verb.h"
#include "engine/core/error.h"
#include "engine/core/output.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

constexpr char kReportFooter[] = R"(Examples:
  paceline report results/local/quick
  paceline report results/local/quick --out report --plots svg,png,pdf
  paceline report results/reference/cassava-resnet50 --base best
  paceline report results/reference/imagenet-resnet50 --only precision=amp --format md
  paceline report monday/quick tuesday/quick --format json     # compared, point by point
  paceline report monday/quick tuesday/quick --pool            # one table, sessions nested
  paceline report results/local/quick --base backend=gloo       # how much faster than gloo
  paceline report results/local/quick --columns +cost           # GPU-hours, memory, share of peak
  paceline report results/local/quick --format html --anonymous > quick.html

--base matched compares with one replica, the same backend and the same CPUs; --base best
compares the fastest row of each size with the fastest of one replica; --base AXIS=VALUE compares
each row with the one that has this value and is the same otherwise. Several studies with points
in common stand side by side, with the ratio of their times.)";

struct ReportArguments {
  std::vector<std::string> studies;
  std::string base = "matched", format = "text", out;
  PlotOptions plots;
  std::vector<std::string> only, columns;
  Pooling pooling = Pooling::by_sessions;
  bool anonymous = false;
};

int report(const ReportArguments& arguments) {
  ReportOptions options;
  options.base = parse_base_or_setting(arguments.base);
  options.format = parse_format(arguments.format);
  options.style = style_of_output();
  options.out = arguments.out;
  options.anonymous = arguments.anonymous;
  options.pooling = arguments.pooling;
  options.columns = arguments.columns;
  options.plots = plot_formats(arguments.plots, arguments.out);
  for (const std::string& text : arguments.only) options.only.push_back(parsed_selection(text));
  OutputStream output;
  write_report({arguments.studies.begin(), arguments.studies.end()}, options, output);
  return EXIT_SUCCESS;
}

}  // namespace

void add_report(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<ReportArguments>();
  CLI::App* verb = app.add_subcommand("report", "Make the tables, findings and plots of a study");
  verb->footer(kReportFooter);
  verb->add_option("STUDY", arguments->studies,
                   "folders of run records, records, or published tables")
      ->required();
  verb->add_option("--base", arguments->base, "base of speed-ups")
      ->type_name("TEXT:{matched,best,AXIS=VALUE}")
      ->capture_default_str();
  verb->add_option("--format", arguments->format, "print the report as this")
      ->type_name("TEXT:{text,md,csv,json,html,latex}")
      ->capture_default_str();
  verb->add_option("--out", arguments->out,
                   "write report.html, .md, .csv, .json and the plots into this folder")
      ->type_name("FOLDER");
  verb->add_flag("--anonymous", arguments->anonymous,
                 "hide hosts, users, accounts and paths in every format");
  add_pool_options(*verb, arguments->pooling);
  verb->add_option("--only", arguments->only, "use only these records (repeatable)")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  verb->add_option("--columns", arguments->columns,
                   fmt::format("columns or groups ({}), separated by commas; +NAME adds one, -NAME "
                               "leaves one out",
                               join(split(kColumnGroups, ','), ", ")))
      ->type_name("NAMES")
      ->delimiter(',')
      ->allow_extra_args(false);
  add_plot_options(*verb, arguments->plots);
  verb->callback([arguments, &action] { action = [arguments] { return report(*arguments); }; });
}

}  // namespace paceline
