#include "sweeps/expansion.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "results/names.h"
#include "tests/support/has_engine.h"
#include "tests/unit/sweeps/samples.h"

namespace paceline {
namespace {

using Texts = std::vector<std::string>;

TEST(Expansion, AMatrixWithTwoExclusions) {
  const std::string keys = R"(
    "axes": {"gpus": [1, 2, 4, 8], "cpus_per_replica": [1, 2, 4, 8],
             "backend": ["mpi", "null", "mirrored"]},
    "exclude": [{"gpus": 8, "cpus_per_replica": 8}, "backend == 'mpi' && gpus == 1"])";
  Texts expected;
  for (const int gpus : {1, 2, 4, 8}) {
    for (const int cpus : {1, 2, 4, 8}) {
      for (const std::string backend : {"mpi", "null", "mirrored"}) {
        if ((gpus == 8 && cpus == 8) || (backend == "mpi" && gpus == 1)) continue;
        const int per_task = backend == "mpi" ? cpus : cpus * gpus;  // else one task holds all
        expected.push_back("gpus=" + std::to_string(gpus) +
                           ",cpus_per_task=" + std::to_string(per_task) + ",backend=" + backend);
      }
    }
  }
  ASSERT_EQ(expected.size(), 48u - 3 - 4);
  EXPECT_EQ(plan_points(keys), expected);
  EXPECT_EQ(plan_points(keys), plan_points(keys));
}

TEST(Expansion, AControlIsTheSmallestPointOnceMore) {
  const std::string keys = R"("fixed": {"backend": "null"}, "axes": {"gpus": [4, 1, 2]})";
  const Expansion expansion = make_expansion(keys + R"(, "control": true)");
  EXPECT_EQ(plan_points(expansion), (Texts{"gpus=4", "gpus=1", "gpus=2", "gpus=1,control=true"}));
  EXPECT_EQ(expansion.points[3].layout.gpus, 1);
  EXPECT_EQ(expansion.points[3].parameters.text("control"), "true");
  EXPECT_EQ(plan_points(keys + R"(, "control": false)"), plan_points(keys));
}

TEST(Expansion, AControlIsNoParameterOfAPoint) {
  expect_parts(catch_error([] { make_expansion(R"("fixed": {"control": true})"); }),
               {"control is not a parameter of a point", "s.json", "--control"});
}

TEST(Expansion, TheLastAxisIsFastestThenZipsThenIncludedPoints) {
  EXPECT_EQ(plan_points(R"("fixed": {"backend": "null"},
                         "axes": {"gpus": [1, 2]},
                         "zip": {"cpus_per_task": [2, 4], "seed": [7, 8]},
                         "include": [{"gpus": 8, "cpus_per_task": 8, "seed": 9}])"),
            (Texts{"gpus=1,cpus_per_task=2,seed=7", "gpus=1,cpus_per_task=4,seed=8",
                   "gpus=2,cpus_per_task=2,seed=7", "gpus=2,cpus_per_task=4,seed=8",
                   "gpus=8,cpus_per_task=8,seed=9"}));
}

TEST(Expansion, SeveralZipsAreMultiplied) {
  EXPECT_EQ(plan_points(R"("zip": [{"seed": [1, 2]}, {"steps": [5, 6], "bucket_mb": [8, 16]}])"),
            (Texts{"steps=5,seed=1,bucket_mb=8", "steps=6,seed=1,bucket_mb=16",
                   "steps=5,seed=2,bucket_mb=8", "steps=6,seed=2,bucket_mb=16"}));
}

TEST(Expansion, IncludedPointsAloneHaveNoProduct) {
  EXPECT_EQ(plan_points(R"("fixed": {"backend": "null"}, "include": [{"gpus": 2}, {"gpus": 4}])"),
            (Texts{"gpus=2", "gpus=4"}));
}

TEST(Expansion, ASpecOfOnePoint) {
  const Expansion expansion = make_expansion(R"("fixed": {"steps": 5})");
  EXPECT_EQ(plan_points(expansion), Texts{"gpus=1"});
  EXPECT_EQ(expansion.points[0].parameters.text(), "cpus_per_task=8,steps=5");
}

TEST(Expansion, WhereKeepsThePairsOfTwoAxes) {
  EXPECT_EQ(plan_points(R"("fixed": {"backend": "null"},
      "axes": {"gpus": [1, 2], "cpus_per_task": [1, 2]},
      "where": "cpus_per_task == gpus || gpus == 1")"),
            (Texts{"gpus=1,cpus_per_task=1", "gpus=1,cpus_per_task=2", "gpus=2,cpus_per_task=2"}));
}

TEST(Expansion, WhereKnowsTheCores) {
  const std::string keys = R"("fixed": {"backend": "null"},
      "axes": {"gpus": [1, 2, 4], "cpus_per_replica": [1, 2]},
      "where": "gpus * cpus_per_replica <= cores")";
  EXPECT_EQ(plan_points(keys, 1), Texts{"gpus=1,cpus_per_task=1"});
  EXPECT_EQ(plan_points(keys, 2),
            (Texts{"gpus=1,cpus_per_task=1", "gpus=1,cpus_per_task=2", "gpus=2,cpus_per_task=2"}));
  EXPECT_EQ(plan_points(keys, 8).size(), 6u);
}

