// Has it got much slower? Each speed is held against a limit measured in the same run, never
// against a time, so that this passes on any machine, however fast. The bounds lie at about half of
// what a quiet machine shows, the slower of AMD's and Intel's CPUs: a kernel that is lost, a copy
// too many and a lock in the way are found here; `paceline gate --ab` finds the per cents.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "engine/device/cpu/kernels.h"
#include "results/names.h"
#include "tests/integration/cli/paceline.h"

namespace paceline {
namespace {

using nlohmann::json;

class Ratios : public Cli {
 protected:
  // The best of a few tries: what else a machine does only ever makes it slower.
  static void expect_at_least(double bound, const std::string& what,
                              const std::function<double()>& ratio) {
    constexpr int kTries = 3;
    double best = 0;
    for (int i = 0; i < kTries && best < bound; ++i) best = std::max(best, ratio());
    EXPECT_GE(best, bound) << what;
    RecordProperty(what, std::to_string(best));
  }

  json make_record(const std::string& arguments) const {
    succeed(arguments + " --quiet --record run.json");
    const json record = json::parse(file_text(folder() / "run.json"));
    std::filesystem::remove(folder() / "run.json");
    std::filesystem::remove(folder() / "run.steps.gz");
    return record;
  }

  json training(const std::string& workload, const std::string& more) const {
    return make_record("train " + workload +
                       " --input synthetic --weights none --evaluate none --cpus-per-replica 1 " +
                       more);
  }

  static double median_step(const json& record) {
    return record["timing"]["step_seconds"][0]["p50"].get<double>();
  }

  // Of what the probe's multiply-adds reach on the same thread.
  static double share_of_peak(const json& record) {
    const double flops = record["plan"]["flops_per_sample"].get<double>() *
                         record["parameters"]["batch_per_replica"].get<double>();
    return flops / median_step(record) / record["probe"]["flops_per_second"].get<double>();
  }
};

TEST_F(Ratios, AStepOfTheMlpComputes) {
  expect_at_least(0.25, "share of the FMA peak",
                  [this] { return share_of_peak(training("mnist-mlp", "--gpus 1 --steps 400")); });
}

// Vectors have half the lanes from one set to the next. Where loops had vectors wider than the
// CPU's, a step took nine times as long with AVX2.
TEST_F(Ratios, AStepTakesAFewTimesAsLongWithTheNextInstructionSet) {
  const auto step = [this](std::string_view isa) {
    setenv("PACELINE_ISA", std::string(isa).c_str(), 1);
    const double seconds = median_step(training("mnist-cnn", "--gpus 1 --steps 50"));
    unsetenv("PACELINE_ISA");
    return seconds;
  };
  const std::vector<std::string_view> sets = cpu::instruction_sets_here();
  for (std::size_t i = 1; i < sets.size(); ++i) {
    expect_at_least(0.3, fmt::format("a step with {} against one with {}", sets[i - 1], sets[i]),
                    [&] { return step(sets[i - 1]) / step(sets[i]); });
  }
}

TEST_F(Ratios, AStepOfAResidualNetworkComputes) {
  expect_at_least(0.11, "share of the FMA peak", [this] {
    return share_of_peak(training("resnet50-cifar10", "--gpus 1 --steps 13"));
  });
}

// What a CPU multiplies in bf16 follows from its kind; the run says which way it took.
struct Bf16Way {
  const char* text;            // in the description of the device
  double least_rate;           // of the probe's multiply-adds, fp32's being 1
  double least_speed_of_step;  // likewise
};
constexpr Bf16Way kBf16Ways[] = {
    {"bf16 by AMX", 4, 1}, {"bf16 by pairs", 1.4, 1}, {"bf16 widened to fp32", 0.8, 0.8}};

TEST_F(Ratios, AStepInBf16IsNotSlowerThanInFp32) {
  const auto run = [this](const std::string& workload, const std::string& precision) {
    return training(workload, "--gpus 1 --steps 9 --precision " + precision);
  };
  if (!contains(file_text("/proc/cpuinfo"), "avx512dq")) GTEST_SKIP() << "this CPU has no AVX-512";
  const std::string libraries = run("gpt-tiny", "bf16")["provenance"]["libraries"];
  const auto way = std::find_if(std::begin(kBf16Ways), std::end(kBf16Ways),
                                [&](const Bf16Way& row) { return contains(libraries, row.text); });
  ASSERT_NE(way, std::end(kBf16Ways)) << libraries;
  const auto rate = [&](const char* precision) {
    return run("gpt-tiny", precision)["probe"]["flops_per_second"].get<double>();
  };
  expect_at_least(way->least_rate, "multiply-adds in bf16 against fp32",
                  [&] { return rate("bf16") / rate("fp32"); });
  const auto step = [&](const char* precision) {
    return median_step(run("resnet50-cifar10", precision));
  };
  expect_at_least(way->least_speed_of_step, "a step in fp32 against one in bf16",
                  [&] { return step("fp32") / step("bf16"); });
}

TEST_F(Ratios, TwoReplicasAreAsFastAsThoseThatDoNotSum) {
  const std::map<std::string, double> bounds = {
      {"mirrored", 0.55}, {"ring", 0.5}, {"mpi-ring", 0.5}};
  for (const auto& [name, bound] : bounds) {
    const std::string backend = name;
    if (!find_name("backend", backend).built) continue;
    expect_at_least(bound, backend + " against null", [&] {
      const std::string options = "--gpus 2 --steps 400 --oversubscribe --backend ";
      return median_step(training("mnist-mlp", options + "null")) /
             median_step(training("mnist-mlp", options + backend));
    });
  }
}

// A helper thread that had to be scheduled for each message made this 0.26 where replicas have one
// core.
TEST_F(Ratios, TwoReplicasWithoutMpiWaitForNoScheduler) {
  expect_at_least(0.55, "a step of one replica against one of two by ring", [&] {
    const std::string options = "--cpus-per-task 1 --steps 200 --oversubscribe ";
    return median_step(training("mnist-cnn", options + "--gpus 1")) /
           median_step(training("mnist-cnn", options + "--gpus 2 --backend ring"));
  });
}

TEST_F(Ratios, AnAllReduceOfThreadsKeepsUpWithCopying) {
  expect_at_least(0.8, "memcpy against all-reduce", [this] {
    const json row = make_record(
        "bench allreduce --gpus 2 --backends mirrored --oversubscribe --sizes 16M")["collective"]
                                                                                   ["rows"][0];
    return row["memcpy_seconds"].get<double>() / row["seconds"].get<double>();
  });
}

}  // namespace
}  // namespace paceline
