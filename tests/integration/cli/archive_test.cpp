// archive and merge as a user has them: two sites make one study with one table.
#include <nlohmann/json.hpp>

#include "engine/core/text.h"
#include "results/expected_runs.h"
#include "results/run_record.h"
#include "results/store.h"
#include "tests/integration/cli/paceline.h"
#include "tests/unit/results/sample_record.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

class CliArchive : public Cli {
 protected:
  // Runs of `gpus` at a site whose machines have this CPU.
  void run_at(const std::string& site, const std::string& cpu, int gpus, double seconds) const {
    const Store store(folder() / site);
    for (int repeat = 1; repeat <= 3; ++repeat) {
      Json json = sample_record({.gpus = gpus,
                                 .repeat = repeat,
                                 .fit_seconds = seconds + 0.01 * repeat,
                                 .backend = gpus == 1 ? "self" : "mpi",
                                 .session = "session of " + site});
      json["provenance"]["cpu_model"] = cpu;
      store.write(fmt_point(gpus), repeat, json, "samples");
    }
  }

  static std::string fmt_point(int gpus) { return "gpus=" + std::to_string(gpus); }

  void plan_at(const std::string& site) const {
    ExpectedRuns plan{"quick", "mnist-cnn", 3, {}};
    for (const int gpus : {1, 2, 4}) {
      plan.points.emplace_back();
      plan.points.back().set("gpus", std::int64_t{gpus});
      plan.points.back().set("cpus_per_task", std::int64_t{1});
      plan.points.back().set("backend", std::string(gpus == 1 ? "self" : "mpi"));
    }
    write_expected_runs(folder() / site, plan);
  }
};

TEST_F(CliArchive, TwoSitesMakeOneStudy) {
  run_at("a", "A CPU", 1, 10);
  run_at("a", "A CPU", 2, 5.5);
  run_at("b", "B CPU", 2, 4);
  run_at("b", "B CPU", 4, 2.2);
  plan_at("a");
  plan_at("b");
  const Ran wrote = succeed("archive a --out a.tar.zst");
  EXPECT_EQ(wrote.err, "");
  EXPECT_TRUE(wrote.out.starts_with("a.tar.zst: study quick, 6 records (6 completed), 13 files, "))
      << wrote.out;
  expect_parts(wrote.out, {"9 runs planned, 3 missing:\n  gpus=4,backend=mpi repeat 1, 2, 3\n"
                           "6 completed runs of A CPU\n"});
  expect_refused("archive a --out a.tar.zst", 65, {"a.tar.zst", "exists already"});

  const Ran manifest = paceline("archive b --out b.tar.gz --json");
  EXPECT_EQ(nlohmann::json::parse(manifest.out).at("missing").at(0).at("point"),
            "gpus=1,backend=self");
  EXPECT_EQ(shell("tar -tf b.tar.gz").out.substr(0, 21), "quick/manifest.json\nq");

  const Ran listed = shell("TZ=UTC tar --numeric-owner -tvf b.tar.gz");
  std::size_t dated = 0;
  for (const std::string& line : split(listed.out, '\n')) {
    dated += line.starts_with("-rw-r--r-- 0/0 ") && contains(line, " 1970-01-01 00:00 ") ? 1 : 0;
  }
  EXPECT_EQ(dated, 14U) << "of nobody and of no time: " << listed.out;

  succeed("archive b --out b.tar.xz");
  expect_parts(paceline("merge b.tar.xz other --dry-run").out, {"6 would be added"});

  const Ran dry = succeed("merge a.tar.zst b.tar.gz both --dry-run");
  expect_parts(dry.out, {"b.tar.gz: 6 runs, 6 would be added, 0 there already\n"
                         "  3 of them as another attempt"});
  EXPECT_FALSE(fs::exists(folder() / "both"));
  const Ran merged = succeed("merge a.tar.zst b.tar.gz both");
  expect_parts(merged.out, {"both: study quick, 12 records (12 completed)\n"
                            "9 runs planned, none missing\n"
                            "6 completed runs of A CPU\n6 completed runs of B CPU\n"});

  Json other = sample_record();
  other["study"] = "other";
  Store(folder() / "c").write("gpus=1", 1, other, "");
  succeed("archive c --out c.tar.gz");
  expect_refused("merge a.tar.zst c.tar.gz third", 65,
                 {"c.tar.gz", "is of study other, not quick"});
  EXPECT_FALSE(fs::exists(folder() / "third"));
  expect_refused("merge c.tar.gz both", 65, {"c.tar.gz", "is of study other, not quick"});

  // The table keeps the machines apart, and compares none with the other.
  const auto report = nlohmann::json::parse(succeed("report both --format json").out);
  std::size_t rows = 0;
  for (const auto& table : report.at("tables")) {
    for (const auto& row : table.at("rows")) {
      if (row.at("runs") == 0) continue;  // what is planned and B has not
      ++rows;
      const std::string system = row.at("system");
      EXPECT_TRUE(system == "A CPU" || system == "B CPU") << row;
      EXPECT_EQ(row.at("runs"), 3);
      const bool has_base = row.contains("speed_up") && !row.at("speed_up").is_null();
      EXPECT_EQ(has_base, system == "A CPU") << "B has no run of one replica: " << row;
    }
  }
  EXPECT_EQ(rows, 4U);
}

