#include "tests/support/ptx/machine_code.h"

#include <sstream>

#include "tests/support/ptx/module.h"

namespace paceline::ptx {

namespace {

// What stands between two texts; empty: they are not there.
std::string between(const std::string& text, const std::string& begin, const std::string& end) {
  const auto from = text.find(begin);
  if (from == std::string::npos) return "";
  const auto first = from + begin.size(), last = text.find(end, first);
  return last == std::string::npos ? "" : text.substr(first, last - first);
}

// Instructions of a kernel, and where its labels stand.
struct Listing {
  std::vector<std::string> instructions;
  std::map<std::string, std::size_t> labels;

  std::vector<CodeLoop> loops() const {
    std::vector<CodeLoop> found;
    for (std::size_t i = 0; i < instructions.size(); ++i) {
      if (instructions[i].find("BRA") == std::string::npos) continue;
      const auto label = labels.find(between(instructions[i], "`(", ")"));
      if (label == labels.end() || label->second >= i) continue;  // the last branches to itself
      CodeLoop loop{static_cast<int>(i - label->second) + 1, 0};
      for (std::size_t k = label->second; k < i; ++k) {
        loop.accesses += instructions[k].find("LDG.E.128") != std::string::npos ||
                         instructions[k].find("STG.E.128") != std::string::npos;
      }
      found.push_back(loop);
    }
    return found;
  }
};

}  // namespace

int KernelCode::shortest_loop(int accesses) const {
  int shortest = 0;
  for (const CodeLoop& loop : loops) {
    if (loop.accesses != accesses) continue;
    if (shortest == 0 || loop.instructions < shortest) shortest = loop.instructions;
  }
  return shortest;
}

void read_sizes(const std::string& printed, MachineCode& code) {
  std::istringstream lines(printed);
  KernelCode* kernel = nullptr;
  for (std::string line; std::getline(lines, line);) {
    const std::string name = between(line, "Compiling entry function '", "'");
    if (!name.empty()) kernel = &code[readable_name(name.c_str())];
    if (!kernel) continue;
    int stack = 0, stores = 0, loads = 0;
    if (std::sscanf(line.c_str(),
                    " %d bytes stack frame, %d bytes spill stores, %d bytes spill loads", &stack,
                    &stores, &loads) == 3) {
      kernel->stack_bytes = stack;
      kernel->spill_bytes = stores + loads;
    }
    const std::string registers = between(line, "Used ", " registers");
    if (!registers.empty()) kernel->registers = std::stoi(registers);
  }
}

void read_loops(const std::string& printed, MachineCode& code) {
  std::istringstream lines(printed);
  std::map<std::string, Listing> listings;
  Listing* listing = nullptr;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(".text.") && line.ends_with(":")) {
      listing = &listings[readable_name(line.substr(6, line.size() - 7).c_str())];
    } else if (listing && line.starts_with(".L_x_") && line.ends_with(":")) {
      listing->labels[line.substr(0, line.size() - 1)] = listing->instructions.size();
    } else if (const std::string text = between(line, "*/", ";"); listing && !text.empty()) {
      listing->instructions.push_back(text);
    }
  }
  for (const auto& [name, found] : listings) code[name].loops = found.loops();
}

}  // namespace paceline::ptx
