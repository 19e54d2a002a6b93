// paceline describe WORKLOAD: layers, shapes, parameters, FLOPs and memory.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/study_options.h"
#include "cli/verb.h"
#include "engine/core/error.h"
#include "engine/core/json.h"
#include "engine/core/output.h"
#include "engine/core/text.h"
#include "engine/device/device.h"
#include "engine/plan/plan.h"
#include "engine/train/outcome.h"
#include "run/resolve.h"
#include "run/training_run.h"

namespace paceline {

namespace {

struct DescribeOptions {
  std::string workload, variant, precision = "fp32";
  int batch = 0;
  bool json = false;
};

// The network layer by layer, and what a replica on the cpu device takes in memory: there some
// layers are one operation.
struct Description {
  Workload workload;
  Plan layers;
  MemoryUse memory;
};

Point make_parameters(const DescribeOptions& options) {
  Point parameters;
  if (!options.variant.empty()) {
    parameters.set("variant", parsed_value("variant", options.variant, "--variant"));
  }
  return parameters;
}

DType plane_type(const std::string& precision) {
  if (precision == "bf16") return DType::bf16;
  return precision == "fp16" ? DType::f16 : DType::f32;
}

Description describe(const DescribeOptions& options) {
  Description description{make_workload(options.workload), {}, {}};
  const Workload& workload = description.workload;
  const Network network = make_network(workload, make_network_config(make_parameters(options)));
  const int batch = options.batch
                        ? options.batch
                        : static_cast<int>(*workload.defaults.integer("batch_per_replica"));
  Point parameters = make_parameters(options);
  parameters.set("batch_per_replica", std::int64_t{batch});
  parameters.set("precision", options.precision);
  description.memory = planned_memory(workload, parameters);
  const Precision precision{options.precision == "fp64" ? DType::f64 : DType::f32,
                            plane_type(options.precision)};
  description.layers = make_plan(network, batch, precision, [](const Operation& op) {
    return op.fused() ? Support::no("described layer by layer") : Support::yes();
  });
  return description;
}

std::size_t count_elements(const std::vector<ParameterInfo>& arrays,
                           std::initializer_list<int> of) {
  std::size_t count = 0;
  for (const int index : of) {
    if (index != kNone) count += arrays[static_cast<std::size_t>(index)].elements;
  }
  return count;
}

std::size_t count_parameters(const Plan& plan, const Operation& op) {
  return count_elements(plan.parameters, {op.weight, op.bias});
}

std::size_t count_statistics(const Plan& plan) {
  std::size_t count = 0;
  for (const ParameterInfo& info : plan.statistics) count += info.elements;
  return count;
}

Json as_json(const Description& description) {
  const Workload& workload = description.workload;
  const Plan& plan = description.layers;
  const MemoryUse& memory = description.memory;
  Json layers = Json::array();
  for (const Operation& op : plan.operations) {
    layers.push_back({{"name", op.name},
                      {"kind", to_string(op.kind)},
                      {"output", op.out.text()},
                      {"parameters", count_parameters(plan, op)},
                      {"statistics", count_elements(plan.statistics, {op.mean, op.variance})},
                      {"forward_flops", forward_flops(op)},
                      {"backward_flops", backward_flops(op)}});
  }
  return {{"workload", workload.name},
          {"summary", workload.summary},
          {"batch_per_replica", plan.batch},
          {"parameters", plan.parameter_count},
          {"statistics", count_statistics(plan)},
          {"gradient_bytes", plan.parameter_count * size_of(plan.real)},
          {"flops_per_sample", plan.flops_per_sample},
          {"activation_bytes", memory.activations},
          {"memory_bytes",
           {{"activations", memory.activations},
            {"parameters", memory.parameters},
            {"gradients", memory.gradients},
            {"moments", memory.moments},
            {"statistics", memory.statistics},
            {"total", memory.total()}}},
          {"train_samples", workload.train_samples},
          {"test_samples", workload.test_samples},
          {"layers", layers}};
}

void print_layers(const Plan& plan) {
  print("{:<24}{:<24}{:>16}{:>12}{:>16}\n", "layer", "kind", "output", "parameters",
        "forward FLOP");
  for (const Operation& op : plan.operations) {
    const std::size_t parameters = count_parameters(plan, op);
    print("{:<24}{:<24}{:>16}{:>12}{:>16.0f}\n", op.name, to_string(op.kind), op.out.text(),
          parameters ? std::to_string(parameters) : "", forward_flops(op));
  }
}

void print_description(const Description& description, const std::string& precision) {
  const Workload& workload = description.workload;
  const Plan& plan = description.layers;
  print("{}: {}\n\n", workload.name, workload.summary);
  print_layers(plan);
  const auto bytes = [](std::size_t count) { return format_bytes(static_cast<double>(count)); };
  print("\nparameters           {} ({}; the all-reduce moves as much a step)\n",
        plan.parameter_count, bytes(plan.parameter_count * size_of(plan.real)));
  if (!plan.statistics.empty()) {
    print("running averages     {} (not trained, a replica's own)\n", count_statistics(plan));
  }
  print("FLOP a sample        {:.3g} in a training step\n", plan.flops_per_sample);
  print_text(name_and_text("memory", 21,
                           fmt::format("{} ({}, batch {}, without the libraries' scratch)",
                                       description.memory.text(), precision, plan.batch)));
  print("data                 {}: {} training and {} test samples\n",
        workload.data_set.empty() ? "synthetic" : workload.data_set, workload.train_samples,
        workload.test_samples);
  std::string defaults;
  for (const auto& [name, value] : workload.defaults.values()) {
    defaults += fmt::format("{}={} ", name, to_text(value));
  }
  print_text(name_and_text("defaults", 21, defaults));
}

}  // namespace

void add_describe(CLI::App& app, Action& action) {
  CLI::App* verb = app.add_subcommand(
      "describe", "Show layers, shapes, parameters, FLOPs and memory of a workload");
  auto options = std::make_shared<DescribeOptions>();
  verb->add_option("workload", options->workload, "see: paceline list workloads")->required();
  verb->add_option("--batch-per-replica", options->batch, "batch size for the memory plan")
      ->check(CLI::Range(1, 1 << 20));
  verb->add_option("--precision", options->precision,
                   "precision for the memory plan; tf32 and fp16 are for GPUs")
      ->check(CLI::IsMember({"fp32", "tf32", "bf16", "fp16", "fp64"}));
  verb->add_option("--variant", options->variant, "variant of the network, where it has several")
      ->type_name("NAME");
  verb->add_flag("--json", options->json, "print JSON");
  verb->footer(
      "Examples:\n"
      "  paceline describe mnist-cnn\n"
      "  paceline describe resnet50-cassava --batch-per-replica 16 --precision bf16");
  verb->callback([options, &action] {
    action = [options] {
      const Description description = describe(*options);
      if (options->json) {
        print("{}\n", json_text(as_json(description), 2));
      } else {
        print_description(description, options->precision);
      }
      return 0;
    };
  });
}

}  // namespace paceline