TEST(Expansion, WhereHoldsForIncludedPointsToo) {
  EXPECT_EQ(plan_points(R"("fixed": {"backend": "null"}, "axes": {"gpus": [1]},
                         "where": "gpus <= cores", "include": [{"gpus": 2}, {"gpus": 4}])",
                        2),
            (Texts{"gpus=1", "gpus=2"}));
}

TEST(Expansion, CpusPerReplicaBecomesCpusPerTask) {
  const Expansion expansion = make_expansion(R"("fixed": {"cpus_per_replica": 2},
      "axes": {"gpus": [1, 4], "backend": ["mpi", "mirrored"]})");
  ASSERT_EQ(expansion.points.size(), 4u);
  const auto tasks_and_cpus = [&](std::size_t i) {
    const PlannedPoint& planned = expansion.points[i];
    EXPECT_FALSE(planned.parameters.find("cpus_per_replica"));
    EXPECT_EQ(planned.parameters.integer("cpus_per_task"), planned.layout.cpus_per_task);
    EXPECT_EQ(planned.layout.cpus_per_replica, 2);
    return std::pair(planned.layout.ntasks, planned.layout.cpus_per_task);
  };
  EXPECT_EQ(tasks_and_cpus(0), std::pair(1, 2));
  EXPECT_EQ(tasks_and_cpus(2), std::pair(4, 2)) << "mpi: a task a replica";
  EXPECT_EQ(tasks_and_cpus(3), std::pair(1, 8)) << "mirrored: one task";
}

TEST(Expansion, ReorderedKeysGiveTheSamePoints) {
  Texts one = plan_points(R"("fixed": {"epochs": 1, "seed": 3},
      "axes": {"gpus": [1, 2], "backend": ["null", "mirrored"], "cpus_per_task": [2, 4]})");
  Texts two = plan_points(R"("axes": {"cpus_per_task": [4, 2], "backend": ["mirrored", "null"],
      "gpus": [2, 1]}, "fixed": {"seed": 3, "epochs": 1})");
  EXPECT_NE(one, two) << "the order of the points is the spec's";
  std::sort(one.begin(), one.end());
  std::sort(two.begin(), two.end());
  EXPECT_EQ(one, two);
  const auto identity = [](const std::string& keys) {
    return identity_hash("mnist-mlp", make_expansion(keys).points.at(0).parameters);
  };
  EXPECT_EQ(identity(R"("fixed": {"gpus": 1, "seed": 3, "bucket_mb": 8})"),
            identity(R"("fixed": {"bucket_mb": 8.0, "seed": 3, "gpus": 1})"));
}

