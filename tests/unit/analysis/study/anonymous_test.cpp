#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "analysis/report.h"
#include "analysis/study/study.h"
#include "engine/core/json.h"
#include "engine/facts/timing.h"
#include "tests/unit/analysis/samples.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

Json telling_record(Json json) {
  json["provenance"]["hosts"] = {"gpu017.big.cluster.org", "gpu018.big.cluster.org"};
  json["provenance"]["command"] =
      "/home/alice/paceline/bin/paceline train mnist-cnn --gpus=2 --data=/scratch/proj42/mnist "
      "--cache-dir=proj42/cache --store=/home/alice/results";
  json["provenance"]["backend_used"] = "gloo over eth0 of gpu017, log in /home/alice/x.log";
  json["provenance"]["allocation"] = {{"job", "12345"},
                                      {"cluster", "bigiron"},
                                      {"partition", "proj42-gpu"},
                                      {"nodes", "gpu[017-018]"},
                                      {"modules", "/sw/proj42/gcc"}};
  json["provenance"]["libraries"] = "made by alice@cluster.org on big.cluster.org";
  return json;
}

std::vector<Json> telling_study() {
  std::vector<Json> records;
  for (const Json& json : drifting_study()) records.push_back(telling_record(json));
  Json failed = telling_record(sample_record({.gpus = 4}));
  failed["status"] = "failed";
  failed["reason"] = "gpu018: no file file:///home/alice/data/x (see ../proj42/log)";
  records.push_back(failed);
  return records;
}

const char* const kSecrets[] = {"alice", "gpu017", "gpu018",   "bigiron",    "proj42",
                                "12345", "/home",  "/scratch", "cluster.org"};

TEST(Anonymous, NoFormatReportsHostsUsersAccountsOrPaths) {
  const Scratch folder;
  const fs::path study = folder / "home/alice/quick";
  const Store store(study);
  for (const Json& json : telling_study()) store.write(json["point"], json["repeat"], json, "");
  std::ofstream(study / "9.1.json") << "{\"schema\": 1, ";
  for (const Format format :
       {Format::text, Format::markdown, Format::csv, Format::json, Format::html, Format::latex}) {
    ReportOptions options;
    options.format = format;
    options.anonymous = true;
    std::ostringstream stream;
    write_report({study}, options, stream);
    for (const char* secret : kSecrets) {
      EXPECT_EQ(stream.str().find(secret), std::string::npos)
          << static_cast<int>(format) << " tells " << secret << "\n"
          << stream.str().substr(std::max<std::size_t>(60, stream.str().find(secret)) - 60, 120);
    }
    EXPECT_EQ(stream.str().find(folder.path().string()), std::string::npos)
        << static_cast<int>(format);
  }
  ReportOptions open;
  open.format = Format::json;
  std::ostringstream stream;
  write_report({study}, open, stream);
  EXPECT_NE(stream.str().find("gpu017"), std::string::npos);  // unless it was asked for
}

TEST(Anonymous, KeepsWhatIsMeasured) {
  const StoreContent content =
      anonymous(canonical_content({telling_record(sample_record({.gpus = 2}))}));
  ASSERT_EQ(content.records.size(), 1U);
  const Record& record = content.records[0];
  EXPECT_EQ(record->parameters.text("backend"), "mpi");
  EXPECT_EQ(record->timing->fit_seconds, 10);
  EXPECT_EQ(record.json()["provenance"]["hosts"][1], "host-2");
  EXPECT_EQ(record.json()["provenance"]["cpu_model"], "A CPU");
}

TEST(Anonymous, AHostMayBeCalledAsABackendIs) {
  Json json = sample_record({.gpus = 2});
  json["provenance"]["hosts"] = {"mpi", "measured"};
  const StoreContent content = anonymous(canonical_content({json}));
  EXPECT_EQ(content.records[0]->parameters.text("backend"), "mpi");
  EXPECT_EQ(content.records[0]->kind, "measured");
}

TEST(Anonymous, BackendsAndRatiosAreNoPaths) {
  const Disguise hide({});
  EXPECT_EQ(hide("mirrored/mpi at 3/4, and/or ~ 5"), "mirrored/mpi at 3/4, and/or ~ 5");
  EXPECT_EQ(hide("see /a/b/c.json, line 3"), "see c.json, line 3");
  EXPECT_EQ(hide("--data=rel/ative/mnist --gpus=2"), "--data=mnist --gpus=2");
  EXPECT_EQ(hide("(~/x/y)"), "(y)");
  EXPECT_EQ(hide("/"), "/");
  EXPECT_EQ(hide("rank 0 at 10.0.0.17, Gloo 2.6.3"), "rank 0 at an address, Gloo 2.6.3");
}

TEST(Anonymous, JobsAndPagesAreHidden) {
  const Disguise hide({});
  EXPECT_EQ(hide("state TIMEOUT, job 998877_3: see JobId=998877"),
            "state TIMEOUT, job N: see job N");
  EXPECT_EQ(hide("this job did 12 runs, jobs 3"), "this job did 12 runs, jobs 3");
  EXPECT_EQ(hide("from https://uni.edu/~alice/hush?x=1, table 2"), "from a URL, table 2");
  Json json = telling_record(sample_record({.gpus = 2}));
  json["reason"] = "ended with 12345";
  json["provenance"]["source"] = "https://uni.edu/~bob/hush";
  const StoreContent content = anonymous(canonical_content({json}));
  EXPECT_EQ(content.records[0].json()["reason"], "ended with N");
  EXPECT_EQ(content.records[0].json()["provenance"]["source"], "a URL");
}

}  // namespace
}  // namespace paceline
