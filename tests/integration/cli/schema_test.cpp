// paceline list spec|site|record|configuration --json-schema, by a validator of others: it accepts
// what ships, and refuses what the program refuses.
#include <functional>
#include <nlohmann/json.hpp>
#include <sstream>

#include "engine/core/error.h"
#include "engine/core/json.h"
#include "results/run_record.h"
#include "results/shipped.h"
#include "slurm/site.h"
#include "sweeps/spec.h"
#include "tests/integration/cli/paceline.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

const fs::path kSource = PACELINE_SOURCE_DIR;

struct Named {
  std::string name;
  Json value;
};

std::vector<fs::path> json_files(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  }
  return files;
}

Json read_commented(const fs::path& file) {
  return Json::parse(without_comments(read_text(file)));
}

class Schema : public Cli {
 protected:
  void SetUp() override {
    if (shell("python3 -c 'import jsonschema'").code == 0) return;
    python_ = "/usr/bin/python3";
    if (shell(python_ + " -c 'import jsonschema'").code == 0) return;
    GTEST_SKIP() << "python3 has no jsonschema (python3-jsonschema)";
  }

  // Whether the validator says that all of them are what `expected` says.
  void expect_all(const std::string& kind, const std::vector<Named>& documents, bool valid) const {
    Json list = Json::array();
    for (const Named& each : documents)
      list.push_back({{"name", each.name}, {"value", each.value}});
    std::ofstream(folder() / "documents.json") << list.dump();
    std::ofstream(folder() / "schema.json") << succeed("list " + kind + " --json-schema").out;
    const Ran ran = expect_success(shell(python_ + " '" +
                                         (kSource / "tests/integration/cli/validate.py").string() +
                                         "' schema.json documents.json"));
    std::istringstream lines(ran.out);
    std::size_t seen = 0;
    for (std::string line; std::getline(lines, line); ++seen) {
      EXPECT_EQ(line.starts_with("valid "), valid) << line;
    }
    EXPECT_EQ(seen, documents.size());
  }

  // Refused by the program, as by the validator.
  void expect_refused_by_both(const std::string& kind, const std::vector<Named>& documents,
                              const std::function<void(const std::string&)>& parse) const {
    EXPECT_GE(documents.size(), 20U);
    for (const Named& each : documents) {
      EXPECT_THROW(parse(each.value.dump()), Error) << each.name << ": " << each.value.dump();
    }
    expect_all(kind, documents, false);
  }

 private:
  std::string python_ = "python3";
};

// `base` with each patch, which is of RFC 7386: null takes a key away.
std::vector<Named> patched(const Json& base, const std::vector<const char*>& patches) {
  std::vector<Named> documents;
  for (const char* patch : patches) {
    Json document = base;
    document.merge_patch(Json::parse(patch));
    documents.push_back({patch, document});
  }
  return documents;
}