TEST(Expansion, BackendsThatAreNotBuiltAreLeftOutAndReported) {
  const auto& backends = known_names().backends;
  const auto absent = std::ranges::find_if(
      backends, [](const Name& name) { return !name.built && name.name != "self"; });
  if (absent == backends.end()) GTEST_SKIP() << "every backend is built here";
  const Spec spec = spec_with(R"("axes": {"gpus": [1], "backend": [")" + absent->name + "\"]}");
  const std::string line = catch_error([&] { expand(spec, 8); });
  expect_parts(line, {"no points here", absent->name, "is not built here", "--set"});
  const Expansion kept = expand(spec, 8, Unbuilt::keep);
  EXPECT_EQ(kept.points.size(), 1u);
  ASSERT_EQ(kept.notes.size(), 1u);
  expect_parts(kept.notes[0], {absent->name, "is not built here", absent->reason});
}

TEST(Expansion, WithoutACpuKeyEachReplicaHasAsMany) {
  const Spec spec = spec_with(R"("axes": {"gpus": [1, 2], "backend": ["mpi", "mirrored"]})");
  const auto cpus = [](const Expansion& expansion) {
    std::vector<int> each;
    for (const PlannedPoint& planned : expansion.points) {
      each.push_back(planned.layout.cpus_per_replica);
      EXPECT_EQ(planned.parameters.integer("cpus_per_task"), planned.layout.cpus_per_task);
    }
    return each;
  };
  const Expansion expansion = expand(spec, 8, Unbuilt::keep);
  EXPECT_EQ(cpus(expansion), (std::vector<int>{4, 4, 4, 4}));
  EXPECT_EQ(expansion.points[3].layout.cpus_per_task, 8) << "mirrored: one task";
  EXPECT_EQ(plan_points(expansion).front(), "gpus=1,backend=mpi") << "the same on every machine";
  EXPECT_EQ(cpus(expand(spec, 1, Unbuilt::keep)), (std::vector<int>{1, 1, 1, 1}));
  EXPECT_EQ(cpus(expand(spec, TargetMachine{8, false, {}}, Unbuilt::keep)),
            (std::vector<int>{1, 1, 1, 1}));
  EXPECT_EQ(cpus(make_expansion(R"("fixed": {"backend": "mpi"}, "axes": {"gpus": [1, 2, 16]})", 8)),
            (std::vector<int>{4, 4, 4}))
      << "what does not fit takes nothing from the others";
  EXPECT_FALSE(make_expansion(R"("fixed": {"gpus": 1, "device": "reference"})")
                   .points[0]
                   .parameters.find("cpus_per_task"));
}

TEST(Expansion, PointsThatCannotRunHereAreLeftOutAndReported) {
  PACELINE_NEEDS_ENGINE();
  const Spec spec = spec_with(R"("fixed": {"backend": "mpi", "cpus_per_replica": 1},
                                 "axes": {"gpus": [1, 4], "seed": [1, 2]}, "control": true)");
  const TargetMachine machine{2, true, [](const PlannedPoint& planned) {
                                return planned.layout.gpus > 2 ? std::string("too many; use fewer")
                                                               : "";
                              }};
  const Expansion kept = expand(spec, machine, Unbuilt::keep);
  ASSERT_EQ(kept.points.size(), 5U);
  EXPECT_EQ(kept.points[0].cannot_run, "");
  EXPECT_EQ(kept.points[2].cannot_run, "too many; use fewer");
  EXPECT_EQ(kept.notes, Texts{"cannot run here: gpus=4,seed=1 and 1 more: too many; use fewer"});
  if (!find_name("backend", "mpi").built) return;
  const Expansion left = expand(spec, machine);
  EXPECT_EQ(plan_points(left),
            (Texts{"gpus=1,seed=1", "gpus=1,seed=2", "gpus=1,seed=1,control=true"}));
  EXPECT_EQ(left.notes,
            Texts{"cannot run here, left out: gpus=4,seed=1 and 1 more: too many; use fewer"});
  const Spec large = spec_with(R"("fixed": {"backend": "mpi"}, "axes": {"gpus": [4]})");
  expect_parts(catch_error([&] { expand(large, machine); }), {"no points here", "too many"});
}

