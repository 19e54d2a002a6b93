#include "tests/bench/fma_bound.h"

#include <cstdlib>

namespace paceline::bench {

namespace {

constexpr std::size_t kRounds = 10000;  // tens of microseconds

const cpu::Kernels& chosen_kernels() {
  const char* wanted = std::getenv("PACELINE_ISA");
  return cpu::kernels_for(wanted ? wanted : "");
}

}  // namespace

FmaBound::FmaBound() : kernels_(chosen_kernels()) {}

double FmaBound::run() {
  return kernels_.multiply_add(kRounds);
}

}  // namespace paceline::bench
