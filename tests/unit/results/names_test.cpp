#include "results/names.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "engine/core/error.h"
#include "results/parameters.h"
#include "tests/support/expect_error.h"

namespace paceline {
namespace {

std::string backend_refusal(const std::string& backend) {
  return catch_error(ErrorKind::usage, [&] { find_name("backend", backend, "spec.json:3"); });
}

TEST(Names, AStackFollowsFromItsParts) {
  const Name mpi = find_name("backend", "mpi"), gloo = find_name("backend", "gloo");
  EXPECT_TRUE(mpi.mpirun);
  EXPECT_FALSE(gloo.mpirun);
  const Name wrapped = find_name("backend", "mpi+bf16");
  EXPECT_EQ(wrapped.name, "mpi+bf16");
  EXPECT_EQ(wrapped.tasks, "replica");
  EXPECT_TRUE(wrapped.mpirun);
  EXPECT_EQ(wrapped.built, mpi.built);
  const Name two = find_name("backend", "mirrored/mpi+bf16");
  EXPECT_EQ(two.tasks, "node");
  EXPECT_TRUE(two.mpirun);
  EXPECT_EQ(two.built, mpi.built && find_name("backend", "mirrored").built);
  EXPECT_EQ(two.reason, mpi.built ? "" : mpi.reason);
}

// Ranks of MPI meet by MPI, unless ring inside of a node needs the store.
TEST(Names, StackNeedsTheStoreIfAnyPartDoes) {
  for (const char* stack : {"ring", "gloo", "ring/mpi", "mirrored/ring"}) {
    EXPECT_TRUE(find_name("backend", stack).needs_store) << stack;
  }
  for (const char* stack : {"mpi", "mpi-ring", "mirrored/mpi"}) {
    EXPECT_FALSE(find_name("backend", stack).needs_store) << stack;
  }
  const Name stack = find_name("backend", "ring/mpi");
  EXPECT_EQ(stack.tasks, "replica");
  EXPECT_TRUE(stack.mpirun);
}

TEST(Names, TheNearestPartIsSuggested) {
  expect_parts(backend_refusal("mirored/mpi"), {"\"mirrored\"?"});
  expect_parts(backend_refusal("mpi+bf61"), {"spec.json:3: unknown wrapper \"bf61\""});
  expect_parts(backend_refusal("gloo+bf16+bf16"), {"twice"});
}

TEST(Names, WhatCannotBeStackedIsRefused) {
  for (const char* stack :
       {"mpi/mirrored", "self/mpi", "null/mpi", "mirrored/mirrored", "mirrored/gloo", "ring/gloo",
        "ring/ring", "ring/mpi-ring", "ring/nccl", "mpi-ring/ring"}) {
    SCOPED_TRACE(stack);
    expect_parts(backend_refusal(stack), {"cannot be stacked"});
  }
}

// Stacks on gloo and +fp16 are gone. What they were made of is laid out as before.
TEST(Names, WhatIsGoneIsStillKnownInRecords) {
  expect_parts(backend_refusal("mpi+fp16"), {"unknown wrapper \"fp16\""});
  EXPECT_EQ(recorded_backend("mpi+fp16").tasks, "replica");
  const Name stack = recorded_backend("mirrored/gloo+fp16");
  EXPECT_EQ(stack.name, "mirrored/gloo+fp16");
  EXPECT_EQ(stack.tasks, "node");
  EXPECT_FALSE(stack.one_task);
  EXPECT_FALSE(stack.built);
  EXPECT_EQ(recorded_backend("nonesuch").tasks, "replica");
  EXPECT_TRUE(recorded_backend("mirrored").one_task);
}

TEST(Names, TasksOfAStack) {
  const auto tasks = [](const std::string& backend, std::int64_t nodes) {
    Point point;
    point.set("gpus", std::int64_t{4});
    point.set("nodes", nodes);
    point.set("cpus_per_replica", std::int64_t{2});
    point.set("backend", backend);
    return make_layout(point);
  };
  EXPECT_EQ(tasks("gloo+bf16", 2).ntasks, 4);
  EXPECT_EQ(tasks("mirrored/mpi", 2).ntasks, 2);
  EXPECT_EQ(tasks("mirrored/mpi", 2).cpus_per_task, 4);
  EXPECT_EQ(tasks("mirrored+bf16", 1).ntasks, 1);
}

TEST(Names, SeveralTasksOfANodeHaveSeveralReplicasEach) {
  const auto layout = [](const std::string& backend, std::int64_t gpus, std::int64_t each,
                         std::int64_t nodes) {
    Point point;
    point.set("gpus", gpus);
    point.set("nodes", nodes);
    point.set("gpus_per_task", each);
    point.set("cpus_per_replica", std::int64_t{2});
    point.set("backend", backend);
    return make_layout(point, "s.json:3");
  };
  const Layout two = layout("mirrored/mpi", 6, 3, 1);
  EXPECT_EQ(two.ntasks, 2);
  EXPECT_EQ(two.cpus_per_task, 6);
  EXPECT_EQ(layout("mirrored/ring", 12, 3, 2).ntasks, 4);
  EXPECT_EQ(layout("mpi", 6, 1, 1).ntasks, 6);
  EXPECT_EQ(layout("mirrored", 3, 3, 1).ntasks, 1);
  const auto refusal = [&](const std::string& backend, std::int64_t gpus, std::int64_t each,
                           std::int64_t nodes) {
    return catch_error(ErrorKind::usage, [&] { layout(backend, gpus, each, nodes); });
  };
  EXPECT_EQ(refusal("mpi", 6, 3, 1),
            "s.json:3: backend mpi has one replica in a task, not 3; use mirrored within the "
            "tasks, such as mirrored/mpi");
  EXPECT_EQ(refusal("mirrored/mpi", 8, 3, 2),
            "s.json:3: 4 replicas of a node cannot be tasks of 3; make gpus / nodes a multiple of "
            "gpus_per_task");
  EXPECT_EQ(refusal("mirrored", 6, 3, 1),
            "s.json:3: backend mirrored sums within one task, and these are 2 on 1 node; put "
            "another between the tasks, such as mirrored/mpi");
  EXPECT_EQ(refusal("null", 4, 2, 2),
            "s.json:3: backend null sums within one task, and these are 2 on 2 nodes; use one "
            "task, or another backend (paceline list backends)");
}

TEST(ParameterText, EachRowSaysItsFormAndWhatItNeeds) {
  const Json rows = parameters_json();
  ASSERT_EQ(rows.size(), parameters().size());
  const auto row = [&](const std::string& name) {
    for (const Json& one : rows) {
      if (one["name"] == name) return one;
    }
    return Json();
  };
  EXPECT_EQ(row("gpus")["values"], "whole number from 1");
  EXPECT_EQ(row("overlap")["values"], "true, false");
  EXPECT_EQ(row("decay_factor")["only_for"], "with `schedule` step or plateau");
  EXPECT_EQ(row("seed")["default"], std::string(find_parameter("seed")->initial));
  const std::string page = parameters_markdown();
  for (const Parameter& parameter : parameters()) {
    EXPECT_NE(page.find("| `" + std::string(parameter.name) + "` |"), std::string::npos)
        << parameter.name;
  }
}

}  // namespace
}  // namespace paceline