TargetMachine cluster(int cpus, int gpus, bool cores_for_gpus = false) {
  return {cpus, true, {}, NodeSize{cpus, gpus, cores_for_gpus, "site.json"}};
}

// "8 GPUs: 2 nodes, 8 tasks of 10 CPUs" of each point.
Texts list_layouts(const std::string& keys, const TargetMachine& machine) {
  Texts texts;
  for (const PlannedPoint& planned : expand(spec_with(keys), machine, Unbuilt::keep).points) {
    const Layout& layout = planned.layout;
    EXPECT_EQ(layout.nodes, planned.parameters.integer("nodes").value_or(1));
    texts.push_back(std::to_string(layout.gpus) + " on " + std::to_string(layout.nodes) + ": " +
                    std::to_string(layout.ntasks) + " of " + std::to_string(layout.cpus_per_task));
  }
  return texts;
}

TEST(Expansion, OnAClusterPointsGetTheFewestNodesThatHoldThem) {
  const std::string gpus = R"("fixed": {"device": "cuda"}, "axes": {"backend": )";
  EXPECT_EQ(list_layouts(gpus + R"(["nccl"], "gpus": [1, 4, 6, 8, 12]})", cluster(40, 4)),
            (Texts{"1 on 1: 1 of 10", "4 on 1: 4 of 10", "6 on 2: 6 of 10", "8 on 2: 8 of 10",
                   "12 on 3: 12 of 10"}));
  EXPECT_EQ(list_layouts(gpus + R"(["mirrored/nccl"], "gpus": [8]})", cluster(40, 4)),
            Texts{"8 on 2: 2 of 40"});
  EXPECT_EQ(
      list_layouts(R"("fixed": {"device": "cuda", "gpus_per_task": 3, "backend": "mirrored/nccl"},
                    "axes": {"gpus": [3, 6, 12]})",
                   cluster(40, 7)),
      (Texts{"3 on 1: 1 of 18", "6 on 1: 2 of 18", "12 on 2: 4 of 18"}));
  EXPECT_EQ(list_layouts(gpus + R"(["nccl"], "gpus": [8], "cpus_per_task": [20]})", cluster(40, 4)),
            Texts{"8 on 4: 8 of 20"})
      << "of its CPUs";
  EXPECT_EQ(list_layouts(gpus + R"(["mirrored/nccl"], "gpus": [8], "cpus_per_replica": [5]})",
                         cluster(40, 4)),
            Texts{"8 on 2: 2 of 20"})
      << "of each task's CPUs";
  EXPECT_EQ(list_layouts(gpus + R"(["nccl"], "gpus": [8], "nodes": [4]})", cluster(40, 4)),
            Texts{"8 on 4: 8 of 20"})
      << "as the spec says";
  EXPECT_EQ(list_layouts(gpus + R"(["nccl"], "gpus": [8]})", cluster(40, 0)),
            Texts{"8 on 1: 8 of 5"})
      << "nobody knows how many a node has";
  const std::string cores = R"("fixed": {"backend": "mpi"}, "axes": {"gpus": [8]})";
  EXPECT_EQ(list_layouts(cores, cluster(40, 4)), Texts{"8 on 1: 8 of 5"});
  EXPECT_EQ(list_layouts(cores, cluster(40, 4, true)), Texts{"8 on 2: 8 of 10"}) << "a smoke test";
  EXPECT_EQ(list_layouts(cores, cluster(4, 0)), Texts{"8 on 2: 8 of 1"});
  EXPECT_EQ(plan_points(expand(spec_with(cores), cluster(4, 0), Unbuilt::keep)), Texts{"gpus=8"})
      << "the same name on every cluster";
}

