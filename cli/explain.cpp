// paceline explain STUDY
#include "analysis/explain/explain.h"

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <memory>

#include "analysis/gate/side.h"
#include "cli/study_options.h"
#include "cli/verb.h"
#include "engine/core/output.h"

namespace paceline {

namespace {

constexpr char kExplainFooter[] = R"(Examples:
  paceline explain results/local/quick
  paceline explain results/reference/cassava-resnet50 --base best
  paceline explain results/local/quick --only backend=mpi --json

Several studies that have points in common are explained one after the other; --pool explains
them as one. Efficiencies, labels and laws: docs/explain.md)";

struct ExplainArguments {
  std::vector<std::string> studies, only;
  std::string base = "matched";
  Pooling pooling = Pooling::by_sessions;
  bool json = false;
};

// Studies that have points in common: each by itself.
std::vector<Explanation> explain_sides(const Sides& found, const Base& base,
                                       const std::vector<Selection>& only) {
  std::vector<Explanation> all;
  for (const ReportSide& side : found.sides) {
    for (Explanation& each : explain(side.content, base, only, side.plans)) {
      each.title = side.name + ": " + each.title;
      all.push_back(std::move(each));
    }
  }
  return all;
}

std::vector<Explanation> explain_all(const ExplainArguments& arguments) {
  std::vector<Selection> only;
  for (const std::string& text : arguments.only) only.push_back(parsed_selection(text));
  const std::vector<std::filesystem::path> places(arguments.studies.begin(),
                                                  arguments.studies.end());
  const Base base = parse_base(arguments.base);
  if (arguments.pooling != Pooling::always) {
    const Sides found = load_sides(places, only);
    if (!found.comparisons.empty()) return explain_sides(found, base, only);
  }
  StoreContent content = load_stores(places);
  const std::vector<ExpectedRuns> plans = load_plans(places, content);
  std::erase_if(content.records, [](const Record& record) { return record->is_collective(); });
  return explain(content, base, only, plans, arguments.pooling);
}

int run_explain(const ExplainArguments& arguments) {
  const std::vector<Explanation> explanations = explain_all(arguments);
  if (arguments.json) {
    print_text(explanations_json(explanations));
    return EXIT_SUCCESS;
  }
  for (const Explanation& explanation : explanations) {
    if (&explanation != &explanations.front()) print_text("\n");
    print_text(explanation_text(explanation, style_of_output().width));
  }
  return EXIT_SUCCESS;
}

}  // namespace

void add_explain(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<ExplainArguments>();
  CLI::App* verb = app.add_subcommand("explain", "Say where the efficiency of a study went");
  verb->footer(kExplainFooter);
  verb->add_option("STUDY", arguments->studies, "folders of run records, or published tables")
      ->required();
  verb->add_option("--base", arguments->base, "base of speed-ups")
      ->type_name("TEXT:{matched,best}")
      ->capture_default_str();
  verb->add_option("--only", arguments->only, "use only these records (repeatable)")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  add_pool_options(*verb, arguments->pooling);
  verb->add_flag("--json", arguments->json, "print JSON");
  verb->callback(
      [arguments, &action] { action = [arguments] { return run_explain(*arguments); }; });
}

}  // namespace paceline
