#include "results/store.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <memory>
#include <set>
#include <thread>

#include "engine/core/error.h"
#include "engine/core/hash.h"
#include "engine/facts/rank.h"
#include "results/expected_runs.h"
#include "results/run_record.h"
#include "results/step_samples.h"
#include "tests/support/as_nobody.h"
#include "tests/support/expect_error.h"
#include "tests/unit/results/sample_record.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

TEST(Store, WritesSamplesThenARecordThatNamesThem) {
  const Scratch folder;
  const Store store(folder / "quick");
  Json json = sample_record({.repeat = 3});
  json.erase("attempt");
  const fs::path file = store.write("gpus=1", 3, json, "compressed");
  EXPECT_EQ(file, folder.path() / "quick/gpus=1/3.1.json");
  const Record record = read_record(file);
  EXPECT_EQ(record->attempt, 1);
  EXPECT_EQ(record.json()["samples"]["file"], "3.1.steps.gz");
  EXPECT_EQ(record.json()["samples"]["bytes"], 10);
  EXPECT_EQ(record.json()["samples"]["xxh3"], hash_hex("compressed"));
  EXPECT_EQ(read_text(file.parent_path() / "3.1.steps.gz"), "compressed");
  EXPECT_EQ(store.write("gpus=1", 3, json, "again").filename(), "3.2.json");
  EXPECT_EQ(store.write("gpus=1", 3, json, "").filename(), "3.3.json");
  EXPECT_TRUE(read_record(folder.path() / "quick/gpus=1/3.3.json").json()["samples"].is_null());
}

TEST(Store, RefusesARecordThatCouldNotBeReadBack) {
  const Scratch folder;
  const Store store(folder / "quick");
  Json json = sample_record();
  json["timing"]["fit_seconds"] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THROW(store.write("p", 1, json, "samples"), Error);
  json = sample_record();
  json["padding"] = std::string(kRecordLimitBytes, 'x');
  EXPECT_THROW(store.write("p", 1, json, "samples"), Error);
  EXPECT_FALSE(fs::exists(folder.path() / "quick/p"));
}

TEST(Store, KeepsOfLongRunsOfManyRanksWhatFits) {
  const Scratch folder;
  Json json = sample_record({.gpus = 300});
  for (int epoch = 0; epoch < 1000; ++epoch) {
    json["quality"]["epochs"].push_back(
        {{"train_loss", 1.0 / (epoch + 1)}, {"test_accuracy", 0.123456}});
    json["timing"]["epoch_seconds"].push_back(1.2345678);
  }
  json["timing"]["step_seconds"] = Json::array();
  for (int rank = 0; rank < 300; ++rank) {
    json["timing"]["step_seconds"].push_back(
        {{"p50", rank == 117 ? 2.0 : 1.0}, {"p95", 3.1234567}});
    json["provenance"]["implementations"].push_back("layer " + std::to_string(rank) + ": a kernel");
  }
  const fs::path file = Store(folder / "s").write("p", 1, json, "");
  EXPECT_LE(fs::file_size(file), kRecordLimitBytes);
  EXPECT_GT(fs::file_size(file), kRecordLimitBytes / 3);
  const Json kept = read_record(file).json();
  EXPECT_EQ(kept["thinned"]["quality/epochs"], 1000);
  EXPECT_EQ(kept["ranks"]["count"], 300);
  EXPECT_EQ(kept["quality"]["epochs"].front()["epoch"], 1);
  EXPECT_EQ(kept["quality"]["epochs"].back()["epoch"], 1000);
  EXPECT_EQ(kept["quality"]["epochs"].back()["train_loss"], 0.001);
  EXPECT_EQ(kept["timing"]["epoch_seconds"].front(), 1.2345678);
  EXPECT_EQ(kept["ranks"]["step_seconds"]["max"]["p50"], 2);
  EXPECT_EQ(kept["ranks"]["step_seconds"]["p95"]["p50"], 1);

  // The same rows of epochs, whatever else there is.
  Json small = sample_record();
  for (int epoch = 0; epoch < 100; ++epoch) small["quality"]["epochs"].push_back({{"a", 1}});
  const Json fewer = read_record(Store(folder / "s").write("p", 2, small, "")).json();
  EXPECT_EQ(fewer["quality"]["epochs"].size(), 51U);
  EXPECT_EQ(fewer["quality"]["epochs"][1]["epoch"], 3);
  EXPECT_EQ(fewer["thinned"].size(), 1U);
  EXPECT_FALSE(read_record(Store(folder / "s").write("p", 3, sample_record(), ""))
                   .json()
                   .contains("thinned"));
}

