#include "slurm/site.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/expect_error.h"

namespace paceline {
namespace {

TEST(Site, ReadsEveryKey) {
  const Site site = parse_site("s.json", R"({
    "name": "all", "description": "d", "account": "a1@v100", "partition": "gpu", "qos": "q",
    "constraint": "a100&ib", "hint": "nomultithread", "exclusive": true, "ntasks_per_node": false,
    "requeue": true, "device": "cuda", "cores_per_node": 40,
    "cpus_per_node": 80, "gpus_per_node": 4, "error_file": true, "reference": false,
    "gpus": {"form": "gpus-per-task", "type": "v100"},
    "memory": {"form": "mem-per-gpu", "gb_per_replica": 2.5, "gb_per_cpu": 3},
    "time": {"minutes": 5, "margin": 2, "most_minutes": 100, "signal_seconds": 0},
    "array": {"throttle": 2, "max_size": 300, "max_submit": 50},
    "modules": {"purge": true, "load": ["gcc/12", "openmpi"]},
    "environment": {"A_B": "$SCRATCH/x"}, "unset": ["http_proxy"], "setup": ["ulimit -c 0"],
    "data": "/data", "stage": "$TMPDIR", "program": "/bin/paceline",
    "launcher": "mpirun", "launcher_options": ["--mca", "btl", "tcp,self"],
    "container": {"on": true, "command": "singularity", "image": "i.sif", "nv": false,
                  "overlays": ["o:ro"], "binds": ["/b"], "cache": "/c"},
    "burst_buffer": ["#DW jobdw"], "extra": ["#SBATCH --mail-type=FAIL"]})");
  EXPECT_EQ(site.account, "a1@v100");
  EXPECT_EQ(site.constraint, "a100&ib");
  EXPECT_TRUE(site.exclusive && !site.ntasks_per_node && site.requeue && !site.reference);
  EXPECT_TRUE(site.error_file);
  EXPECT_EQ(site.gpu_form, GpuForm::gpus_per_task);
  EXPECT_EQ(site.gpu_type, "v100");
  EXPECT_EQ(site.memory_form, MemoryForm::mem_per_gpu);
  EXPECT_EQ(site.gb_per_replica, 2.5);
  EXPECT_EQ(site.gb_per_cpu, 3);
  EXPECT_EQ(site.cores_per_node, 40);
  EXPECT_EQ(site.cpus_per_node, 80);
  EXPECT_EQ(site.gpus_per_node, 4);
  EXPECT_EQ(site.minutes, 5);
  EXPECT_EQ(site.margin, 2);
  EXPECT_EQ(site.most_minutes, 100);
  EXPECT_EQ(site.signal_seconds, 0);
  EXPECT_EQ(site.throttle, 2);
  EXPECT_EQ(site.max_array_size, 300);
  EXPECT_EQ(site.max_submit, 50);
  EXPECT_EQ(site.modules, (std::vector<std::string>{"gcc/12", "openmpi"}));
  EXPECT_EQ(site.environment.at("A_B"), "$SCRATCH/x");
  EXPECT_EQ(site.launcher, JobLauncher::mpirun);
  EXPECT_EQ(site.launcher_options.size(), 3U);
  EXPECT_EQ(site.container.command, "singularity");
  EXPECT_EQ(site.burst_buffer.size() + site.extra.size() + site.setup.size(), 3U);
}

TEST(Site, MpirunHasNoOptionsOfSrun) {
  EXPECT_TRUE(parse_site("s", R"({"name": "a", "launcher": "mpirun"})").launcher_options.empty());
  EXPECT_EQ(parse_site("s", R"({"name": "a"})").launcher_options.front(), "--mpi=pmix");
}

TEST(Site, MistakesNameKeyFileLineAndTheNearest) {
  const auto refused = [](const std::string& keys, const std::vector<std::string>& parts) {
    SCOPED_TRACE(keys);
    expect_error(ErrorKind::input, parts,
                 [&] { parse_site("my.json", "{\"name\": \"x\",\n" + keys + "}"); });
  };
  refused("\"acount\": \"a\"",
          {"unknown key \"acount\"", "my.json:2", "did you mean \"account\"?"});
  refused("\"gpus\": {\n\"from\": \"gres\"}", {"\"from\"", "my.json:3", "did you mean \"form\"?"});
  refused("\"gpus\": {\"form\": \"gress\"}",
          {"form cannot be \"gress\"", "my.json:2", "\"gres\"?"});
  refused("\"memory\": {\"form\": \"memory\"}", {"form cannot be \"memory\"", "mem"});
  refused("\"time\": {\"minutes\": 0}", {"minutes must be a whole number from 1", "my.json:2"});
  refused("\"time\": {\"minutes\": \"5\"}", {"minutes must be a whole number"});
  refused("\"time\": {\"margin\": 0.5}", {"margin must be a number from 1"});
  refused("\"exclusive\": \"yes\"", {"exclusive must be true or false"});
  refused("\"unset\": [\"a b\"]", {"\"a b\" is not a variable name"});
  refused("\"environment\": {\"A=B\": \"x\"}", {"\"A=B\" is not a variable name"});
  refused("\"extra\": [\"rm -rf x\"]", {"must begin with #SBATCH", "setup"});
  refused("\"burst_buffer\": [\"DW\"]", {"must begin with #BB or #DW"});
  refused("\"container\": {\"on\": true}", {"container has no image"});
  refused(R"("container": {"on": true, "edf": "e"})", {"edf is of srun's containers"});
  refused(R"("container": {"on": true, "command": "srun", "edf": "e", "image": "i"})",
          {"has image and edf"});
  refused(R"("container": {"on": true, "command": "srun", "image": "i", "cache": "/c"})",
          {"have no overlays and no cache"});
  refused(R"("launcher": "mpirun", "container": {"on": true, "command": "srun", "image": "i"})",
          {"need launcher srun"});
  refused("\"modules\": [\"a\"]", {"modules must be an object"});
  refused("\"name\": \"y\"", {"\"name\"", "my.json:2"});
  expect_error(ErrorKind::input, {"\"name\" is missing"}, [] { parse_site("m", "{}"); });
  expect_error(ErrorKind::usage, {"cudda", "cuda"},
               [] { parse_site("m", R"({"name": "x", "device": "cudda"})"); });
}

TEST(Site, OptionsCannotHoldMoreThanOneWord) {
  for (const char* key : {"account", "partition", "qos", "constraint", "hint"}) {
    for (const char* value : {"a b", "a;b", "$(id)", "`id`", "-a", "a\\nb", "a'b", "#", "a\\\"b"}) {
      expect_error(ErrorKind::input, {key, "my.json:1"}, [&] {
        parse_site("my.json", std::string("{\"name\": \"x\", \"") + key + "\": \"" + value + "\"}");
      });
    }
  }
}

TEST(Site, WhatIsStillToBeFilledIn) {
  using Texts = std::vector<std::string>;
  const auto site_with = [](const std::string& keys) {
    return parse_site("s.json", R"({"name": "s", )" + keys + "}");
  };
  EXPECT_EQ(list_placeholders(site_with(R"("account": "abc", "data": "$SCRATCH/data")")), Texts{});
  EXPECT_EQ(list_placeholders(site_with(R"("account": "XXX@v100", "data": "<yours>/data")")),
            (Texts{"account is XXX@v100", "data is <yours>/data"}));
  for (const char* text : {"TODO", "YOUR_ACCOUNT", "your-project", "CHANGEME", "project_FIXME"}) {
    const std::string account = std::string("\"account\": \"") + text + '"';
    EXPECT_EQ(list_placeholders(site_with(account)).size(), 1U) << text;
  }
  EXPECT_TRUE(list_placeholders(site_with(R"("account": "yourk42_todorov")")).empty());
  EXPECT_EQ(list_placeholders(site_with(R"("extra": ["#SBATCH --reservation=XXX"])")),
            Texts{"extra is #SBATCH --reservation=XXX"});
}

TEST(Site, EveryProfileThatWeShipReads) {
  int count = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(PACELINE_SOURCE_DIR "/slurm/sites")) {
    const Site site = read_site(entry.path());
    EXPECT_EQ(site.name, entry.path().stem().string());
    EXPECT_FALSE(site.description.empty()) << site.name;
    ++count;
  }
  EXPECT_GE(count, 7);
}

}  // namespace
}  // namespace paceline
