// paceline best STUDY --within 5%
#include "analysis/findings/best.h"

#include <CLI/CLI.hpp>
#include <memory>

#include "analysis/gate/quantity.h"
#include "analysis/study/labels.h"
#include "cli/study_options.h"
#include "cli/verb.h"
#include "engine/core/error.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

constexpr char kBestFooter[] = R"(Examples:
  paceline best results/local/quick
  paceline best results/local/quick --within 10% --only backend=mpi
  paceline best results/local/quick --least core-hours
  paceline best results/local/quick --json

A point is within the limit if the 95 % interval of its time over the best's is. Smaller points
whose interval holds the limit, or that have fewer than 3 runs, are named as undecided.)";

constexpr double kMostWithin = 10;

struct BestArguments : StudyArguments {
  std::string within = "5%";
  std::string least;
  DocumentArguments output;
};

// Null: fewest replicas and CPUs.
const CostMetric* find_cost_metric(const std::string& name) {
  if (name.empty()) return nullptr;
  std::vector<std::string> known;
  for (const CostMetric& amount : expenses()) {
    if (amount.name == name) return &amount;
    known.push_back(amount.name);
  }
  throw usage_error("unknown metric \"" + name + "\"", "--least", "give " + join(known, ", "));
}

int best(const BestArguments& arguments) {
  const double within = parse_threshold(arguments.within, "--within", "percentage",
                                        {.most = kMostWithin, .zero = true});
  const CostMetric* least = find_cost_metric(arguments.least);
  if (arguments.pooling != Pooling::always) {
    require_one_study(arguments,
                      "name one of them, or nest their sessions with --pool; report compares them");
  }
  const auto [content, plans] = load_training_records(arguments);
  const Study study =
      only_table(make_studies(content, arguments.selections(), plans, arguments.pooling));
  print_documents({best_document(study, find_best(study, within, least), ignored_records(content))},
                  arguments.output);
  return EXIT_SUCCESS;
}

}  // namespace

void add_best(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<BestArguments>();
  CLI::App* verb =
      app.add_subcommand("best", "Find the smallest configuration that is nearly the fastest");
  verb->footer(kBestFooter);
  add_studies(*verb, *arguments);
  add_setting(*verb, "--within PERCENT", arguments->within,
              "how much slower than the fastest is near enough");
  add_value(*verb, "--least NAME", arguments->least,
            "of the points near enough, the one that takes least: energy, edp, gpu-hours, "
            "core-hours");
  add_pool_options(*verb, *arguments);
  add_format_options(*verb, arguments->output);
  verb->callback([arguments, &action] { action = [arguments] { return best(*arguments); }; });
}

}  // namespace paceline
