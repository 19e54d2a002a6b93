// A study as large as they come, as a cluster's jobs leave it: a spec of many points, its records,
// its plan and its journal.
#pragma once

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/core/json.h"
#include "results/expected_runs.h"
#include "slurm/journal.h"
#include "sweeps/expansion.h"
#include "sweeps/inventory.h"
#include "tests/unit/results/sample_record.h"

namespace paceline {
inline namespace testing {

constexpr int kRepeatsOfLarge = 5;

// Four sizes, two numbers of CPUs, backend null among the backends, and as many bucket sizes as it
// takes for so many runs of five repeats each.
inline Spec spec_of_large(int runs) {
  std::string buckets;
  for (int i = 1; i * 40 * kRepeatsOfLarge <= runs || i == 1; ++i) {
    buckets += (i > 1 ? "," : "") + std::to_string(i);
  }
  return parse_spec("large.json", R"({"name": "large", "workload": "mnist-mlp", "repeats": 5,
    "fixed": {"device": "cpu", "epochs": 2, "bucket_mb": 8},
    "axes": {"seed": [1], "cpus_per_replica": [1, 2], "gpus": [1, 2, 4, 8],
             "backend": ["mpi", "gloo", "mpi+bf16", "gloo+bf16", "null"],
             "batch_per_replica": [64], "last_bucket_mb": [)" +
                                      buckets + "]}}");
}

// With what a real record holds beside what a report needs: 4 to 6 KB.
inline Json record_of_large(const PlannedPoint& planned, int repeat) {
  const Layout& layout = planned.layout;
  const double fit = 20.0 / layout.gpus / layout.cpus_per_replica * (1 + 0.001 * repeat) *
                     (planned.parameters.text("backend") == "null" ? 0.9 : 1);
  Json json = sample_record({.gpus = layout.gpus,
                             .cpus_per_replica = layout.cpus_per_replica,
                             .repeat = repeat,
                             .fit_seconds = fit});
  json["study"] = "large";
  json["point"] = planned.point.text();
  json["identity"] = "id " + planned.point.text();
  json["parameters"] = {{"workload", "mnist-mlp"}};
  for (const auto& [name, value] : planned.parameters.values()) {
    json["parameters"][name] = std::visit([](const auto& v) { return Json(v); }, value);
  }
  const std::string flags(300, 'f');
  json["provenance"]["compiler_flags"] = flags;
  json["provenance"]["command"] = "paceline train mnist-mlp --data=" + flags;
  json["provenance"]["data_hash"] = "data";
  json["provenance"]["implementations"] = std::vector<std::string>(20, flags.substr(0, 60));
  json["timing"]["epoch_seconds"] = std::vector<double>(2, fit / 2);
  return json;
}

// About `runs` runs; returns how many.
inline std::size_t write_large_study(const std::filesystem::path& study, int runs) {
  const Spec spec = spec_of_large(runs);
  const std::vector<PlannedPoint> points = expand(spec, 16, Unbuilt::keep).points;
  ExpectedRuns wanted{spec.name, spec.workload, spec.repeats, {}};
  std::map<std::string, std::pair<JobArray, std::vector<Element>>> arrays;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const PlannedPoint& planned = points[i];
    wanted.points.push_back(planned.parameters);
    const std::filesystem::path folder = study / planned.point.folder();
    std::filesystem::create_directories(folder);
    const JobShape shape = make_shape(planned.layout);
    auto& [array, elements] = arrays[shape.name()];
    array.name = shape.name();
    array.shape = shape;
    array.need.minutes = 5;
    for (int repeat = 1; repeat <= spec.repeats; ++repeat) {
      std::ofstream(folder / (std::to_string(repeat) + ".1.json"))
          << record_of_large(planned, repeat).dump() << '\n';
      array.runs.push_back({i, repeat});
      elements.push_back({spec.name, spec.workload, planned.point.text(), planned.point.folder(),
                          planned.parameters, repeat, "id " + planned.point.text(), "data"});
    }
  }
  write_expected_runs(study, wanted);
  Journal journal(study);
  std::int64_t job = 0;
  for (const auto& [name, array] : arrays) {
    journal.planned("s1", array.first, array.second);
    journal.sending("s1", name);
    journal.sent("s1", name, ++job);
  }
  return points.size() * static_cast<std::size_t>(spec.repeats);
}

}  // namespace testing
}  // namespace paceline
