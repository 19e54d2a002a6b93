// What a report of many records costs: read, compared, rendered; with and without its files.
#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "analysis/report.h"
#include "tests/bench/main.h"
#include "tests/unit/results/sample_record.h"

namespace paceline::bench {

namespace {

namespace fs = std::filesystem;
using paceline::testing::sample_record;

constexpr int kRepeats = 25;

// Points of 1 to 16 replicas, four numbers of CPUs and as many bucket sizes as it takes, with the
// text of provenance that real records have: about 6 KB each.
void write_study(const fs::path& study, int records) {
  const std::string flags(600, 'f');
  for (int point = 0; point * kRepeats < records; ++point) {
    const int gpus = 1 << (point % 5), cpus = 1 << (point / 5 % 4), bucket = 1 + point / 20;
    const fs::path folder = study / ("point" + std::to_string(point));
    fs::create_directories(folder);
    for (int repeat = 1; repeat <= kRepeats; ++repeat) {
      Json json = sample_record({.gpus = gpus,
                                 .cpus_per_replica = cpus,
                                 .repeat = repeat,
                                 .fit_seconds = 20.0 / gpus + 0.001 * repeat});
      json["point"] = folder.filename().string();
      json["parameters"]["bucket_mb"] = bucket;
      json["provenance"]["compiler_flags"] = flags;
      json["provenance"]["command"] = "paceline train mnist-cnn --data=" + flags;
      json["provenance"]["implementations"] = std::vector<std::string>(20, flags.substr(0, 60));
      json["timing"]["epoch_seconds"] = std::vector<double>(15, 1.25);
      std::ofstream(folder / (std::to_string(repeat) + ".1.json")) << json.dump();
    }
  }
}

double peak_megabytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

void report(benchmark::State& state, bool with_files) {
  const paceline::Scratch folder;
  write_study(folder / "study", static_cast<int>(state.range(0)));
  ReportOptions options;
  options.format = Format::csv;
  if (with_files) options.out = folder / "report";
  if (!with_files) options.plots.clear();
  for (auto _ : state) {
    std::ostringstream stream;
    write_report({folder / "study"}, options, stream);
    benchmark::DoNotOptimize(stream.str().size());
  }
  state.counters["peak_MB"] = peak_megabytes();
  state.counters["records_per_second"] = benchmark::Counter(
      static_cast<double>(state.range(0)), benchmark::Counter::kIsIterationInvariantRate);
}

}  // namespace

void register_benchmarks() {
  for (const bool with_files : {false, true}) {
    benchmark::RegisterBenchmark(
        with_files ? "report_with_files" : "report",
        [with_files](benchmark::State& state) { report(state, with_files); })
        ->Arg(100)
        ->Arg(1000)
        ->Arg(10000)
        ->Unit(benchmark::kMillisecond);
  }
}

}  // namespace paceline::bench