TEST(Expansion, WhatNoNodeHoldsIsRefused) {
  const auto refusal = [](const std::string& axes) {
    return catch_error([&] {
      expand(spec_with("\"fixed\": {\"device\": \"cuda\"},\n\"axes\": {" + axes + "}"),
             cluster(40, 4), Unbuilt::keep);
    });
  };
  EXPECT_EQ(
      refusal(R"("gpus": [8], "backend": ["mirrored"])"),
      "s.json: point gpus=8,backend=mirrored needs 8 GPUs on a node, and a node has 4 "
      "(site.json); make it smaller, or use a backend that spans nodes, as mirrored/mpi does");
  expect_parts(refusal(R"("gpus": [8], "backend": ["nccl"], "nodes": [1])"),
               {"needs 8 GPUs on a node, and a node has 4", "use more nodes, or leave nodes out"});
  expect_parts(refusal(R"("gpus": [2], "backend": ["nccl"], "cpus_per_task": [41])"),
               {"needs 82 CPUs on a node, and a node has 40 (site.json)"});
  expect_parts(refusal(R"("gpus": [5], "backend": ["mirrored/nccl"], "gpus_per_task": [5])"),
               {"needs 5 GPUs on a node"});
}

// As many partitions bill or refuse more than a GPU's share.
TEST(Expansion, AGpuHasAtMostSoManyCpus) {
  TargetMachine machine = cluster(40, 4);
  machine.node->cpus_per_gpu = 8;
  const std::string gpus = R"("fixed": {"device": "cuda"}, "axes": {"backend": ["nccl"], "gpus": )";
  EXPECT_EQ(list_layouts(gpus + "[1, 4, 8]}", machine),
            (Texts{"1 on 1: 1 of 8", "4 on 1: 4 of 8", "8 on 2: 8 of 8"}));
  EXPECT_EQ(list_layouts(gpus + R"([1, 2], "cpus_per_task": [8]})", machine),
            (Texts{"1 on 1: 1 of 8", "2 on 1: 2 of 8"}));
  expect_parts(catch_error([&] {
                 expand(spec_with(gpus + R"([1], "cpus_per_task": [16]})"), machine, Unbuilt::keep);
               }),
               {"needs 16 CPUs beside 1 GPU, and a GPU may have 8 (site.json); give it fewer"});
}

std::string error_in(const std::string& keys, int cores = 8) {
  return catch_error([&] { make_expansion(keys, cores); });
}

TEST(ExpansionErrors, AnEmptyProductReportsTheCores) {
  expect_parts(error_in("\"axes\": {\"gpus\": [4, 8]},\n\"where\": \"gpus <= cores\"", 2),
               {"no points", "cores is 2", "s.json:2", "widen"});
  expect_parts(error_in(R"("axes": {"gpus": [1]}, "exclude": [{"gpus": 1}])"),
               {"no points", "s.json"});
}

TEST(ExpansionErrors, TooManyPoints) {
  std::string list = "[1";
  for (int i = 2; i <= 1000; ++i) list += "," + std::to_string(i);
  list += "]";
  const std::string keys =
      "\"axes\": {\"seed\": " + list + ", \"steps\": " + list + ", \"epochs\": " + list + "}";
  expect_parts(error_in(keys), {"more than 100000 combinations", "s.json:1", "shorten"});
  std::string conditions;
  for (int i = 0; i < 40; ++i) conditions += ", \"seed == 2000 && steps == 5 || epochs > 9000\"";
  expect_parts(
      error_in("\"axes\": {\"seed\": " + list +
               ", \"epochs\": [1, 2, 3, 4, 5, 6, 7, 8, 9, "
               "10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, "
               "29, 30], \"steps\": [1, 2, 3]}, \"exclude\": [" +
               conditions.substr(2) + ", " + conditions.substr(2) + ", " + conditions.substr(2) +
               "]"),
      {"90000 combinations x 1560 words of where and exclude", "wider conditions"});
  expect_parts(error_in("\"repeats\": 1000, \"axes\": {\"seed\": " + list + ", \"steps\": [1, 2]}"),
               {"2000 points x 1000 repeats", "1000000 runs", "lower repeats"});
}

