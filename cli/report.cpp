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
  paceline report results/reference/jsc-clip-vit-l14 --base smallest
  paceline report results/reference/imagenet-resnet50 --only precision=amp --format md
  paceline report monday/quick tuesday/quick --format json     # compared, point by point
  paceline report monday/quick tuesday/quick --pool            # one table, sessions nested
  paceline report results/local/quick --base backend=gloo       # how much faster than gloo
  paceline report results/local/quick --columns +cost           # GPU-hours, memory, share of peak
  paceline report results/local/quick --format html --anonymous > quick.html

--base matched compares with one replica, the same backend and the same CPUs; --base best
compares the fastest row of each size with the fastest of one replica; --base smallest compares
with the smallest size that there is, --base nodes=1 or gpus=8 with that size, for studies that
begin at a node; --base AXIS=VALUE compares each row with the one that has this value and is the
same otherwise. Several studies with points in common stand side by side, with the ratio of their
times.)";

struct ReportArguments : StudyArguments {
  std::string base = "matched";
  DocumentArguments output;
  std::vector<std::string> columns;
  bool anonymous = false;
};

int report(const ReportArguments& arguments) {
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
  verb->add_option("--base", arguments->base, "base of speed-ups")
      ->type_name("TEXT:{matched,best,smallest,AXIS=VALUE}")
      ->capture_default_str();
  add_format_options(*verb, arguments->output);
  add_folder_options(*verb, arguments->output, "report");
  verb->add_flag("--anonymous", arguments->anonymous,
                 "hide hosts, users, accounts and paths in every format");
  add_pool_options(*verb, *arguments);
  verb->add_option("--columns", arguments->columns,
                   fmt::format("columns or groups ({}), separated by commas; +NAME adds one, -NAME "
                               "leaves one out",
                               join(split(kColumnGroups, ','), ", ")))
      ->type_name("NAMES")
      ->delimiter(',')
      ->allow_extra_args(false);
  verb->callback([arguments, &action] { action = [arguments] { return report(*arguments); }; });
}

}  // namespace paceline
