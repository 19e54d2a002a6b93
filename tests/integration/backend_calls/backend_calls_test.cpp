// A backend's name is what sums: the library's all-reduce is called once for each bucket of each
// step, and by no other backend.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "tests/support/scratch.h"

namespace paceline {
namespace {

struct Calls {
  int mpi = 0, gloo = 0;  // of one rank
  int processes = 0;
};

constexpr int kSteps = 5, kRanks = 2;

Calls count_calls(const std::string& backend) {
  const Scratch scratch;
  const std::string file = scratch / "calls";
  const std::string command = "COUNT_CALLS_FILE='" + file +
                              "' LD_PRELOAD='" COUNT_CALLS "' '" PACELINE_BINARY
                              "' train mnist-mlp --input synthetic --train-limit 640 --evaluate "
                              "none --oversubscribe --quiet "
                              "--gpus 2 --steps " +
                              std::to_string(kSteps) + " --backend " + backend + " 2> '" + file +
                              ".log'";
  EXPECT_EQ(std::system(command.c_str()), 0) << command;
  Calls calls;
  std::ifstream lines(file);
  std::string mpi, gloo;
  for (int mpi_calls = 0, gloo_calls = 0; lines >> mpi >> mpi_calls >> gloo >> gloo_calls;) {
    if (calls.processes++ > 0) {
      EXPECT_EQ(mpi_calls, calls.mpi);
      EXPECT_EQ(gloo_calls, calls.gloo);
    }
    calls.mpi = mpi_calls;
    calls.gloo = gloo_calls;
  }
  return calls;
}

TEST(BackendCalls, MpiCallsMpiAllreduce) {
  const Calls calls = count_calls("mpi");
  EXPECT_EQ(calls.processes, kRanks);
  EXPECT_GE(calls.mpi, kSteps);
  EXPECT_EQ(calls.gloo, 0);
}

TEST(BackendCalls, GlooCallsGlooAllreduce) {
  const Calls calls = count_calls("gloo");
  EXPECT_EQ(calls.processes, kRanks);
  EXPECT_GE(calls.gloo, kSteps);
  EXPECT_EQ(calls.mpi, 0);
}

TEST(BackendCalls, OurOwnSumsCallNoLibrary) {
  for (const char* backend : {"ring", "mpi-ring", "mirrored"}) {
    const Calls calls = count_calls(backend);
    EXPECT_EQ(calls.mpi + calls.gloo, 0) << backend;
  }
}

}  // namespace
}  // namespace paceline
