// paceline explain STUDY
#include "analysis/explain/explain.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <memory>

#include "analysis/gate/report_sides.h"
#include "cli/study_options.h"
#include "cli/verb.h"

namespace paceline {

namespace {

constexpr char kExplainFooter[] = R"(Examples:
  paceline explain results/local/quick
  paceline explain results/reference/cassava-resnet50 --base best
  paceline explain results/local/quick --only backend=mpi --json

Several studies that have points in common are explained one after the other; --pool explains
them as one. Efficiencies, labels and laws: docs/explain.md)";

struct ExplainArguments : StudyArguments {
  std::string base = "matched";
  DocumentArguments output;
};

// Studies that have points in common: each by itself.
Document explain_sides(const Sides& found, const Base& base, const std::vector<Selection>& only) {
  std::vector<Explanation> all;
  StoreContent rejected;
  for (const ReportSide& side : found.sides) {
    for (Explanation& each : explain(side.content, base, only, side.plans)) {
      each.title = side.name + ": " + each.title;
      all.push_back(std::move(each));
    }
    std::ranges::copy(side.content.rejected, std::back_inserter(rejected.rejected));
  }
  Document document = explanation_document(all);
  warn_of_rejected(rejected, document);
  return document;
}

Document explain_all(const ExplainArguments& arguments) {
  const std::vector<Selection> only = arguments.selections();
  const Base base = parse_base_of_sizes(arguments.base);
  if (arguments.pooling != Pooling::always) {
    const Sides found = load_sides(arguments.places(), only);
    if (!found.comparisons.empty()) return explain_sides(found, base, only);
  }
  const auto [content, plans] = load_training_records(arguments);
  Document document = explanation_document(explain(content, base, only, plans, arguments.pooling));
  warn_of_rejected(content, document);
  return document;
}

}  // namespace

void add_explain(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<ExplainArguments>();
  CLI::App* verb = app.add_subcommand("explain", "Say where the efficiency of a study went");
  verb->footer(kExplainFooter);
  add_studies(*verb, *arguments);
  add_setting(*verb, "--base TEXT:{matched,best,smallest,nodes=N}", arguments->base,
              "base of speed-ups");
  add_pool_options(*verb, *arguments);
  add_format_options(*verb, arguments->output);
  verb->callback([arguments, &action] {
    action = [arguments] {
      print_documents({explain_all(*arguments)}, arguments->output);
      return EXIT_SUCCESS;
    };
  });
}

}  // namespace paceline
