// paceline describe WORKLOAD: layers, shapes, parameters, FLOPs and memory.
#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/study_options.h"
#include "cli/verb.h"
#include "engine/core/json.h"
#include "engine/core/output.h"
#include "run/resolve.h"

namespace paceline {

namespace {

struct DescribeOptions {
  DescriptionRequest request;
  bool json = false;
};

}  // namespace

void add_describe(CLI::App& app, Action& action) {
  CLI::App* verb = app.add_subcommand(
      "describe", "Show layers, shapes, parameters, FLOPs and memory of a workload");
  auto options = std::make_shared<DescribeOptions>();
  verb->add_option("workload", options->request.workload, "see: paceline list workloads")
      ->required();
  verb->add_option("--batch-per-replica", options->request.batch, "batch size for the memory plan")
      ->check(CLI::Range(1, 1 << 20));
  verb->add_option("--precision", options->request.precision,
                   "precision for the memory plan; tf32 and fp16 are for GPUs")
      ->check(CLI::IsMember({"fp32", "tf32", "bf16", "fp16", "fp64"}));
  add_value(*verb, "--variant NAME", options->request.variant,
            "variant of the network, where it has several");
  verb->add_flag("--json", options->json, "print JSON");
  verb->footer(
      "Examples:\n"
      "  paceline describe mnist-cnn\n"
      "  paceline describe resnet50-cassava --batch-per-replica 16 --precision bf16");
  verb->callback([options, &action] {
    action = [options] {
      const WorkloadDescription description = describe_workload(options->request);
      print_text(options->json ? json_text(description.json(), 2) + "\n"
                               : description.text(style_of_output().width));
      return 0;
    };
  });
}

}  // namespace paceline
