#include <cstdio>

#include "cli/cpu_needs.h"

namespace paceline {

const unsigned kCpuNeeds = kSse42 | kAvx5124fmaps | kSve;

}  // namespace paceline

int main() {
  std::puts("it ran");
  return 0;
}
