// Kernels as nvcc writes them (PTX: text, one instruction a line), decoded for machine.h to run.
//
// Each operand of an instruction is a *slot* of a thread's file of 64-bit values: a register, a
// special register, or a constant. A value narrower than 64 bits is the slot's lower part.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace paceline::ptx {

struct PtxThread;
struct PtxInstruction;
using PtxStep = void (*)(PtxThread&, const PtxInstruction&);

struct PtxInstruction {
  PtxStep step = nullptr;
  std::array<std::uint32_t, 4> to{};    // slots that are written
  std::array<std::uint32_t, 5> from{};  // that are read; of loads and stores first the address
  std::uint32_t parts = 1;              // elements of a vector
  std::int32_t offset = 0;              // added to the address
  std::uint32_t guard = 0;              // runs only if this slot is `guard_is`; 0: always
  bool guard_is = true;
  std::uint32_t target = 0;  // of a branch: an index of Kernel::code
  std::uint32_t line = 0;
  std::uint32_t name = 0;  // index of PtxModule's names
};

struct PtxKernel {
  enum Special : std::uint32_t { none, thread, threads, block, blocks, first_free };

  std::string name;
  std::vector<PtxInstruction> code;
  std::size_t slots = first_free;
  std::vector<std::pair<std::uint32_t, std::uint64_t>> constants;  // slots that a thread finds set
  std::size_t parameter_bytes = 0, local_bytes = 0;
  bool waits = false;  // has barriers
};

class PtxModule {
 public:
  // Throws input where it is not PTX. An instruction that is not known is an error only if it is
  // run.
  explicit PtxModule(std::string_view text);

  // By the type of the parameters, as "paceline::cuda::NormApply<float>", or by an entry's plain
  // name. Null: there is none.
  const PtxKernel* find(const std::string& name) const;
  const std::map<std::string, PtxKernel>& kernels() const { return kernels_; }
  const std::string& to_string(const PtxInstruction& i) const { return names_[i.name]; }

 private:
  friend class PtxReader;
  std::map<std::string, PtxKernel> kernels_;
  std::vector<std::string> names_;
};

// What the instruction of this name does, as "add.s32" or "ld.global.v4.f32"; null: not known.
PtxStep next_step(const std::string& instruction);

// Demangled; of an entry the type of its parameters.
std::string readable_name(const char* mangled);

}  // namespace paceline::ptx
