#include "results/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "engine/core/pattern.h"
#include "engine/core/text.h"
#include "results/run_record.h"
#include "results/store.h"

namespace paceline {

namespace {

// Kernels and firmware take unlike parts of equal memory for themselves.
constexpr double kSameMemory = 1.25;

// Each kind once.
std::string describe_gpus(const RunRecord& record) {
  std::vector<std::string> names = mapped(record.gpus, &GpuFacts::name);
  std::erase(names, "");
  return join(each_once(names), " and ");
}

bool is_or_may_be(const std::string& a, const std::string& b) {
  return a.empty() || b.empty() || a == b;
}

int facts_in(const Machine& machine) {
  return int{!machine.cpu_model.empty()} + int{!machine.gpu.empty()} + int{machine.cpus > 0} +
         int{machine.memory_bytes > 0};
}

// "Intel Xeon Platinum 8480+" of "Intel(R) Xeon(R) Platinum 8480+", "AMD EPYC 9654" of
// "AMD EPYC 9654 96-Core Processor".
std::string short_model(const std::string& model) {
  thread_local const Replacements shorten = {
      {R"(\((R|TM|tm)\)|\bCPU (?=\S)|\b(Processor|\d+-Core)\b|@ ?[0-9.]+ ?GHz)", ""}, {" +", " "}};
  return std::string(trim(shorten(model)));
}

// From the shortest.
std::vector<std::string> candidate_names(const Machine& machine) {
  Machine named = machine;
  named.cpu_model = short_model(machine.cpu_model);
  const Machine with_cpus{named.cpu_model, "", named.cpus, 0};
  const Machine with_memory{named.cpu_model, "", named.cpus, named.memory_bytes};
  return {machine.gpu, named.cpu_model, with_cpus.text(), with_memory.text(), machine.text()};
}

}  // namespace

std::string Machine::text() const {
  std::vector<std::string> parts;
  if (!cpu_model.empty()) parts.push_back(cpu_model);
  if (cpus > 0) parts.push_back(counted(cpus, "CPU"));
  if (memory_bytes > 0) parts.push_back(fmt::format("{:.0f} GB", memory_bytes / 1e9));
  if (!gpu.empty()) parts.push_back(gpu);
  return parts.empty() ? "an unknown machine" : join(parts, ", ");
}

Machine identify_machine(const Record& record) {
  Machine machine;
  machine.cpu_model = trim(record->provenance.cpu_model);
  machine.gpu = describe_gpus(*record);
  machine.cpus = record->provenance.machine.cpus.value_or(0);
  machine.memory_bytes = static_cast<double>(record->provenance.machine.memory_bytes.value_or(0));
  return machine;
}

bool alike(const Machine& a, const Machine& b) {
  if (!is_or_may_be(a.cpu_model, b.cpu_model) || !is_or_may_be(a.gpu, b.gpu)) return false;
  if (a.cpus > 0 && b.cpus > 0 && a.cpus != b.cpus) return false;
  if (!(a.memory_bytes > 0 && b.memory_bytes > 0)) return true;
  return std::abs(std::log(a.memory_bytes / b.memory_bytes)) < std::log(kSameMemory);
}

std::vector<Machine> kinds_of_machines(std::vector<Machine> machines) {
  std::ranges::stable_sort(machines, std::greater(), facts_in);
  std::vector<Machine> unlike;
  for (const Machine& machine : machines) {
    const auto is_it = [&](const Machine& known) { return alike(known, machine); };
    if (machine.is_known() && std::ranges::none_of(unlike, is_it)) unlike.push_back(machine);
  }
  return unlike;
}

std::vector<std::string> name_machines(const std::vector<Machine>& machines) {
  const std::vector<Machine> kinds = kinds_of_machines(machines);
  std::vector<std::string> names, result;
  for (std::size_t length = 0; length < candidate_names({}).size(); ++length) {
    names.clear();
    for (const Machine& kind : kinds) names.push_back(candidate_names(kind)[length]);
    const bool all_have = std::ranges::find(names, "") == names.end();
    if (all_have && each_once(names).size() == kinds.size()) break;
  }
  for (const Machine& machine : machines) {
    const auto kind = std::ranges::find_if(
        kinds, [&](const Machine& known) { return machine.is_known() && alike(known, machine); });
    const bool is_named = kinds.size() > 1 && kind != kinds.end();
    result.push_back(is_named ? names[static_cast<std::size_t>(kind - kinds.begin())] : "");
  }
  return result;
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