// A rank's facts in words as long as on large machines; rank 2049 computes longest.
Json record_of_4096_ranks() {
  Json json = sample_record({.gpus = 4096});
  json["throughput"]["steps"] = 100;
  for (int rank = 0; rank < 4096; ++rank) {
    const double more = rank == 2049 ? 1.5 : 1 + 1e-6 * rank;
    Json& phases = json["phases"][static_cast<std::size_t>(rank)];
    for (const char* key : {"forward", "backward"}) phases[key] = 3.1415926 * more;
    phases["communication"] = 1 / more;
    phases["step"] = 6.2831852 * more + 1 / more;
    json["timing"]["step_seconds"][static_cast<std::size_t>(rank)] = {
        {"p05", 0.1}, {"p50", 0.1234567 * more}, {"p95", 0.2}, {"p99", 0.2}, {"max", 0.3}};
    json["provenance"]["hosts"][static_cast<std::size_t>(rank)] =
        "node" + std::to_string(1000 + rank / 8) + ".cluster.example";
    json["provenance"]["affinity"][static_cast<std::size_t>(rank)] =
        std::to_string(rank % 8 * 16) + "-" + std::to_string(rank % 8 * 16 + 15);
    json["input"]["ready_batches"][static_cast<std::size_t>(rank)] = 3.9;
  }
  return json;
}

// Gives every fact of a rank a value; numbers of ranks differ.
template <HasFacts Facts>
void fill(Facts& facts, double number) {
  visit_facts(facts, [&]<typename T>(const FactInfo&, T& member) {
    if constexpr (requires { fill(*member, number); }) {
      fill(member.emplace(), number);
    } else if constexpr (std::is_same_v<T, fact::Text>) {
      member = "t";
    } else {
      member = number;
    }
  });
}

// Numbers that differ from `number`, by name.
template <HasFacts Facts>
std::string find_others(const Facts& facts, double number) {
  std::string others;
  visit_facts(facts, [&]<typename T>(const FactInfo& fact, const T& member) {
    if constexpr (requires { find_others(*member, number); }) {
      others += member ? find_others(*member, number) : std::string(fact.name);
    } else if constexpr (!std::is_same_v<T, fact::Text>) {
      if (to_number(member) != number) others += std::string(fact.name) + " ";
    }
  });
  return others;
}

// Whoever adds a fact has it of few and of many ranks.
TEST(Store, EveryFactOfARankIsKept) {
  for (const int count : {2, 8, 9, 4096}) {
    Json sample = sample_record({.gpus = count});
    sample["throughput"]["steps"] = 100;
    RunRecord record = parse_run_record(sample, "a file");
    record.each_rank->resize(static_cast<std::size_t>(count));
    for (int r = 0; r < count; ++r) fill((*record.each_rank)[static_cast<std::size_t>(r)], 0.5 + r);
    Json json = to_json(record);
    const RunRecord listed = parse_run_record(json, "a file");
    ASSERT_EQ(listed.each_rank->size(), static_cast<std::size_t>(count));
    EXPECT_EQ(find_others(listed.each_rank->back(), count - 0.5), "");
    EXPECT_EQ(to_json(listed).dump(), json.dump());
    if (count <= 8) continue;  // never folded
    const std::string lines = fold_rank_lists(json);
    const RunRecord folded = parse_run_record(json, "a file");
    EXPECT_TRUE(folded.each_rank->empty());
    EXPECT_EQ(find_others(folded.ranks->value().spread.min, 0.5), "") << count;
    EXPECT_EQ(find_others((*folded.ranks)->spread.mean, count / 2.0), "") << count;
    EXPECT_EQ(find_others((*folded.ranks)->spread.max, count - 0.5), "") << count;
    EXPECT_EQ(find_others((*folded.ranks)->outliers.front().facts, 0.5), "");
    EXPECT_EQ(folded.max_over_ranks(&RankFacts::ready_batches), count - 0.5);
    EXPECT_EQ(nlohmann::json(to_json(folded)["ranks"]), nlohmann::json(json["ranks"]));
    EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), count);
  }
}

