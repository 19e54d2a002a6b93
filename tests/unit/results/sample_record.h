// A measured record as the trainer leaves it, for tests to bend.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "engine/core/json.h"
#include "tests/support/scratch.h"

namespace paceline {
inline namespace testing {

struct SampleRun {
  int gpus = 1, cpus_per_replica = 1, repeat = 1;
  int round = 0;  // if another one than the repeat
  double fit_seconds = 10;
  std::string backend = "mpi", session = "s1";
};

inline Json sample_record(const SampleRun& run = {}) {
  const int cpus_per_task = run.cpus_per_replica * (run.backend == "mirrored" ? run.gpus : 1);
  const double step = run.fit_seconds * 0.9;
  Json phases = Json::array();
  for (int rank = 0; rank < run.gpus; ++rank) {
    phases.push_back({{"input", step * 0.02},
                      {"forward", step * 0.4},
                      {"backward", step * 0.4},
                      {"communication", step * 0.08},
                      {"update", step * 0.1},
                      {"other", 0.0},
                      {"step", step},
                      {"communication_hidden", 0.1}});
  }
  return {
      {"schema", 3},
      {"kind", "measured"},
      {"study", "quick"},
      {"point", "gpus=" + std::to_string(run.gpus) +
                    ",cpus_per_task=" + std::to_string(cpus_per_task) + ",backend=" + run.backend},
      {"repeat", run.repeat},
      {"attempt", 1},
      {"session", run.session},
      {"round", run.round != 0 ? run.round : run.repeat},
      {"status", "completed"},
      {"reason", ""},
      {"parameters",
       {{"workload", "mnist-cnn"},
        {"gpus", run.gpus},
        {"cpus_per_task", cpus_per_task},
        {"backend", run.backend},
        {"precision", "fp32"},
        {"batch_per_replica", 64},
        {"epochs", 2},
        {"learning_rate", 0.001}}},
      {"identity", "0123456789abcdef"},
      {"layout",
       {{"nodes", 1},
        {"ntasks", run.backend == "mirrored" ? 1 : run.gpus},
        {"cpus_per_task", cpus_per_task},
        {"gpus", run.gpus},
        {"cpus_per_replica", run.cpus_per_replica},
        {"replicas_are", "cores"}}},
      {"provenance",
       {{"version", "0.1.0"}, {"commit", "abc"}, {"dirty", false}, {"cpu_model", "A CPU"}}},
      {"timing",
       {{"fit_seconds", run.fit_seconds},
        {"first_epoch_seconds", run.fit_seconds * 0.55},
        {"compile_seconds", run.fit_seconds * 0.001},
        {"warmup_steps_excluded", 10},
        {"step_seconds", Json::array({{{"p50", 0.005}}})}}},
      {"throughput",
       {{"samples_per_second", 120000 / run.fit_seconds},
        {"warmup_steps_excluded", 10},
        {"samples", 120000},
        {"steps", 1876 / run.gpus}}},
      {"phases", phases},
      {"quality", {{"test_accuracy", 0.984}}},
      {"flags", {{"resumed", false}, {"oversubscribed", false}, {"synthetic", false}}},
  };
}

using TemporaryFolder = Scratch;

}  // namespace testing
}  // namespace paceline
