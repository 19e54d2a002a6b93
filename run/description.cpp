// Layers, shapes, parameters, FLOPs and memory of a workload.
#include <fmt/format.h>

#include <initializer_list>
#include <nlohmann/json.hpp>

#include "engine/core/json.h"
#include "engine/core/text.h"
#include "run/resolve.h"
#include "run/training_run.h"

namespace paceline {

namespace {

Point make_parameters(const DescriptionRequest& request) {
  Point parameters;
  if (!request.variant.empty()) {
    parameters.set("variant", parsed_value("variant", request.variant, "--variant"));
  }
  return parameters;
}

DType plane_type(const std::string& precision) {
  if (precision == "bf16") return DType::bf16;
  return precision == "fp16" ? DType::f16 : DType::f32;
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
  if (op.tied != kNone) return 0;  // counted where they are
  return count_elements(plan.parameters, {op.weight, op.bias});
}

std::string layers_text(const Plan& plan) {
  std::string text = fmt::format("{:<24}{:<24}{:>16}{:>12}{:>16}\n", "layer", "kind", "output",
                                 "parameters", "forward FLOP");
  for (const Operation& op : plan.operations) {
    const std::size_t parameters = count_parameters(plan, op);
    text +=
        fmt::format("{:<24}{:<24}{:>16}{:>12}{:>16.0f}\n", op.name, to_string(op.kind),
                    op.out.text(), parameters ? std::to_string(parameters) : "", forward_flops(op));
  }
  return text;
}

}  // namespace

WorkloadDescription describe_workload(const DescriptionRequest& request) {
  WorkloadDescription description{make_workload(request.workload), {}, {}, request.precision};
  const Workload& workload = description.workload;
  const Network network = make_network(workload, make_network_config(make_parameters(request)));
  const int batch = request.batch
                        ? request.batch
                        : static_cast<int>(*workload.defaults.integer("batch_per_replica"));
  Point parameters = make_parameters(request);
  parameters.set("batch_per_replica", std::int64_t{batch});
  parameters.set("precision", request.precision);
  description.memory = planned_memory(workload, parameters);
  const Precision precision{request.precision == "fp64" ? DType::f64 : DType::f32,
                            plane_type(request.precision)};
  description.layers = make_plan(network, batch, precision, [](const Operation& op) {
    return op.fused() ? Support::no("described layer by layer") : Support::yes();
  });
  return description;
}

Json WorkloadDescription::json() const {
  const Plan& plan = layers;
  Json rows = Json::array();
  for (const Operation& op : plan.operations) {
    rows.push_back({{"name", op.name},
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
          {"statistics", summed(plan.statistics, &ParameterInfo::elements)},
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
          {"layers", rows}};
}

std::string WorkloadDescription::text(std::size_t width) const {
  const Plan& plan = layers;
  std::string text = fmt::format("{}: {}\n\n", workload.name, workload.summary) + layers_text(plan);
  const auto bytes = [](std::size_t count) { return format_bytes(static_cast<double>(count)); };
  text += fmt::format("\nparameters           {} ({}; the all-reduce moves as much a step)\n",
                      plan.parameter_count, bytes(plan.parameter_count * size_of(plan.real)));
  if (!plan.statistics.empty()) {
    text += fmt::format("running averages     {} (not trained, a replica's own)\n",
                        summed(plan.statistics, &ParameterInfo::elements));
  }
  text += fmt::format("FLOP a sample        {:.3g} in a training step\n", plan.flops_per_sample);
  text += wrapped(fmt::format("{} ({}, batch {}, without the libraries' scratch)", memory.text(),
                              precision, plan.batch),
                  width, fmt::format("{:<21}", "memory"), 21);
  text += fmt::format("data                 {}: {} training and {} test samples\n",
                      workload.data_set.empty() ? "synthetic" : workload.data_set,
                      workload.train_samples, workload.test_samples);
  std::string defaults;
  for (const auto& [name, value] : workload.defaults.values()) {
    defaults += fmt::format("{}={} ", name, to_text(value));
  }
  text += wrapped(defaults, width, fmt::format("{:<21}", "defaults"), 21);
  return text;
}

}  // namespace paceline