TEST(Store, FactsOf4096RanksFitBySpreadAndOutliers) {
  const Scratch folder;
  Json json = record_of_4096_ranks();
  EXPECT_GT(json.dump().size(), 30 * kRecordLimitBytes);
  const fs::path file = Store(folder / "s").write("p", 1, json, gzip("{\"rank\":0}\n"));
  EXPECT_LE(fs::file_size(file), kRecordLimitBytes / 2);
  const Record record = read_record(file);
  ASSERT_TRUE(*record->ranks);
  EXPECT_TRUE(record->each_rank->empty());
  EXPECT_EQ((*record->ranks)->count, 4096);
  EXPECT_EQ((*record->ranks)->hosts, 512);
  EXPECT_NEAR(*(*record->ranks)->spread.max.step_seconds->p50, 0.1234567 * 1.5, 1e-6);
  EXPECT_NEAR((*record->ranks)->spread.p50.phases->forward, 3.1415926 * 1.002, 0.01);
  const auto& outliers = (*record->ranks)->outliers;
  const auto slowest = std::find_if(outliers.begin(), outliers.end(),
                                    [](const RankOutlier& rank) { return rank.rank == 2049; });
  ASSERT_NE(slowest, outliers.end());
  EXPECT_EQ(slowest->facts.host, "node1256.cluster.example");
  EXPECT_EQ(slowest->facts.affinity, "16-31");
  EXPECT_LE(outliers.size(), 16U);

  // The rest is beside it, before the steps.
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> beside(
      gzopen((file.parent_path() / record->samples->file).c_str(), "rb"), gzclose);
  std::array<char, 4096> line{};
  int ranks = 0, steps = 0;
  while (gzgets(beside.get(), line.data(), static_cast<int>(line.size())) != nullptr) {
    const Json read = Json::parse(line.data());
    if (read.contains("facts_of_rank")) {
      EXPECT_EQ(read["facts_of_rank"], ranks++);
      EXPECT_EQ(read["facts"].size(), 5U);
    } else {
      ++steps;
    }
  }
  EXPECT_EQ(ranks, 4096);
  EXPECT_EQ(steps, 1);
}

TEST(Store, KeepsBytesThatAreNotText) {
  const Scratch folder;
  Json json = sample_record();
  json["provenance"]["command"] = "paceline train \xff";
  const Record record = read_record(Store(folder / "s").write("p", 1, json, ""));
  EXPECT_TRUE(record.json()["provenance"]["command"].is_string());
}

TEST(Store, AFolderThatCannotBeMadeIsBadInput) {
  const Scratch folder;
  std::ofstream(folder / "file") << "in the way";
  expect_error(ErrorKind::input, {"file"},
               [&] { Store(folder / "file/study").write("p", 1, sample_record(), "x"); });
}

void write_many(const Store& store, int count) {
  for (int i = 0; i < count; ++i) {
    store.write("p", 1, sample_record(), "samples " + std::to_string(getpid()));
  }
}

// Every writer found a name of its own, and every record names samples that are its own.
void expect_attempts(const fs::path& study, int count) {
  std::set<int> attempts;
  for (const auto& entry : fs::directory_iterator(study / "p")) {
    ASSERT_EQ(entry.path().string().find(".tmp"), std::string::npos);
    if (entry.path().extension() != ".json") continue;
    const Record record = read_record(entry.path());
    attempts.insert(record->attempt);
    const std::string samples =
        read_text(study / "p" / record.json()["samples"]["file"].get<std::string>());
    EXPECT_EQ(record.json()["samples"]["xxh3"], hash_hex(samples));
  }
  EXPECT_EQ(attempts.size(), static_cast<std::size_t>(count));
}

