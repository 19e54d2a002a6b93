#include "results/match.h"

#include <gtest/gtest.h>

#include "results/run_record.h"

namespace paceline {
namespace {

Point point_of(const std::vector<std::pair<std::string, Value>>& values) {
  Point point;
  for (const auto& [name, value] : values) point.set(name, value);
  return point;
}

struct MatchedRun {
  Point parameters = point_of({{"gpus", std::int64_t{2}},
                               {"backend", std::string("mpi")},
                               {"seed", std::int64_t{1}},
                               {"bucket_mb", 8.0},
                               {"compute_threads", std::int64_t{1}},
                               {"global_batch", std::int64_t{64}}});
  LayoutFacts layout{.nodes = 1, .ntasks = 2, .cpus_per_task = 3, .gpus = 2};
  std::string kind = "measured", system, backend = "mpi";

  PointKey key(const MatchRule& rule) const {
    return {{.parameters = parameters,
             .layout = &layout,
             .workload = "mnist-cnn",
             .kind = kind,
             .system = system,
             .backend = backend},
            rule};
  }
};

// What tells runs apart, by each rule.
TEST(Match, EachRuleSaysWhatTellsPointsApart) {
  struct Case {
    const char* what;
    void (*change)(MatchedRun&);
    bool in_row, at_gate, from_base;
  };
  const Case cases[] = {
      {"seed", [](MatchedRun& r) { r.parameters.set("seed", std::int64_t{2}); }, false, false,
       false},
      {"threads", [](MatchedRun& r) { r.parameters.set("compute_threads", std::int64_t{2}); }, true,
       true, false},
      {"a setting", [](MatchedRun& r) { r.parameters.set("bucket_mb", 1.0); }, true, true, true},
      {"an option that measures nothing",
       [](MatchedRun& r) { r.parameters.set("tensorboard", std::string("events")); }, false, false,
       false},
      {"machine", [](MatchedRun& r) { r.system = "AMD EPYC"; }, true, false, false},
      {"kind", [](MatchedRun& r) { r.kind = "published"; }, true, true, true},
      {"tasks", [](MatchedRun& r) { r.layout.ntasks = 1; }, true, false, true},
      {"nodes", [](MatchedRun& r) { r.layout.nodes = 2; }, true, false, false},
  };
  for (const Case& each : cases) {
    MatchedRun other;
    each.change(other);
    const MatchedRun run;
    EXPECT_EQ(run.key(MatchRule::row()) != other.key(MatchRule::row()), each.in_row) << each.what;
    EXPECT_EQ(run.key(MatchRule::point()) != other.key(MatchRule::point()), each.at_gate)
        << each.what;
    EXPECT_EQ(run.key(MatchRule::base()) != other.key(MatchRule::base()), each.from_base)
        << each.what;
  }
}

TEST(Match, ABaseIsAlikeButForItsSize) {
  MatchedRun run, base;
  base.parameters.set("gpus", std::int64_t{1});
  base.layout = {.nodes = 1, .ntasks = 1, .cpus_per_task = 3, .gpus = 1};
  EXPECT_EQ(run.key(MatchRule::base()), base.key(MatchRule::base()));
  EXPECT_EQ(run.key(MatchRule::base({"bucket_mb"})), base.key(MatchRule::base({"bucket_mb"})));
  base.layout.cpus_per_task = 2;
  EXPECT_NE(run.key(MatchRule::base()), base.key(MatchRule::base()));
  base.layout.cpus_per_task = 3;
  base.parameters.erase("bucket_mb");
  EXPECT_NE(run.key(MatchRule::base({"bucket_mb"})), base.key(MatchRule::base({"bucket_mb"})))
      << "not to have it is a value";
}

// Three replicas of a task with four CPUs have one each, as one replica with one CPU has.
TEST(Match, CpusAreThoseThatAReplicaHas) {
  MatchedRun run, base;
  run.layout = {.ntasks = 1, .cpus_per_task = 4, .gpus = 3, .cpus_per_replica = 1};
  base.layout = {.ntasks = 1, .cpus_per_task = 1, .gpus = 1, .cpus_per_replica = 1};
  EXPECT_EQ(run.key(MatchRule::base()), base.key(MatchRule::base()));
  run.layout.cpus_per_replica.reset();
  EXPECT_NEAR(replica_cpus(run.layout).value(), 4.0 / 3, 1e-9) << "a table states its task's";
}

TEST(Match, ASettingLeavesItsAxisOpen) {
  MatchedRun run, other;
  other.parameters.set("bucket_mb", 1.0);
  const auto apart = [&](const char* axis) {
    const MatchRule rule = MatchRule::setting(axis, {"bucket_mb"}, true);
    return run.key(rule) != other.key(rule);
  };
  EXPECT_FALSE(apart("bucket_mb"));
  EXPECT_TRUE(apart("backend"));
  other = run;
  other.backend = "ring";
  EXPECT_FALSE(apart("backend"));
  EXPECT_TRUE(apart("gpus"));
}

TEST(Match, APlannedPointIsServedByWhatItStates) {
  const MatchedRun run;
  EXPECT_TRUE(serves(run.parameters, point_of({{"bucket_mb", 8.0}})));
  EXPECT_FALSE(serves(run.parameters, point_of({{"bucket_mb", 4.0}})));
  EXPECT_FALSE(serves(run.parameters, point_of({{"epochs", std::int64_t{2}}})))
      << "nobody knows what the run did";
}

TEST(Match, DifferencesNameWhatChangedAndWhatOnlyOneKnows) {
  const Point was = point_of({{"bucket_mb", 8.0}, {"seed", std::int64_t{1}}});
  const Point is = point_of({{"bucket_mb", 4.0}, {"epochs", std::int64_t{2}}});
  const PointDifferences found = differences(was, is);
  EXPECT_EQ(found.changed, std::vector<std::string>{"bucket_mb was 8, is 4"});
  EXPECT_EQ(found.one_sided, (std::vector<std::string>{"epochs is 2, was not given",
                                                       "seed was 1, is not given now"}));
  EXPECT_TRUE(differences(was, is, MatchRule::point()).one_sided.size() == 1U) << "seeds replicate";
  const Point a = point_of({{"program", std::string("train@1111111111111111")}});
  const Point b = point_of({{"program", std::string("train@2222222222222222")}});
  EXPECT_EQ(differences(a, b).changed.size(), 1U);
  EXPECT_TRUE(differences(a, b, {}, true).changed.empty());
}

TEST(Match, ParametersVaryWhereAPointLacksThem) {
  const Point both = point_of({{"bucket_mb", 8.0}, {"epochs", std::int64_t{2}}});
  const Point one = point_of({{"bucket_mb", 8.0}});
  EXPECT_EQ(varying_parameters({&both, &one}), std::vector<std::string>{"epochs"});
  EXPECT_TRUE(varying_parameters({}).empty());
}

}  // namespace
}  // namespace paceline
