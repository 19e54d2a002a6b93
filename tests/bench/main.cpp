#include "tests/bench/main.h"

#include <benchmark/benchmark.h>

#include <cstdio>
#include <exception>

#include "engine/core/error.h"

int main(int argc, char** argv) {
  using paceline::ErrorKind;
  try {
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) {
      return paceline::exit_code(ErrorKind::usage);
    }
    paceline::bench::register_benchmarks();
    if (benchmark::RunSpecifiedBenchmarks() == 0) {
      throw paceline::Error(ErrorKind::usage, "no benchmark has such a name", "--benchmark_filter",
                            "see --benchmark_list_tests");
    }
    benchmark::Shutdown();
    return 0;
  } catch (const paceline::Error& error) {
    std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
    return paceline::exit_code(error.kind());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
    return paceline::exit_code(ErrorKind::internal);
  }
}