TEST(Store, ThreadsNeverOverwrite) {
  const Scratch folder;
  const Store store(folder / "s");
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back([&] { write_many(store, 5); });
  for (std::thread& thread : threads) thread.join();
  expect_attempts(folder / "s", 20);
}

TEST(Store, ProcessesNeverOverwrite) {
  const Scratch folder;
  const Store store(folder / "s");
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      try {
        write_many(store, 5);
      } catch (...) {
        _exit(1);
      }
      _exit(0);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  expect_attempts(folder / "s", 20);
}

// A writer without samples may take the record's name between our two writes.
TEST(Store, ASidecarWithoutItsRecordIsTakenBack) {
  const Scratch folder;
  const Store store(folder / "s");
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&store, i] {
      for (int k = 0; k < 8; ++k) store.write("p", 1, sample_record(), i % 2 ? "samples" : "");
    });
  }
  for (std::thread& thread : threads) thread.join();
  int records = 0, sidecars = 0;
  for (const auto& entry : fs::directory_iterator(folder.path() / "s/p")) {
    entry.path().extension() == ".json" ? ++records : ++sidecars;
  }
  EXPECT_EQ(records, 32);
  EXPECT_EQ(sidecars, 16);
}

TEST(Store, LoadsInOrderAndReportsWhatItIgnores) {
  const Scratch folder;
  const Store store(folder / "s");
  for (const int repeat : {10, 2, 1}) {
    store.write("gpus=1", repeat, sample_record({.repeat = repeat}), "");
  }
  store.write("gpus=2", 1, sample_record({.gpus = 2}), "");
  const fs::path points = folder / "s";
  std::ofstream(points / "gpus=2/2.1.json") << sample_record().dump().substr(0, 300);
  std::ofstream(points / "gpus=2/3.1.json.77.0.tmp") << "half";
  std::ofstream(points / "gpus=2/notes.json") << "{}";
  Json newer = sample_record({.gpus = 2, .repeat = 4});
  newer["schema"] = 9;
  std::ofstream(points / "gpus=2/4.1.json") << newer.dump();
  fs::copy_file(points / "gpus=2/1.1.json", points / "gpus=2/5.1.json");
  Json moved = Json::parse(read_text(points / "gpus=2/1.1.json"));
  moved["attempt"] = 3;
  moved["samples"] = nullptr;
  std::ofstream(points / "gpus=2/1.3.json") << moved.dump();
  fs::create_directories(points / "copy");
  fs::copy_file(points / "gpus=2/1.1.json", points / "copy/1.1.json");

  const StoreContent content = load_store(points);
  ASSERT_EQ(content.records.size(), 4U);
  EXPECT_EQ(content.records[1]->repeat, 1);  // after the copy, which came first
  EXPECT_EQ(content.records[2]->repeat, 2);
  EXPECT_EQ(content.records[3]->repeat, 10);
  std::vector<std::string> reasons;
  for (const Rejected& rejected : content.rejected) {
    expect_parts(rejected.reason, {rejected.file.string()});
    reasons.push_back(rejected.reason);
  }
  ASSERT_EQ(reasons.size(), 5U);
  for (const int copy : {0, 1}) expect_parts(reasons[copy], {"is of the same run as"});
  expect_parts(reasons[2], {"not JSON"});
  expect_parts(reasons[3], {"newer"});
  expect_parts(reasons[4], {"its name says otherwise"});
}

