// Energy by a meter that the test makes: a power of 100 W, as hwmon has it.
#include <nlohmann/json.hpp>

#include "engine/core/json.h"
#include "tests/integration/cli/paceline.h"

namespace paceline {
namespace {

class CliEnergy : public Cli {
 protected:
  void SetUp() override {
    expect_success(
        shell("mkdir -p root/sys/class/hwmon/hwmon1/device && "
              "cd root/sys/class/hwmon/hwmon1/device && "
              "echo 'Grace Power Socket 0' > power1_oem_info && "
              "echo 1 > power1_average_interval && echo 100000000 > power1_average"));
  }
  Ran metered(const std::string& line) const {
    return shell("export PACELINE_METER_ROOT=$PWD/root; paceline " + line);
  }
  Json collect_energy(const std::string& arguments) const {
    const Json record = Json::parse(
        expect_success(metered("train mnist-mlp --cpus-per-task 1 --json " + arguments)).out);
    return record.contains("energy") ? record["energy"] : Json::object();
  }
};

TEST_F(CliEnergy, OfTrainingEvaluationAndIdle) {
  const Json energy = collect_energy("--epochs 2 --train-limit 19200");
  EXPECT_EQ(energy["covers"], "CPUs");
  const double seconds = energy["seconds"];
  EXPECT_NEAR(energy["joules"], 100 * seconds, 0.001 * 100 * seconds);
  EXPECT_EQ(energy["idle_watts"], 100);
  EXPECT_EQ(energy["checkpoint_joules"], 0);
  EXPECT_EQ(energy["meters"].size(), 1U);
  EXPECT_EQ(energy["meters"][0]["sampled"], true);
}

// A node is counted once, by its first process.
TEST_F(CliEnergy, OfANodeOnce) {
  const Json energy =
      collect_energy("--gpus 2 --backend ring --oversubscribe --epochs 2 --train-limit 19200");
  EXPECT_NEAR(energy["joules"], 100 * energy["seconds"].get<double>(), 1);
  EXPECT_EQ(energy["meters"][0]["counters"], 1);
}

TEST_F(CliEnergy, AShortRunHasNoFigureButAReason) {
  expect_success(shell("echo 1000 > root/sys/class/hwmon/hwmon1/device/power1_average_interval"));
  const Json energy = collect_energy("--steps 20 --evaluate none");
  EXPECT_FALSE(energy.contains("joules"));
  EXPECT_TRUE(contains(energy["trouble"], "too short: it takes 100 s")) << energy;
}

TEST_F(CliEnergy, AStudyHasColumnsAndALeast) {
  expect_success(
      shell("echo '{\"name\": \"s\", \"workload\": \"mnist-mlp\", \"repeats\": 2, "
            "\"axes\": {\"batch_per_replica\": [64, 256]}, "
            "\"fixed\": {\"epochs\": 2, \"train_limit\": 19200, \"cpus_per_task\": 1, "
            "\"evaluate\": \"none\"}}' > s.json"));
  expect_success(metered("sweep s.json"));
  expect_parts(shell("paceline report results/local/s --columns energy").out, {"energy", "100"});
  const Ran best = shell("paceline best results/local/s --least energy --within 900%");
  EXPECT_TRUE(contains(best.out, "the point of least energy")) << best.out << best.err;
  expect_refused("best results/local/s --least gpu-hours", 65, {"core-hours"});
  expect_refused("best results/local/s --least watts", 64, {"--least", "energy, edp"});
}

TEST_F(CliEnergy, OfAUsersOwnProgram) {
  expect_success(
      shell("echo '{\"name\": \"own\", \"workload\": \"command\", \"repeats\": 1, "
            "\"axes\": {\"gpus\": [1]}, \"command\": [\"sleep\", \"1.5\"]}' > own.json"));
  expect_success(metered("sweep own.json"));
  const Ran report = shell("paceline report results/local/own --json");
  const Json row = Json::parse(report.out).at("tables").at(0).at("rows").at(0);
  const Json energy = Json::parse(shell("cat results/local/own/gpus=1/*.json").out).at("energy");
  const double seconds = energy.at("seconds");  // more than the program's on a loaded machine
  EXPECT_GT(seconds, 0.98 * row.at("fit_seconds").get<double>()) << report.out;
  EXPECT_NEAR(row.at("energy_joules"), 100 * seconds, 1) << report.out;
}

TEST_F(CliEnergy, TheDoctorNamesTheMeters) {
  EXPECT_TRUE(contains(metered("doctor").out, "hwmon, 100 W now"));
  ASSERT_EQ(shell("rm -r root; mkdir root").code, 0);
  EXPECT_TRUE(contains(metered("doctor").out, "no counter: no RAPL, no Cray pm_counters"));
}

}  // namespace
}  // namespace paceline
