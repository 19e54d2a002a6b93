// paceline doctor, as a user runs it.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "engine/core/json.h"
#include "engine/launch/program.h"
#include "tests/support/expect_parts.h"

namespace paceline {
namespace {

struct Result {
  std::string output;
  int code = -1;
};

// The exit code is the last line.
Result doctor(const std::string& assignments, const std::string& options) {
  const std::string output = capture_output(
      {"/bin/sh", "-c",
       "COLUMNS=300 " + assignments + " " PACELINE_BINARY " doctor " + options + "; echo $?"},
      60);
  const std::size_t last = output.rfind('\n', output.size() - 2);
  const std::size_t begin = last == std::string::npos ? 0 : last + 1;
  return {output.substr(0, begin), std::atoi(output.c_str() + begin)};
}

TEST(Doctor, ReportsMachineBackendsAndTools) {
  const Result run = doctor("", "");
  EXPECT_EQ(run.code, 0) << run.output;
  expect_parts(run.output, {"affinity mask ", "NUMA nodes", "memory", "network", "free in /dev/shm",
                            "none: ranks are started by paceline", "mirrored", "mnist-cnn"});
}

TEST(Doctor, JsonHoldsTheSame) {
  const JsonDocument document("doctor --json", doctor("", "--json").output);
  const Json& json = document.value();
  for (const char* section : {"build", "machine", "launch", "backends", "devices", "workloads",
                              "tools", "configuration", "problems"}) {
    EXPECT_TRUE(json.contains(section)) << section;
  }
  const std::string cuda = json["devices"]["cuda"].get<std::string>();
  EXPECT_EQ(json["machine"].contains("gpus"), !cuda.starts_with("not built")) << cuda;
  expect_parts(json["machine"]["usable_cpus"].get<std::string>(), {"affinity mask"});
}

TEST(Doctor, MissingToolsAreNamedWithTheirPackages) {
  const Result run = doctor("PATH=/no/such/folder", "");
  expect_parts(run.output, {"gnuplot-nox", "module load gnuplot", "spack install",
                            "conda install -c conda-forge gnuplot"});
#ifdef DOCTOR_HAS_MPI
  EXPECT_EQ(run.code, 1);  // a backend that was built cannot be used
  expect_parts(run.output, {"failed: backend mpi is built, but there is no mpirun"});
#else
  EXPECT_EQ(run.code, 0);
#endif
}

TEST(Doctor, LaunchersThatDisagreeFail) {
  const Result run = doctor("RANK=0 WORLD_SIZE=2", "");
  EXPECT_EQ(run.code, 1);
  expect_parts(run.output, {"failed: RANK is set but LOCAL_RANK is not"});
}

}  // namespace
}  // namespace paceline