TEST(ExpansionErrors, TheSamePointTwice) {
  expect_parts(error_in("\"axes\": {\"seed\": [1, 2]},\n\"include\": [{\"seed\": 2}]"),
               {"point seed=2 occurs twice", "s.json:2", "repeats"});
}

TEST(ExpansionErrors, LayoutsThatCannotBe) {
  expect_parts(error_in(R"("fixed": {"backend": "self"}, "axes": {"gpus": [1, 2]})"),
               {"backend self supports one replica, not 2", "s.json"});
  expect_parts(error_in("\"repeats\": 1,\n\"axes\": {\n\"gpus\": [1, 2]}"),
               {"no backend is named for 2 replicas", "s.json:3", "add \"backend\": [\"mpi\"]"});
  expect_parts(error_in("\"repeats\": 1,\n\"fixed\": {\"gpus\": 2}"),
               {"no backend is named for 2 replicas", "s.json:2"});
  expect_parts(error_in("\"axes\": {\"gpus\": [1]},\n\"include\": [\n{\"gpus\": 4}]"),
               {"no backend is named for 4 replicas", "s.json:3"});
  expect_parts(error_in(R"("fixed": {"backend": "mpi", "nodes": 2, "gpus": 3})"),
               {"3 replicas", "2 nodes", "s.json"});
  expect_parts(error_in(R"("fixed": {"backend": "mirrored", "gpus": 4, "cpus_per_task": 2})"),
               {"4 replicas in a task of 2 CPUs", "s.json"});
  expect_parts(error_in(R"("fixed": {"backend": "mirrored", "gpus": 2, "cpus_per_task": 2,
                            "cpus_per_replica": 2})"),
               {"contradict", "s.json"});
}

// Numbers that a parameter takes, but a layout cannot hold.
TEST(ExpansionErrors, AbsurdNumbers) {
  for (const std::string fixed :
       {R"("gpus": 4294967296)", R"("nodes": 4294967296)", R"("gpus": 4294967297)",
        R"("gpus": 2147483648, "nodes": 2147483648)", R"("cpus_per_task": 4294967296)",
        R"("gpus": 100000, "cpus_per_replica": 100000)",
        R"("gpus": 65536, "cpus_per_replica": 65536)"}) {
    SCOPED_TRACE(fixed);
    expect_parts(error_in(R"("fixed": {"backend": "mirrored", )" + fixed + "}"), {"s.json"});
  }
}

TEST(ExpansionErrors, AConditionThatHasNoValue) {
  expect_parts(error_in("\"axes\": {\"gpus\": [1]},\n\"where\": \"gpus / 0 > 1\""),
               {"division by zero", "s.json:2"});
}

TEST(ExpansionErrors, ANameTooLongForAFolder) {
  const std::string many = R"("axes": {"gpus": [1], "nodes": [1], "batch_per_replica": [64],
      "epochs": [1099511627776], "steps": [1099511627776], "optimizer": ["momentum"],
      "learning_rate": [0.0012345678901234567], "learning_rate_rule": ["linear"],
      "momentum": [0.98765432101234567], "seed": [1099511627776], "last_batch": ["keep"],
      "shuffle_buffer": [1099511627776]})";
  expect_parts(error_in(many), {"too long for a folder", "s.json", "fewer axes"});
}

}  // namespace
}  // namespace paceline
