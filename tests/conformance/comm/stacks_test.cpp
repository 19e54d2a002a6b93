// Every stack of backends and wrappers that this build has, with 1 to 4 replicas: the cases are in
// ranks.cpp. PACELINE_TEST_LARGEST (elements) is raised to 2^26 by tests/full.
#include <gtest/gtest.h>

#include <map>

#include "engine/comm/rendezvous/server.h"
#include "engine/core/backend_stack.h"
#include "results/names.h"
#include "tests/support/expect_error.h"
#include "tests/support/hydra.h"
#include "tests/support/scratch.h"

namespace paceline {
namespace {

struct Case {
  std::string stack;
  int tasks, replicas;     // replicas of a task
  int ranks_per_node = 0;  // pretended; 0: as it is
  bool gpus = false;       // gradients on GPUs, which the host plays
};

void PrintTo(const Case& one, std::ostream* out) {
  *out << one.stack << " as " << one.tasks << " x " << one.replicas << (one.gpus ? " GPUs" : "");
}

// NCCL sums on GPUs, and is what mirrored is there where it is built; for all others gradients are
// staged.
std::vector<Case> gpu_cases() {
  std::vector<Case> cases;
  for (const char* stack : {"nccl", "ring", "mpi", "mpi+bf16", "gloo"}) {
    for (const int ranks : {1, 2, 3}) cases.push_back({stack, ranks, 1, 0, true});
  }
  for (const char* stack : {"mirrored", "null", "self"}) cases.push_back({stack, 1, 1, 0, true});
  cases.push_back({"mirrored", 1, 3, 0, true});
  cases.push_back({"mirrored/nccl", 2, 2, 0, true});
  cases.push_back({"mirrored/mpi", 2, 2, 0, true});
  cases.push_back({"mpi-ring", 3, 1, 1, true});
  return cases;
}

// The backends between processes, which sum on the host.
std::vector<std::string> bases_between() {
  std::vector<std::string> bases;
  for (const Name& name : known_names().backends) {
    if (name.tasks == "replica" && !name.gpu_each && !name.alone) bases.push_back(name.name);
  }
  return bases;
}

// In CI a wrapper, which changes what is sent and not the way, goes around fewer shapes.
std::vector<Case> cases() {
  const bool every = std::getenv("PACELINE_TEST_LARGEST") != nullptr;
  const std::vector<std::string> between = bases_between();
  std::vector<Case> cases;
  for (const std::string wrapper : {"", "+bf16"}) {
    const bool few = !wrapper.empty() && !every;
    for (int ranks = wrapper.empty() ? 1 : 3; ranks <= (few ? 3 : 4); ++ranks) {
      cases.push_back({"mirrored" + wrapper, 1, ranks});
      for (const std::string& base : between) cases.push_back({base + wrapper, ranks, 1});
    }
    cases.push_back({std::string("self") + wrapper, 1, 1});
    for (const std::string stack : {"ring", "mpi-ring", "ring/mpi"}) {
      for (const int ranks_per_node : {1, 2}) {  // 2, 3 and 4 leaders
        if (few && (ranks_per_node == 1 || !split_stack(stack).inside.empty())) continue;
        if (!few) cases.push_back({stack + wrapper, 3, 1, ranks_per_node});
        cases.push_back({stack + wrapper, 4, 1, ranks_per_node});
      }
    }
    for (int tasks = few ? 2 : 1; tasks <= 2; ++tasks) {
      for (const std::string& base : between) {
        if (find_name("backend", base).bare) continue;
        cases.push_back({"mirrored/" + base + wrapper, tasks, 2});
      }
    }
  }
  for (const Case& one : gpu_cases()) cases.push_back(one);
  std::erase_if(cases, [](const Case& one) { return !find_name("backend", one.stack).built; });
  return cases;
}

RunVerdict spawn_around_store(SpawnRequest request, bool mpirun) {
  const BootstrapAddress where = starter_bootstrap("127.0.0.1", request.environment);
  const StoreServer server(where, request.ranks);
  request.environment[kStoreVariable] = server.address();
  request.environment[kTokenVariable] = where.token;
  return mpirun ? spawn_ranks(request) : spawn_direct(request);
}

class Stacks : public testing::TestWithParam<Case> {};

RunVerdict start(const Case& one, const std::string& what) {
  SpawnRequest request;
  request.command = {COMM_RANKS, one.stack, std::to_string(one.replicas), what,
                     one.gpus ? "gpus" : "host"};
  request.ranks = one.tasks;
  request.environment = environment_of_process();
  if (one.ranks_per_node > 0) {
    request.environment["PACELINE_TEST_RANKS_PER_NODE"] = std::to_string(one.ranks_per_node);
  }
  const Scratch scratch;
  if (one.gpus) {
    request.environment["PACELINE_CUDA_LIBS"] = FAKE_NCCL;
    request.environment["FAKE_NCCL_FOLDER"] = scratch.path().string();
  }
  const Name backend = find_name("backend", one.stack);
  const RunVerdict verdict =
      backend.needs_store ? spawn_around_store(request, backend.mpirun) : spawn_ranks(request);
  std::ifstream misuse(scratch / "misuse");
  for (std::string line; std::getline(misuse, line);) ADD_FAILURE() << "NCCL: " << line;
  return verdict;
}

TEST_P(Stacks, SumsAreRightOnEveryRank) {
  const char* largest = std::getenv("PACELINE_TEST_LARGEST");
  const RunVerdict verdict = start(GetParam(), largest != nullptr ? largest : "1048576");
  EXPECT_EQ(verdict.exit_code, 0) << verdict.line << verdict.noise;
}

std::string name_of_case(const testing::TestParamInfo<Case>& info) {
  std::string name = info.param.stack + "_" + std::to_string(info.param.tasks) + "x" +
                     std::to_string(info.param.replicas);
  if (info.param.gpus) name += "_gpus";
  if (info.param.ranks_per_node > 0) name += "_of_" + std::to_string(info.param.ranks_per_node);
  for (char& c : name) {
    if (c == '+' || c == '/' || c == '-') c = '_';
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(All, Stacks, testing::ValuesIn(cases()), name_of_case);

class Failures : public testing::TestWithParam<Case> {};

TEST_P(Failures, ARankThatDoesNotComeIsNamed) {
  const Case& one = GetParam();
  const RunVerdict verdict = start(one, "stalls");
  EXPECT_EQ(verdict.exit_code, 72) << verdict.line;
  // A library does not say who is missing; here nobody else knows it.
  const std::string between = split_stack(one.stack).between;
  const std::map<std::string, std::string> calls = {{"mpi", "MPI_Allreduce"},
                                                    {"gloo", "gloo::allreduce"}};
  const auto call = calls.find(between);
  const int missing = one.tasks * one.replicas - 1;
  const std::string said = call != calls.end() && one.replicas == 1
                               ? call->second + " did not return within"
                               : "rank " + std::to_string(missing) + " did not come within";
  expect_parts(verdict.line, {said, "bucket 2"});
}

TEST_P(Failures, TheErrorOfARankWins) {
  const RunVerdict verdict = start(GetParam(), "throws");
  EXPECT_EQ(verdict.exit_code, 65) << verdict.line;
  expect_parts(verdict.line, {"shard-7: a bad file"});
}

TEST_P(Failures, AKilledRankIsNamed) {
  const Case& one = GetParam();
  const RunVerdict verdict = start(one, "killed");
  EXPECT_EQ(verdict.exit_code, 71) << verdict.line;
  const std::string named = "rank " + std::to_string(one.tasks - 1) + " ";
  const bool mpirun = find_name("backend", one.stack).mpirun;
  const bool untold = mpirun && is_hydra() && verdict.line.starts_with("one of ranks ");
  EXPECT_TRUE(untold || verdict.line.find(named) != std::string::npos) << verdict.line;
}

std::vector<Case> failing_cases() {
  std::vector<Case> cases = {{"mpi-ring", 3, 1, 1},
                             {"ring", 3, 1, 1},
                             {"ring", 4, 1, 2},
                             {"ring", 3, 1},
                             {"mirrored/ring+bf16", 2, 2},
                             {"mirrored/mpi", 2, 2},
                             {"nccl", 3, 1, 0, true},
                             {"mpi", 2, 1, 0, true}};
  for (const std::string& base : bases_between()) cases.push_back({base, 2, 1});
  std::erase_if(cases, [](const Case& one) { return !find_name("backend", one.stack).built; });
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Some, Failures, testing::ValuesIn(failing_cases()), name_of_case);

}  // namespace
}  // namespace paceline
