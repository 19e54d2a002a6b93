#include "analysis/report.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <memory>

#include "analysis/gate/quantity.h"
#include "analysis/table/sheet.h"
#include "cli/study_options.h"
#include "cli/verb.h"
#include "engine/core/output.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

constexpr char kReportFooter[] = R"(Examples:
  paceline report results/local/quick
  paceline report results/local/quick --out report --plots svg,png,pdf
  paceline report results/reference/cassava-resnet50 --base best
  paceline report results/reference/jsc-clip-vit-l14 --base smallest
  paceline report results/reference/imagenet-resnet50 --only precision=amp --format md
  paceline report monday/quick tuesday/quick --format json     # compared, point by point
  paceline report monday/quick tuesday/quick --pool            # one table, sessions nested
  paceline report results/local/quick --base backend=gloo       # how much faster than gloo
  paceline report results/local/quick --columns +cost           # GPU-hours, memory, share of peak
  paceline report results/local/quick --format html --anonymous > quick.html
  paceline report results/local/quick --sheet --format html > sheet.html   # for a proposal

--base matched compares with one replica, the same backend and the same CPUs; --base best
compares the fastest row of each size with the fastest of one replica; --base smallest compares
with the smallest size that there is, --base nodes=1 or gpus=8 with that size, for studies that
begin at a node; --base AXIS=VALUE compares each row with the one that has this value and is the
same otherwise. Several studies with points in common stand side by side, with the ratio of their
times.

--sheet is one page for applications for compute time: code, machine, base, a table of sizes with
node-hours a run, the speed-up, and the largest size whose efficiency is at least that of
--efficiency with its whole 95 % interval. With --out, its files are sheet.html and others.)";

struct ReportArguments : StudyArguments {
  std::string base = "matched";
  DocumentArguments output;
  std::vector<std::string> columns;
  std::string efficiency = "70%";
  bool anonymous = false, sheet = false;
};

int print_sheet(const ReportArguments& arguments) {
  const double least = parse_threshold(arguments.efficiency, "--efficiency", "percentage");
  const Base base = parse_base_of_sizes(arguments.base);
  if (arguments.pooling != Pooling::always) {
    require_one_study(arguments, "name one of them, or nest their sessions with --pool");
  }
  auto [content, plans] = load_training_records(arguments);
  if (arguments.anonymous) content = anonymous(std::move(content));
  std::vector<Study> studies =
      make_studies(content, arguments.selections(), plans, arguments.pooling);
  check_base(studies, base);
  print_documents({sheet_document(only_table(std::move(studies)), base, least)}, arguments.output);
  return EXIT_SUCCESS;
}

int report(const ReportArguments& arguments) {
  if (arguments.sheet) return print_sheet(arguments);
  ReportOptions options;
  static_cast<OutputOptions&>(options) = output_options(arguments.output);
  options.base = parse_base(arguments.base);
  options.anonymous = arguments.anonymous;
  options.pooling = arguments.pooling;
  options.columns = arguments.columns;
  options.only = arguments.selections();
  OutputStream stream;
  write_report(arguments.places(), options, stream);
  return EXIT_SUCCESS;
}

}  // namespace

void add_report(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<ReportArguments>();
  CLI::App* verb = app.add_subcommand("report", "Make the tables, findings and plots of a study");
  verb->footer(kReportFooter);
  add_studies(*verb, *arguments);
  add_setting(*verb, "--base TEXT:{matched,best,smallest,AXIS=VALUE}", arguments->base,
              "base of speed-ups");
  CLI::Option* verbose = add_format_options(*verb, arguments->output);
  add_folder_options(*verb, arguments->output, "report");
  verb->add_flag("--anonymous", arguments->anonymous,
                 "hide hosts, users, accounts and paths in every format");
  add_pool_options(*verb, *arguments);
  CLI::Option* sheet =
      verb->add_flag("--sheet", arguments->sheet,
                     "one page for an application for compute time, with the size to apply for")
          ->excludes(verbose);
  add_setting(*verb, "--efficiency PERCENT", arguments->efficiency,
              "with --sheet, the least parallel efficiency of that size")
      ->needs(sheet);
  add_value(*verb, "--columns NAMES", arguments->columns,
            fmt::format("columns or groups ({}), separated by commas; +NAME adds one, -NAME "
                        "leaves one out",
                        join(split(kColumnGroups, ','), ", ")))
      ->excludes(sheet)
      ->delimiter(',')
      ->allow_extra_args(false);
  verb->callback([arguments, &action] { action = [arguments] { return report(*arguments); }; });
}

}  // namespace paceline