TEST(Store, WhatMayNotBeReadIsReported) {
  const Scratch folder;
  const Store store(folder / "s");
  store.write("gpus=1", 1, sample_record(), "");
  store.write("gpus=2", 1, sample_record({.gpus = 2}), "");
  fs::permissions(folder.path(), fs::perms{0755});
  fs::permissions(folder / "s/gpus=2", fs::perms{0700});
  ExpectedRuns plan{"s", "mnist-cnn", 1, {}};
  write_expected_runs(folder / "s", plan);
  const AsNobody nobody;
  StoreContent content = load_store(folder / "s");
  EXPECT_EQ(content.records.size(), 1U);
  ASSERT_EQ(content.rejected.size(), 1U);
  const std::string reason = content.rejected[0].reason;
  expect_parts(reason, {"s/gpus=2: the folder cannot be read: Permission denied"});
  for (const fs::path& study : {folder / "s", folder / "s/", folder.path()}) {
    const auto plans = load_plans({study}, content = load_store(study));
    ASSERT_EQ(plans.size(), 1U) << study;
    EXPECT_EQ(plans[0].unreadable, std::set<std::string>{"gpus=2"}) << study;
    EXPECT_EQ(content.rejected.size(), 1U) << "its plan is not looked for";
  }
  expect_error(ErrorKind::input, {"s/gpus=2/x: Permission denied", "ask its owner"},
               [&] { load_store(folder / "s/gpus=2/x"); });
  expect_error(ErrorKind::input, {"File name too long", "give a shorter name"},
               [&] { load_store(folder / std::string(300, 'n')); });
}

TEST(Store, ReadsOneFileAndAStudyNamedTwiceOnce) {
  const Scratch folder;
  write_record_file(folder / "mine.json", sample_record(), "samples");
  EXPECT_EQ(load_store(folder / "mine.json").records.size(), 1U);
  Store(folder / "s").write("p", 1, sample_record(), "");
  const StoreContent content = load_stores({folder / "s", folder.path(), folder / "s/p/1.1.json"});
  EXPECT_EQ(content.records.size(), 1U);
  EXPECT_TRUE(content.rejected.empty());
  EXPECT_THROW(load_store(folder / "none"), Error);
}

TEST(Store, LinkedFoldersAreOfTheStudyAndLoopsAreCut) {
  const Scratch folder;
  const Store store(folder / "study"), elsewhere(folder / "elsewhere");
  store.write("gpus=1", 1, sample_record({.gpus = 1}), "");
  elsewhere.write("gpus=2", 1, sample_record({.gpus = 2}), "");
  fs::create_directory_symlink(folder / "elsewhere/gpus=2", folder / "study/gpus=2");
  fs::create_directory_symlink("..", folder / "study/gpus=1/up");
  fs::create_directory_symlink("gpus=1", folder / "study/a name of its own");
  fs::create_symlink("nowhere", folder / "study/broken");
  StoreContent content = load_store(folder / "study");
  ASSERT_EQ(content.records.size(), 2U);
  EXPECT_TRUE(content.rejected.empty());
  EXPECT_EQ(content.records[0].where(), (folder / "study/gpus=1/1.1.json").string());
  EXPECT_EQ(content.records[1].where(), (folder / "study/gpus=2/1.1.json").string());
  // A folder of studies, one of them a link.
  fs::create_directory(folder / "all");
  fs::create_directory_symlink(folder / "study", folder / "all/linked");
  EXPECT_EQ(load_store(folder / "all").records.size(), 2U);
}

TEST(Store, WritesThroughNoLinkAndKnowsTheNamesOfRecords) {
  const Scratch folder;
  fs::create_directories(folder / "mine");
  fs::create_directories(folder / "study");
  fs::create_directory_symlink(folder / "mine", folder / "study/gpus=1");
  expect_error(ErrorKind::input, {"a link is here", "study/gpus=1", "remove it"},
               [&] { Store(folder / "study").write("gpus=1", 1, sample_record(), "x"); });
  EXPECT_TRUE(fs::is_empty(folder / "mine"));
  const fs::path file = Store(folder / "study").write("gpus=2", 1, sample_record(), "");
  for (const char* name : {"01.1.json", "1.01.json", "4294967297.1.json", "+1.1.json"}) {
    fs::copy_file(file, file.parent_path() / name);
  }
  const StoreContent content = load_store(folder / "study");
  EXPECT_EQ(content.records.size(), 1U);
  EXPECT_TRUE(content.rejected.empty());
}

TEST(Store, APipeNamedLikeARecordIsReportedAndNotWaitedFor) {
  const Scratch folder;
  Store(folder / "study").write("gpus=1", 1, sample_record(), "");
  ASSERT_EQ(mkfifo((folder / "study/gpus=1/7.1.json").c_str(), 0600), 0);
  const StoreContent content = load_store(folder / "study");
  EXPECT_EQ(content.records.size(), 1U);
  ASSERT_EQ(content.rejected.size(), 1U);
  expect_parts(content.rejected[0].reason, {"not a regular file"});
}

