// paceline describe WORKLOAD: layers, shapes, parameters, FLOPs and memory.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/run.h"
#include "cli/verb.h"
#include "engine/core/text.h"
#include "engine/plan/plan.h"

namespace paceline {

namespace {

std::size_t parameters_of(const Plan& plan, const Operation& op) {
  std::size_t count = 0;
  for (const int index : {op.weight, op.bias}) {
    if (index != kNone) count += plan.parameters[static_cast<std::size_t>(index)].elements;
  }
  return count;
}

Json as_json(const Workload& workload, const Plan& plan) {
  Json layers = Json::array();
  for (const Operation& op : plan.operations) {
    layers.push_back({{"name", op.name},
                      {"kind", name_of(op.kind)},
                      {"output", op.out.text()},
                      {"parameters", parameters_of(plan, op)},
                      {"forward_flops", forward_flops(op)},
                      {"backward_flops", backward_flops(op)}});
  }
  return {{"workload", workload.name},
          {"summary", workload.summary},
          {"batch_per_replica", plan.batch},
          {"parameters", plan.parameter_count},
          {"gradient_bytes", plan.parameter_count * size_of(plan.real)},
          {"flops_per_sample", plan.flops_per_sample},
          {"activation_bytes", plan.activation_bytes},
          {"train_samples", workload.train_samples},
          {"test_samples", workload.test_samples},
          {"layers", layers}};
}

void print_text(const Workload& workload, const Plan& plan) {
  fmt::print("{}: {}\n\n", workload.name, workload.summary);
  fmt::print("{:<24}{:<24}{:>14}{:>12}{:>16}\n", "layer", "kind", "output", "parameters",
             "forward FLOP");
  for (const Operation& op : plan.operations) {
    const std::size_t parameters = parameters_of(plan, op);
    fmt::print("{:<24}{:<24}{:>14}{:>12}{:>16.0f}\n", op.name, name_of(op.kind), op.out.text(),
               parameters ? std::to_string(parameters) : "", forward_flops(op));
  }
  const auto parameter_bytes = static_cast<double>(plan.parameter_count * size_of(plan.real));
  fmt::print("\nparameters           {} ({}; the all-reduce moves as much a step)\n",
             plan.parameter_count, format_bytes(parameter_bytes));
  fmt::print("FLOP a sample        {:.3g} in a training step\n", plan.flops_per_sample);
  fmt::print("activations          {} for a batch of {}\n",
             format_bytes(static_cast<double>(plan.activation_bytes)), plan.batch);
  fmt::print("data                 {}: {} training and {} test samples\n", workload.data_set,
             workload.train_samples, workload.test_samples);
  fmt::print("defaults             ");
  for (const auto& [name, value] : workload.defaults.values()) {
    fmt::print("{}={} ", name, to_text(value));
  }
  fmt::print("\n");
}

}  // namespace

void add_describe(CLI::App& app, Action& action) {
  CLI::App* verb = app.add_subcommand("describe", "Layers, shapes, parameters, FLOPs, memory");
  auto name = std::make_shared<std::string>();
  auto batch = std::make_shared<int>(0);
  auto json = std::make_shared<bool>(false);
  verb->add_option("workload", *name, "see: paceline list workloads")->required();
  verb->add_option("--batch-per-replica", *batch, "batch to plan memory for")
      ->check(CLI::Range(1, 1 << 20));
  verb->add_flag("--json", *json, "machine-readable");
  verb->footer("Example:\n  paceline describe mnist-cnn");
  verb->callback([name, batch, json, &action] {
    action = [name, batch, json] {
      const Workload workload = make_workload(*name);
      const int samples =
          *batch ? *batch : static_cast<int>(*workload.defaults.integer("batch_per_replica"));
      const Plan plan = make_plan(workload.network, samples, DType::f32, [](const Operation& op) {
        const bool plain = !op.fused();
        return plain ? Support::yes() : Support::no("described layer by layer");
      });
      if (*json) {
        fmt::print("{}\n", as_json(workload, plan).dump(2));
      } else {
        print_text(workload, plan);
      }
      return 0;
    };
  });
}

}  // namespace paceline
