#pragma once

namespace paceline::bench {

// What a program measures; each bench_*.cpp defines it.
void register_benchmarks();

}  // namespace paceline::bench