TEST(Store, ManyFilesAreReadByThreadsAndStandInOrder) {
  const Scratch folder;
  for (int repeat = 1; repeat <= 1500; ++repeat) {
    const fs::path file = folder / "study" / "gpus=1" / (std::to_string(repeat) + ".1.json");
    fs::create_directories(file.parent_path());
    std::ofstream(file) << (repeat % 500 == 0 ? "{" : sample_record({.repeat = repeat}).dump());
  }
  for (const RecordParts parts : {RecordParts::all, RecordParts::outcome}) {
    const StoreContent content = load_store(folder / "study", parts);
    ASSERT_EQ(content.records.size(), 1497U);
    ASSERT_EQ(content.rejected.size(), 3U);
    EXPECT_EQ(content.rejected[0].file.filename(), "500.1.json");
    int last = 0;
    for (const Record& record : content.records) {
      EXPECT_GT(record->repeat, last);
      last = record->repeat;
    }
  }
}

// A store of 100,000 records would not fit the memory with the JSON of each.
TEST(Store, TheJsonOfARecordIsReadWhereItIsAskedFor) {
  const Scratch folder;
  Json json = sample_record();
  json["unknown"] = "what another build wrote";
  const fs::path file = Store(folder / "study").write("gpus=1", 1, json, "");
  const Record kept = read_record(file), record = read_record(file);
  EXPECT_EQ(kept.json()["unknown"], "what another build wrote");
  fs::remove(file);
  EXPECT_EQ(kept.json()["unknown"], "what another build wrote");
  EXPECT_EQ(record->gpus.size(), 0U) << "its facts are there";
  EXPECT_THROW(record.json(), Error);
}

TEST(Store, TheOutcomeIsThatOfTheWholeRecord) {
  const Scratch folder;
  Json json = sample_record({.gpus = 2, .repeat = 3});
  json["status"] = "failed";
  json["reason"] = "rank 1, \"killed\"";
  json["provenance"]["data_hash"] = "d";
  json["provenance"]["machine"] = {{"cpus", 64}};
  json["provenance"]["allocation"] = {{"job", "7"}, {"partition", "main"}};
  const fs::path file = Store(folder / "study").write("gpus=2", 3, json, "");
  const Record all = read_record(file), outcome = read_record(file, RecordParts::outcome);
  for (const Record* record : {&all, &outcome}) {
    EXPECT_EQ((*record)->status, "failed");
    EXPECT_EQ((*record)->reason, "rank 1, \"killed\"");
    EXPECT_EQ((*record)->repeat, 3);
    EXPECT_EQ((*record)->identity, "0123456789abcdef");
    EXPECT_EQ((*record)->workload, "mnist-cnn");
    EXPECT_EQ((*record)->build(), "0.1.0 abc");
    EXPECT_EQ((*record)->provenance.data_hash, "d");
    EXPECT_EQ((*record)->provenance.machine.cpus, 64);
    EXPECT_EQ((*record)->provenance.allocation->partition, "main");
    EXPECT_EQ((*record)->timing->fit_seconds, 10);
  }
  EXPECT_EQ(all->each_rank->size(), 2U);
  EXPECT_TRUE(outcome->each_rank->empty()) << "nobody asked for them";
}

TEST(Store, ARecordFileIsNeverOverwritten) {
  const Scratch folder;
  write_record_file(folder / "mine.json", sample_record(), "samples");
  const std::string before = read_text(folder / "mine.json");
  EXPECT_EQ(read_text(folder / "mine.steps.gz"), "samples");
  Json other = sample_record({.fit_seconds = 99});
  EXPECT_THROW(write_record_file(folder / "mine.json", other, "other"), Error);
  EXPECT_EQ(read_text(folder / "mine.json"), before);
  EXPECT_EQ(read_text(folder / "mine.steps.gz"), "samples");
}

}  // namespace
}  // namespace paceline
