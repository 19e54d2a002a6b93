#include "slurm/site_plan.h"

#include <gtest/gtest.h>

#include "tests/support/scratch.h"
#include "tests/unit/slurm/samples.h"

namespace paceline {
namespace {

using testing::site_with;

TEST(SitePlan, TheDeviceOfTheSiteIsForSpecsThatNameNone) {
  const Site site = site_with(R"("device": "cuda")");
  for (const auto& [keys, device] :
       {std::pair(R"("axes": {"gpus": [1, 2]})", "cuda"),
        std::pair(R"("fixed": {"device": "cpu"})", "cpu"),
        std::pair(R"("axes": {"device": ["cpu"]})", ""),
        std::pair(R"("zip": [{"device": ["cpu", "cuda"], "gpus": [1, 2]}])", "")}) {
    Spec spec =
        parse_spec("s", std::string(R"({"name": "s", "workload": "mnist-mlp", )") + keys + "}");
    set_device(spec, site);
    EXPECT_EQ(spec.fixed.text("device").value_or(""), device) << keys;
    set_device(spec, site_with(""));
    EXPECT_EQ(spec.fixed.text("device").value_or(""), device) << keys;
  }
}

TEST(SitePlan, ASmokeTestIsSmallAndOnWhatTheSiteHas) {
  const auto smoke = [](const std::string& keys) {
    Site site = site_with(keys);
    Spec spec =
        parse_spec("s", R"({"name": "s", "workload": "mnist-mlp", "repeats": 5, "control": true,
        "fixed": {"device": "cuda", "precision": "bf16"},
        "axes": {"gpus": [1, 2], "backend": ["nccl", "mpi"]}})");
    make_smoke_test(spec, site);
    EXPECT_EQ(site.minutes, 10);
    EXPECT_EQ(spec.name, "s.smoke");
    EXPECT_EQ(spec.repeats, 1);
    EXPECT_FALSE(spec.control);
    std::vector<std::string> texts;
    for (const PlannedPoint& each : expand(spec, 8, Unbuilt::keep).points) {
      EXPECT_EQ(each.parameters.text("input"), "synthetic");
      EXPECT_EQ(each.parameters.integer("steps"), 2);
      texts.push_back(each.parameters.text("backend").value_or("") + " " +
                      each.parameters.text("device").value_or("") + " " +
                      each.parameters.text("precision").value_or(""));
    }
    return texts;
  };
  EXPECT_EQ(
      smoke(R"("gpus": {"form": "none"})"),
      (std::vector<std::string>{"ring cpu fp32", "mpi cpu fp32", "ring cpu fp32", "mpi cpu fp32"}));
  EXPECT_EQ(smoke(R"("gpus": {"form": "gres"})"),
            (std::vector<std::string>{"nccl cuda bf16", "mpi cuda bf16", "nccl cuda bf16",
                                      "mpi cuda bf16"}));
}

TEST(SitePlan, TheNodesAreThoseOfProfileOrSlurmOrThisMachine) {
  const Scratch scratch;
  const SlurmCommands no_slurm({{"PATH", scratch.path().string()}});
  const SiteMachine profile = find_target_machine(
      site_with(R"("cores_per_node": 4, "cpus_per_node": 8, "gpus_per_node": 2)"), false, no_slurm,
      3);
  EXPECT_EQ(profile.warning, "");
  EXPECT_EQ(profile.machine.cores, 4);
  EXPECT_TRUE(profile.machine.shares_cores);
  EXPECT_EQ(profile.machine.node->cpus, 8);
  EXPECT_EQ(profile.machine.node->gpus, 2);
  EXPECT_EQ(profile.machine.node->source, "site.json");
  const SiteMachine here = find_target_machine(site_with(""), true, no_slurm, 3);
  EXPECT_EQ(here.machine.cores, 3);
  EXPECT_FALSE(here.machine.shares_cores);
  EXPECT_TRUE(here.machine.node->cores_for_gpus);
  expect_parts(here.warning,
               {"site.json: \"cores_per_node\" is missing", "means 3, as on this machine"});
  EXPECT_FALSE(contains(here.warning, "gpus_per_node")) << "it runs on CPUs";
  const Site with_cores = site_with(R"("cores_per_node": 4, "gpus": {"form": "gres"})");
  EXPECT_TRUE(contains(find_target_machine(with_cores, false, no_slurm, 3).warning,
                       "\"gpus_per_node\" is missing"));
}

TEST(SitePlan, ServicesAreThoseOfAllPoints) {
  EXPECT_EQ(list_services(parse_spec("s", testing::kFourPoints), {8}),
            (std::set<std::string>{"backend=gloo", "backend=mpi", "device=cpu"}));
}

TEST(SitePlan, DataMayBeInAFolderThatOnlyJobsKnow) {
  const Environment environment = {{"SCRATCH", "/s"}};
  struct Row {
    std::string data;
    std::optional<std::string> here;
    std::string note;
  };
  for (const Row& row :
       {Row{"", "",
            "the data set is not on this machine; the jobs look in $PACELINE_DATA and data"},
        Row{"/d", "/d", "the data set is not on this machine; the jobs look in /d (site.json)"},
        Row{"$SCRATCH/d", "/s/d",
            "the data set is not on this machine; the jobs look in $SCRATCH/d (site.json)"},
        Row{"${SCRATCH}/d", "/s/d",
            "the data set is not on this machine; the jobs look in ${SCRATCH}/d (site.json)"},
        Row{"$SCRATCH", "/s",
            "the data set is not on this machine; the jobs look in $SCRATCH (site.json)"},
        Row{"${JOBFS}/d", std::nullopt,
            "data is ${JOBFS}/d in site.json, and JOBFS is not set here: only the jobs look "
            "there"}}) {
    const Site site = site_with(row.data.empty() ? "" : "\"data\": \"" + row.data + "\"");
    EXPECT_EQ(find_data_folder(site, environment), row.here) << row.data;
    EXPECT_EQ(data_note(site, environment), row.note);
  }
  EXPECT_EQ(absent_data_cure(site_with(""), true), "correct --data");
  EXPECT_EQ(absent_data_cure(site_with(""), false),
            "name its folder by --data, or as \"data\" in site.json");
  EXPECT_EQ(absent_data_cure(site_with("\"data\": \"/d\""), false),
            "correct \"data\" in site.json");
}

}  // namespace
}  // namespace paceline
