// paceline predict STUDY --gpus 16,64
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "analysis/predict/prediction.h"
#include "analysis/study/labels.h"
#include "cli/study_options.h"
#include "cli/verb.h"
#include "engine/core/error.h"
#include "engine/core/json.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

constexpr char kPredictFooter[] = R"(Examples:
  paceline predict results/local/quick --gpus 4,8,16
  paceline predict results/reference/kempner-resnet50 --gpus 128,256 --out prediction
  paceline predict results/reference/kempner-resnet50 --gpus 16,32,64 --up-to 8
  paceline predict results/local/quick --gpus 64 --only backend=mpi --json
  paceline predict results/local/quick --gpus 64 --network links.json
  paceline predict results/local/quick --gpus 64 --what-if bucket_mb=32,links=2x

Beside every predicted row stands how far the same procedure misses the largest measured size when
it is given only the smaller ones. How predictions are made: docs/predict.md)";

struct PredictArguments : StudyArguments {
  std::vector<int> gpus;
  std::optional<int> up_to;
  std::string by = "better", network, what_if;
  DocumentArguments output;
};

PredictorChoice parse_predictor(const std::string& name) {
  if (name == "better") return PredictorChoice::better;
  if (name == "laws") return PredictorChoice::laws;
  if (name == "replay") return PredictorChoice::replay;
  throw usage_error("unknown predictor \"" + name + "\"", "--by",
                    suggestion(name, {"better", "laws", "replay"}));
}

PredictOptions make_options(const PredictArguments& arguments) {
  PredictOptions options;
  options.gpus = arguments.gpus;
  std::ranges::sort(options.gpus);
  options.gpus.erase(std::unique(options.gpus.begin(), options.gpus.end()), options.gpus.end());
  options.up_to = arguments.up_to;
  options.predictor = parse_predictor(arguments.by);
  options.only = arguments.selections();
  if (!arguments.network.empty()) {
    options.network = parse_network(read_text(arguments.network), arguments.network);
  }
  options.what_if = arguments.what_if;
  return options;
}

int predict_sizes(const PredictArguments& arguments) {
  output_options(arguments.output);  // refuses them before anything is read
  const PredictOptions options = make_options(arguments);
  require_one_study(arguments, "name one of them");
  const StoreContent content = load_stores(arguments.places());
  require_training_records(content, arguments);
  Document document = prediction_document(predict(content, options), ignored_records(content));
  warn_of_rejected(content, document);
  print_documents({std::move(document)}, arguments.output);
  return EXIT_SUCCESS;
}

}  // namespace

void add_predict(CLI::App& app, Action& action) {
  constexpr int kMostReplicas = 1 << 20;
  auto arguments = std::make_shared<PredictArguments>();
  CLI::App* verb = app.add_subcommand("predict", "Predict larger sizes, with a held-out error");
  verb->footer(kPredictFooter);
  add_studies(*verb, *arguments);
  add_value(*verb, "--gpus N", arguments->gpus, "sizes to predict, separated by commas")
      ->required()
      ->delimiter(',')
      ->check(CLI::Range(1, kMostReplicas))
      ->allow_extra_args(false);
  add_value(*verb, "--up-to N", arguments->up_to,
            "use only measured sizes up to this one, to compare predictions with the others")
      ->check(CLI::Range(1, kMostReplicas));
  add_setting(*verb, "--by TEXT:{better,laws,replay}", arguments->by,
              "predictor: the one with the smaller held-out error, or the one named");
  add_value(*verb, "--network FILE", arguments->network,
            "links for the replay: latency, bandwidth and units of each level");
  add_value(*verb, "--what-if KEY=VALUE,...", arguments->what_if,
            "change these for the replay: precision-on-the-wire, bucket_mb, links");
  add_format_options(*verb, arguments->output);
  add_folder_options(*verb, arguments->output, "prediction");
  verb->callback(
      [arguments, &action] { action = [arguments] { return predict_sizes(*arguments); }; });
}

}  // namespace paceline