TEST_F(CliArchive, AnswersForScripts) {
  run_at("a", "A CPU", 1, 10);
  succeed("archive a --out a.tar.gz");
  auto json = nlohmann::json::parse(paceline("merge a.tar.gz new --json").out);
  EXPECT_EQ(json.at("study"), "quick");
  EXPECT_EQ(json.at("archives").at(0).at("added"), 3);
  EXPECT_TRUE(json.at("missing").is_null()) << "there is no plan";
  json = nlohmann::json::parse(paceline("merge a.tar.gz new --json --dry-run").out);
  EXPECT_EQ(json.at("archives").at(0).at("known"), 3);
  EXPECT_EQ(json.at("dry_run"), true);
}

TEST_F(CliArchive, WhatIsWrongIsReportedInALine) {
  run_at("a", "A CPU", 1, 10);
  expect_refused("archive a", 64, {"--out"});
  expect_refused("archive a --out a.zip", 64, {"a.zip", ".tar.zst, .tar.gz or .tar.xz"});
  expect_refused("archive none --out a.tar.gz", 65, {"none", "no such study"});
  expect_refused("archive results/reference/cassava-resnet50 --out a.tar.gz", 65,
                 {"cassava-resnet50", "holds a published table, which has no runs"});
  succeed("archive a --out a.tar.gz");
  expect_refused("merge a.tar.gz", 64, {"folder is missing"});
  expect_refused("merge a.tar.gz a.tar.gz", 64, {"folder is missing"});
  expect_refused("merge b.tar.gz new", 65, {"b.tar.gz", "no such file"});
  succeed("merge a.tar.gz there");
  EXPECT_EQ(shell("cd there && paceline archive . --out ../c.tar.gz").code, 0);
  expect_refused("merge <(cat a.tar.gz) new", 65, {"not a regular file"});
  expect_refused("merge a/gpus=1/1.1.json new", 65, {"cannot be read"});
  EXPECT_FALSE(fs::exists(folder() / "new"));
  const Ran held = shell("mkdir new; exec 9> new/.lock; flock 9; paceline merge a.tar.gz new");
  EXPECT_EQ(held.code, 65);
  expect_parts(held.err, {"another command"});
  succeed("merge a.tar.gz new");
}

// A cut anywhere leaves the study as it was.
// As report --anonymous shows them.
TEST_F(CliArchive, AnAnonymousArchiveNamesNobody) {
  Json json = sample_record({.gpus = 1});
  json["provenance"]["command"] =
      "/home/alice/bin/paceline train mnist-cnn --data /scratch/alice/mnist";
  json["provenance"]["allocation"] = {{"job", "8675309"}, {"cluster", "fjord"}, {"node", "n0555"}};
  Store(folder() / "a").write("gpus=1", 1, json, "samples");
  plan_at("a");
  expect_parts(succeed("archive a --anonymous --out a.tar.zst").err, {"left out: plan.json"});
  succeed("merge a.tar.zst out");
  const std::string record = file_text(folder() / "out/gpus=1/1.1.json");
  expect_parts(record, {"paceline train mnist-cnn", "samples"});
  for (const char* name : {"alice", "scratch", "8675309", "fjord", "n0555"}) {
    EXPECT_FALSE(contains(record, name)) << name;
  }
  EXPECT_TRUE(fs::exists(folder() / "out/gpus=1/1.1.steps.gz"));
}

TEST_F(CliArchive, AnArchiveThatIsCutIsRefused) {
  run_at("a", "A CPU", 1, 10);
  for (const std::string ending : {"zst", "gz", "xz"}) {
    const std::string name = "a.tar." + ending;
    succeed("archive a --out " + name);
    const auto size = fs::file_size(folder() / name);
    for (const std::uintmax_t cut : {size - 1, size / 2, size / 10}) {
      fs::resize_file(folder() / name, cut);
      expect_refused("merge " + name + " new", 65, {name});
    }
    EXPECT_FALSE(fs::exists(folder() / "new"));
  }
}

}  // namespace
}  // namespace paceline