TEST_F(Schema, OfSpecsAcceptsThoseThatShip) {
  std::vector<Named> specs;
  for (const char* folder : {"sweeps", "docs/examples"}) {
    for (const fs::path& file : json_files(kSource / folder)) {
      specs.push_back({file.string(), read_commented(file)});
    }
  }
  EXPECT_GE(specs.size(), 17U);
  for (Named each : std::vector<Named>(specs)) {
    each.value["$schema"] = "spec.schema.json";
    specs.push_back(each);
    const std::string place = (fs::path(each.name).parent_path() / "with.json").string();
    EXPECT_NO_THROW(parse_spec(place, each.value.dump())) << each.name;
  }
  const Json base = Json::parse(
      R"j({"name": "s", "workload": "command", "command": ["./a", "--n={gpus}", "{{x}} {y"]})j");
  for (
      Named& each : patched(
          base,
          {R"j({"results": "keras"})j",
           R"j({"shell": true, "command": "./a | tee b", "setup": "make"})j",
           R"j({"results": {"fit_seconds": {"line": "time: ([0-9.]+)", "pick": "last"}}})j",
           R"j({"results": {"energy": {"key": "e", "unit": "ns/day", "better": "more"}}})j",
           R"j({"command": null, "programs": {"a": {"command": ["a"]}, "b": {"command": ["b"], "processes": "replica"}}})j",
           R"j({"axes": {"gpus": [1, 2], "backend": ["mpi", "mirrored/ring+bf16"], "steps_per_epoch": [10, "20/replicas"]}})j",
           R"j({"zip": [{"gpus": [1, 2], "nodes": [1, 2]}], "exclude": [{"gpus": 2}, "gpus > 4"], "fixed": {"device": "gpu"}})j"})) {
    EXPECT_NO_THROW(parse_spec("s.json", each.value.dump())) << each.name;
    specs.push_back(std::move(each));
  }
  expect_all("spec", specs, true);
}

TEST_F(Schema, OfSpecsRefusesWhatTheProgramRefuses) {
  const Json ours =
      Json::parse(R"j({"name": "s", "workload": "mnist-cnn", "axes": {"gpus": [1, 2]}})j");
  std::vector<Named> wrong = patched(ours, {R"j({"name": null})j",
                                            R"j({"workload": null})j",
                                            R"j({"workload": "mnist"})j",
                                            R"j({"axis": {}})j",
                                            R"j({"axes": []})j",
                                            R"j({"axes": {"gpus": [0]}})j",
                                            R"j({"axes": {"gpus": ["two"]}})j",
                                            R"j({"axes": {"gpus": []}})j",
                                            R"j({"axes": {"gpus": [1, 1]}})j",
                                            R"j({"axes": {"gpus": 2}})j",
                                            R"j({"fixed": {"batch": 3}})j",
                                            R"j({"fixed": {"backend": "mpii"}})j",
                                            R"j({"fixed": {"backend": "mpi/ring"}})j",
                                            R"j({"fixed": {"precision": "fp8"}})j",
                                            R"j({"fixed": {"device": "tpu"}})j",
                                            R"j({"fixed": {"batch_per_replica": 1.5}})j",
                                            R"j({"fixed": {"learning_rate": -1}})j",
                                            R"j({"fixed": {"overlap": "yes"}})j",
                                            R"j({"repeats": 0})j",
                                            R"j({"repeats": "3"})j",
                                            R"j({"order": "random"})j",
                                            R"j({"seed": -1})j",
                                            R"j({"timeout_seconds": 0})j",
                                            R"j({"name": "a b"})j",
                                            R"j({"name": ".a"})j",
                                            R"j({"zip": {}})j",
                                            R"j({"exclude": [{}]})j",
                                            R"j({"include": {"gpus": 4}})j",
                                            R"j({"where": ""})j",
                                            R"j({"set": ["gpus"]})j",
                                            R"j({"control": "yes"})j",
                                            R"j({"command": ["a"]})j",
                                            R"j({"programs": {}})j",
                                            R"j({"gpus": [1]})j",
                                            R"j({"fixed": {"weights": "a\u0001b"}})j",
                                            R"j({"axes": {"verbose": [1, 2]}})j",
                                            R"j({"$schema": 3})j"});
  const Json others = Json::parse(R"j({"name": "s", "workload": "command", "command": ["./a"]})j");
  for (Named& each : patched(
           others, {R"j({"command": null})j",
                    R"j({"axes": {"processes": ["one"]}})j",
                    R"j({"command": "./a"})j",
                    R"j({"command": []})j",
                    R"j({"command": [""]})j",
                    R"j({"command": ["a", 3]})j",
                    R"j({"shell": true})j",
                    R"j({"shell": "yes"})j",
                    R"j({"processes": "all"})j",
                    R"j({"setup": "make"})j",
                    R"j({"command": ["a", "{gpuss}"]})j",
                    R"j({"environment": ["A"]})j",
                    R"j({"environment": {"A=B": "c"}})j",
                    R"j({"programs": {"b": {"command": ["b"]}}})j",
                    R"j({"command": null, "programs": {}})j",
                    R"j({"command": null, "programs": {"b": {"comand": ["b"]}}})j",
                    R"j({"command": null, "programs": {"b c": {"command": ["b"]}}})j",
                    R"j({"results": "kearas"})j",
                    R"j({"results": {"speed": {"line": "a"}}})j",
                    R"j({"results": {"fit_seconds": {"line": "(a)", "key": "b"}}})j",
                    R"j({"results": {"fit_seconds": {}}})j",
                    R"j({"results": {"fit_seconds": {"csv": "a"}}})j",
                    R"j({"results": {"fit_seconds": {"line": "(a)", "file": "b"}}})j",
                    R"j({"results": {"fit_seconds": {"line": "(a)", "pick": "some"}}})j",
                    R"j({"results": {"fit_seconds": {"line": "(a)", "scale": 0}}})j",
                    R"j({"results": {"fit_seconds": {"line": "(a)", "unit": "s"}}})j",
                    R"j({"results": {"fit_seconds": {"key": "a", "among": "b"}}})j",
                    R"j({"results": {"fit_seconds": {"line": "(a)", "not_between": ["b"]}}})j"})) {
    wrong.push_back(std::move(each));
  }
  expect_refused_by_both("spec", wrong,
                         [](const std::string& text) { parse_spec("s.json", text); });
}

TEST_F(Schema, OfSitesAcceptsThoseThatShip) {
  std::vector<Named> sites;
  for (const fs::path& file : json_files(kSource / "slurm/sites")) {
    sites.push_back({file.string(), read_commented(file)});
    sites.back().value["$schema"] = "site.schema.json";
    EXPECT_NO_THROW(parse_site(file.string(), sites.back().value.dump())) << file;
  }
  EXPECT_GE(sites.size(), 8U);
  for (Named& each : patched(
           Json::parse(R"j({"name": "a"})j"),
           {R"j({"container": {"on": true, "command": "srun", "edf": "env"}})j",
            R"j({"container": {"on": true, "image": "a.sif", "overlays": ["b"], "cache": "c"}})j",
            R"j({"node": {"cpu": "EPYC", "memory_gb": 256}, "extra": ["#SBATCH --mem=4G"]})j"})) {
    EXPECT_NO_THROW(parse_site("a.json", each.value.dump())) << each.name;
    sites.push_back(std::move(each));
  }
  expect_all("site", sites, true);
}

TEST_F(Schema, OfSitesRefusesWhatTheProgramRefuses) {
  const std::vector<Named> wrong =
      patched(Json::parse(R"j({"name": "a"})j"),
              {R"j({"name": null})j",
               R"j({"name": ""})j",
               R"j({"name": 3})j",
               R"j({"nmae": "b"})j",
               R"j({"account": "a b"})j",
               R"j({"account": "-A"})j",
               R"j({"partition": ["a"]})j",
               R"j({"description": "two\nlines"})j",
               R"j({"exclusive": "yes"})j",
               R"j({"gpus": {"form": "gpu"}})j",
               R"j({"gpus": "gres"})j",
               R"j({"memory": {"form": "all"}})j",
               R"j({"memory": {"gb_per_replica": 0}})j",
               R"j({"time": {"minutes": 0}})j",
               R"j({"time": {"minutes": 1.5}})j",
               R"j({"time": {"margin": 0.5}})j",
               R"j({"time": {"hours": 1}})j",
               R"j({"array": {"max_size": 1}})j",
               R"j({"extra": ["--mem=4G"]})j",
               R"j({"extra": "#SBATCH -x"})j",
               R"j({"burst_buffer": ["#SBATCH"]})j",
               R"j({"device": "tpu"})j",
               R"j({"gpus_per_node": 0})j",
               R"j({"node": {"cpus": 0}})j",
               R"j({"environment": {"1A": "b"}})j",
               R"j({"unset": ["A-B"]})j",
               R"j({"launcher": "aprun"})j",
               R"j({"container": {"on": true}})j",
               R"j({"container": {"on": true, "image": "a", "edf": "b", "command": "srun"}})j",
               R"j({"container": {"edf": "b"}})j",
               R"j({"container": {"command": "srun", "cache": "b"}})j",
               R"j({"launcher": "mpirun", "container": {"command": "srun"}})j",
               R"j({"$schema": {}})j"});
  expect_refused_by_both("site", wrong,
                         [](const std::string& text) { parse_site("a.json", text); });
}

bool is_record(const Json& json) {
  return json.is_object() && json.contains("schema") && json.contains("kind");
}

TEST_F(Schema, OfRecordsAcceptsThoseThatShip) {
  std::vector<Named> records;
  for (const char* folder : {"tests/fuzz/corpus/record", "results/comparisons"}) {
    for (const fs::path& file : json_files(kSource / folder)) {
      Json json = Json::parse(read_text(file), nullptr, false);
      if (is_record(json)) records.push_back({file.string(), std::move(json)});
    }
  }
  EXPECT_GE(records.size(), 4U);
  for (const auto& entry : fs::directory_iterator(kSource / "results/reference")) {
    if (!is_published(entry.path())) continue;
    for (const Record& record : read_published(entry.path())) {
      records.push_back({record.where(), to_json(*record)});
    }
  }
  EXPECT_GE(records.size(), 300U);
  for (const Named& each : records) {
    EXPECT_NO_THROW(parse_run_record(each.value, each.name)) << each.name;
  }
  expect_all("record", records, true);
}

TEST_F(Schema, OfRecordsRefusesWhatTheProgramRefuses) {
  std::vector<Named> wrong =
      patched(Json::parse(read_text(kSource / "tests/fuzz/corpus/record/measured.json")),
              {R"j({"schema": 2})j",
               R"j({"schema": null})j",
               R"j({"kind": "mesured"})j",
               R"j({"kind": null})j",
               R"j({"status": "done"})j",
               R"j({"status": null})j",
               R"j({"repeat": 0})j",
               R"j({"repeat": null})j",
               R"j({"attempt": "1"})j",
               R"j({"round": 1.5})j",
               R"j({"study": 3})j",
               R"j({"parameters": null})j",
               R"j({"parameters": []})j",
               R"j({"parameters": {"workload": null}})j",
               R"j({"parameters": {"gpus": "2"}})j",
               R"j({"layout": null})j",
               R"j({"layout": {"gpus": 0}})j",
               R"j({"layout": {"ntasks": null}})j",
               R"j({"timing": []})j",
               R"j({"timing": {"fit_seconds": -1}})j",
               R"j({"timing": {"fit_seconds": null}})j",
               R"j({"timing": {"epoch_seconds": 3}})j",
               R"j({"timing": null})j",
               R"j({"throughput": {"samples_per_second": "fast"}})j",
               R"j({"utilization": 1.5})j",
               R"j({"flags": {"resumed": "no"}})j",
               R"j({"gpus": {}})j",
               R"j({"provenance": {"dirty": 1}})j",
               R"j({"provenance": {"hosts": "n1"}})j",
               R"j({"phases": {"input": 1}})j",
               R"j({"quality": {"test_accuracy": 2}})j"});
  for (Named& each :
       patched(Json::parse(read_text(kSource / "tests/fuzz/corpus/record/collective.json")),
               {R"j({"collective": null})j", R"j({"collective": {"rows": []}})j",
                R"j({"provenance": null})j",
                R"j({"collective": {"rows": [{"bytes": 4, "count": 0, "seconds": 1}]}})j",
                R"j({"collective": {"rows": [{"bytes": 4, "count": 1}]}})j"})) {
    wrong.push_back(std::move(each));
  }
  expect_refused_by_both("record", wrong, [](const std::string& text) {
    parse_run_record(Json::parse(text), "r.json");
  });
}

TEST_F(Schema, OfConfigurationsTakesItsKeysOnly) {
  const Json whole = {{"results", "/scratch/$USER"}, {"site", "a.json"}, {"$schema", "s.json"}};
  expect_all("configuration", {{"whole", whole}, {"empty", Json::object()}}, true);
  expect_all("configuration",
             patched(whole, {R"j({"reslts": "a"})j", R"j({"results": ""})j", R"j({"site": 3})j"}),
             false);
}

TEST_F(Schema, IsOfFourKinds) {
  expect_refused("list spec", 64, {"spec is listed as a JSON Schema only", "--json-schema"});
  expect_refused("list backends --json-schema", 64,
                 {"is for spec, site, record and configuration"});
  expect_refused("list record --json-schema --json", 64, {"--json"});
}

}  // namespace
}  // namespace paceline
