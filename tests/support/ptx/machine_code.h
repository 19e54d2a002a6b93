// What ptxas makes of PTX, as it and nvdisasm tell it: sizes and loops of each kernel.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace paceline::ptx {

// A branch back and what it repeats. What stands in it aside, for other cases, counts too.
struct CodeLoop {
  int instructions = 0;
  int accesses = 0;  // of 16 bytes in global memory
};

struct KernelCode {
  int registers = 0, stack_bytes = 0, spill_bytes = 0;
  std::vector<CodeLoop> loops;

  // The shortest loop with this number of accesses; 0: there is none.
  int shortest_loop(int accesses) const;
};

using MachineCode = std::map<std::string, KernelCode>;  // by readable name

// From what "ptxas -v" prints.
void read_sizes(const std::string& printed, MachineCode& code);
// From what nvdisasm prints of the result.
void read_loops(const std::string& printed, MachineCode& code);

}  // namespace paceline::ptx
