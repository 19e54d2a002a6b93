#include "results/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "engine/core/text.h"

namespace paceline {

namespace {

// Kernels and firmware take unlike parts of equal memory for themselves.
constexpr double kSameMemory = 1.25;

std::string string_in(const Json& json, const char* pointer) {
  const Json::json_pointer path(pointer);
  return json.contains(path) && json.at(path).is_string()
             ? std::string(trim(json.at(path).get_ref<const std::string&>()))
             : "";
}

// Each kind once.
std::string gpus_of(const Json& record) {
  const auto gpus = record.find("gpus");
  if (gpus == record.end() || !gpus->is_array()) return "";
  std::vector<std::string> names;
  for (const Json& gpu : *gpus) {
    if (!gpu.is_object() || !gpu.contains("name") || !gpu["name"].is_string()) continue;
    const auto& name = gpu["name"].get_ref<const std::string&>();
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return join(names, " and ");
}

bool is_or_may_be(const std::string& a, const std::string& b) {
  return a.empty() || b.empty() || a == b;
}

int facts_in(const Machine& machine) {
  return int{!machine.cpu_model.empty()} + int{!machine.gpu.empty()} + int{machine.cpus > 0} +
         int{machine.memory_bytes > 0};
}

}  // namespace

std::string Machine::text() const {
  std::vector<std::string> parts;
  if (!cpu_model.empty()) parts.push_back(cpu_model);
  if (cpus > 0) parts.push_back(fmt::format("{} CPU{}", cpus, cpus == 1 ? "" : "s"));
  if (memory_bytes > 0) parts.push_back(fmt::format("{:.0f} GB", memory_bytes / 1e9));
  if (!gpu.empty()) parts.push_back(gpu);
  return parts.empty() ? "an unknown machine" : join(parts, ", ");
}

Machine machine_of(const Record& record) {
  Machine machine;
  machine.cpu_model = string_in(record.json(), "/provenance/cpu_model");
  machine.gpu = gpus_of(record.json());
  const auto whole = record.number("/provenance/machine/cpus");
  if (whole && *whole >= 1 && *whole < 1e6) machine.cpus = static_cast<int>(*whole);
  machine.memory_bytes =
      std::max(0.0, record.number("/provenance/machine/memory_bytes").value_or(0));
  return machine;
}

bool alike(const Machine& a, const Machine& b) {
  if (!is_or_may_be(a.cpu_model, b.cpu_model) || !is_or_may_be(a.gpu, b.gpu)) return false;
  if (a.cpus > 0 && b.cpus > 0 && a.cpus != b.cpus) return false;
  if (!(a.memory_bytes > 0 && b.memory_bytes > 0)) return true;
  return std::abs(std::log(a.memory_bytes / b.memory_bytes)) < std::log(kSameMemory);
}

std::vector<Machine> kinds_of_machines(std::vector<Machine> machines) {
  std::stable_sort(machines.begin(), machines.end(),
                   [](const Machine& a, const Machine& b) { return facts_in(a) > facts_in(b); });
  std::vector<Machine> unlike;
  for (const Machine& machine : machines) {
    const bool is_new = machine.is_known() &&
                        std::none_of(unlike.begin(), unlike.end(),
                                     [&](const Machine& known) { return alike(known, machine); });
    if (is_new) unlike.push_back(machine);
  }
  return unlike;
}

std::vector<std::string> not_counted_lines(const std::vector<std::string>& machines) {
  std::map<std::string, std::size_t> runs;
  for (const std::string& machine : machines) {
    if (!machine.empty()) ++runs[machine];
  }
  std::vector<std::string> lines;
  for (const auto& [machine, count] : runs) {
    lines.push_back(
        count == 1
            ? fmt::format("1 run of another machine ({}) is not counted", machine)
            : fmt::format("{} runs of another machine ({}) are not counted", count, machine));
  }
  return lines;
}

}  // namespace paceline
