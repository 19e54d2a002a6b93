#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <set>

#include "engine/core/error.h"
#include "engine/facts/rank.h"
#include "results/run_record.h"
#include "results/store.h"
#include "tests/support/expect_error.h"
#include "tests/unit/results/sample_record.h"

namespace paceline {
namespace {

using testing::sample_record;

std::string refusal(const Json& json) {
  return catch_error(ErrorKind::input, [&] { Record record(json, "file.json"); });
}

Json with(const std::string& pointer, Json value) {
  Json json = sample_record();
  json[Json::json_pointer(pointer)] = std::move(value);
  return json;
}

TEST(Record, GivesTypedAccess) {
  Json json = sample_record({.gpus = 2, .fit_seconds = 7.5});
  json["provenance"]["dirty"] = true;
  json["flags"]["synthetic"] = true;
  const Record record(json, "file.json");
  EXPECT_EQ(record->workload, "mnist-cnn");
  EXPECT_EQ(record->build(), "0.1.0 abc (dirty)");
  EXPECT_EQ(record->task_layout().ntasks, 2);
  EXPECT_TRUE(record->task_layout().replicas_are_cores);
  EXPECT_TRUE(record->flags.synthetic);
  EXPECT_FALSE(record->flags.resumed);
  EXPECT_DOUBLE_EQ(record->timing->fit_seconds.value(), 7.5);
  EXPECT_EQ(record->parameters.text(),
            "gpus=2,cpus_per_task=1,backend=mpi,precision=fp32,batch_per_replica=64,epochs=2,"
            "learning_rate=0.001");
  const Record copy = record;
  EXPECT_EQ(copy.json(), record.json());
}

// Schema 3 has lists over ranks in several sections, each where it always was.
TEST(Record, ListsOverRanksKeepTheirPlaces) {
  RunRecord record = parse_run_record(sample_record({.gpus = 2}), "a file");
  *record.each_rank = {{.host = "n1", .affinity = "0", .phases = PhaseSeconds{.step = 2}},
                       {.host = "n2", .affinity = "1", .ready_batches = 0.5}};
  record.provenance.libraries = "oneDNN";
  record.provenance.cpu_model = "a CPU";
  record.provenance.data_set = "a set";
  const Json json = to_json(record);
  EXPECT_NE(json["provenance"].dump().find(
                R"("libraries":"oneDNN","hosts":["n1","n2"],"cpu_model":"a CPU")"),
            std::string::npos);
  EXPECT_NE(json["provenance"].dump().find(R"("affinity":["0","1"],"data_set":"a set")"),
            std::string::npos);
  EXPECT_NE(json.dump().find(R"(},"phases":[{"input":0,)"), std::string::npos) << json.dump();
  EXPECT_EQ(json["phases"].size(), 1U);
  EXPECT_EQ(json["input"]["ready_batches"].dump(), "[null,0.5]");
  EXPECT_EQ(json.count("host") + json.count("ready_batches"), 0U);
  const RunRecord back = parse_run_record(json, "a file");
  EXPECT_FALSE(back.each_rank->at(0).ready_batches);
  EXPECT_EQ(back.each_rank->at(1).ready_batches, 0.5);
  record.each_rank->clear();
  EXPECT_FALSE(to_json(record).contains("input"));
}

// A list over ranks at the top must not hide another fact.
TEST(Record, FactsOfRanksHaveNamesOfTheirOwn) {
  RunRecord record;
  std::set<std::string> names;
  visit_facts(record, [&](const FactInfo& fact, const auto&) { names.insert(fact.name); });
  RankFacts rank;
  visit_facts(rank, [&](const FactInfo& fact, const auto&) {
    EXPECT_TRUE(fact.rule.list || names.insert(fact.name).second) << fact.name;
  });
}

// What is written again says the same: no key of a record that this repository holds is unknown.
void expect_kept(const Json& before, const Json& after, const std::string& key) {
  if (before.is_null() || (before.is_string() && before.get<std::string>().empty())) return;
  if (before.is_structured()) {
    for (const auto& [name, value] : before.items()) {
      const bool there = after.is_array() ? std::stoul(name) < after.size() : after.contains(name);
      const bool kept = there || value.is_null() || value.empty() || value == Json("");
      EXPECT_TRUE(kept) << key << "/" << name << " is lost";
      if (!there) continue;
      expect_kept(value, after.is_array() ? after[std::stoul(name)] : after[name],
                  key + "/" + name);
    }
  } else if (before.is_number()) {
    EXPECT_NEAR(before.get<double>(), after.get<double>(), 1e-6 * std::abs(before.get<double>()))
        << key;
  } else {
    EXPECT_EQ(before, after) << key;
  }
}

TEST(Record, OfThisRepositoryIsWrittenAsItWasRead) {
  const std::filesystem::path source = PACELINE_SOURCE_DIR;
  StoreContent content = load_store(source / "results/reference");
  EXPECT_TRUE(content.rejected.empty());
  EXPECT_GE(content.records.size(), 41U);
  std::size_t made = 0;
  for (const char* folder : {"results/comparisons/allreduce", "tests/fuzz/corpus/record"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(source / folder)) {
      if (entry.path().extension() != ".json") continue;
      content.records.push_back(read_record(entry.path()));
      ++made;
    }
  }
  EXPECT_GE(made, 7U);
  for (const Record& record : content.records) {
    const Json again = to_json(*record);
    Json before = record.json();
    before.erase("thinned");
    if (record->kind == "published") before["provenance"].erase("scaling_as_published");
    expect_kept(before, again, record.where());
    EXPECT_EQ(to_json(parse_run_record(again, "again")), again) << record.where();
  }
}

TEST(Record, KeepsParametersItDoesNotKnow) {
  EXPECT_EQ(Record(with("/parameters/of_the_future", 3), "f")->parameters.text(),
            Record(sample_record(), "f")->parameters.text());
}

Json collective() {
  Json json = sample_record();
  json["kind"] = "collective";
  json.erase("timing");
  json["collective"] = {{"dtype", "f32"},
                        {"library", "MPI_Allreduce"},
                        {"rows", {{{"bytes", 4096}, {"count", 1024}, {"seconds", 1e-6}}}}};
  return json;
}

TEST(Record, OfACollectiveHasRowsWithTimes) {
  EXPECT_EQ(refusal(collective()), "");
  const auto broken = [](const char* pointer, Json value) {
    Json json = collective();
    json[Json::json_pointer(pointer)] = std::move(value);
    return refusal(json);
  };
  expect_parts(broken("/collective", nullptr), {"/collective/rows"});
  expect_parts(broken("/collective/rows", Json::array()), {"missing"});
  expect_parts(broken("/collective/rows/0", 3), {"should be an object"});
  expect_parts(broken("/collective/rows/0/seconds", 0), {"must be positive"});
  expect_parts(broken("/collective/rows/0/bytes", nullptr), {"missing"});
  expect_parts(broken("/collective/rows/0/wrong", -1), {"negative"});
  expect_parts(broken("/collective/rows/0/label", 7), {"text"});
}

struct Bad {
  const char* pointer;
  Json value;
  const char* said;
};

TEST(Record, NamesFileAndKeyOfBadValues) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Bad cases[] = {
      {"/timing/fit_seconds", -3.0, "cannot be negative: -3.0"},
      {"/timing/fit_seconds", 0, "must be positive"},
      {"/timing/fit_seconds", 1e-320, "cannot be "},  // the rate of which is infinite
      {"/timing/fit_seconds", nullptr, "is missing"},
      {"/timing/fit_seconds", "10", "should be a number"},
      {"/timing/fit_seconds", nan, "not a finite number"},
      {"/timing/first_epoch_seconds", -0.5, "cannot be negative"},
      {"/phases/0/input", -1e-9, "cannot be negative"},
      {"/straggler", "rank 3", "should be an object"},
      {"/straggler", Json{{"rank", -1}}, "cannot be negative: -1"},
      {"/straggler", Json{{"rank", 3}, {"phase", 1}}, "should be a text"},
      {"/straggler", Json{{"rank", 3}, {"share_of_step", 0}}, "must be positive"},
      {"/input", 3, "should be an object"},
      {"/input/cache", 3, "should be a text"},
      {"/input/cold", "yes", "should be true or false"},
      {"/input/decode_seconds", -1, "cannot be negative"},
      {"/input/decoded_bytes", "many", "should be a number"},
      {"/input/resident_share", 1.5, "from 0 to 1"},
      {"/provenance/machine_load", "quiet", "should be an object"},
      {"/provenance/machine_load", Json{{"busy", "yes"}}, "should be true or false"},
      {"/provenance/machine_load", Json{{"other_cpu_share", 2}}, "from 0 to 1"},
      {"/probe/flops_per_second", nan, "not a finite number"},
      {"/quality/test_accuracy", 98.4, "should be from 0 to 1"},
      {"/quality/test_top5", -0.1, "should be from 0 to 1"},
      {"/quality/until", "0.98", "should be an object"},
      {"/quality/until", Json{{"reached", "yes"}}, "true or false"},
      {"/quality/until", Json{{"fit_seconds", 0}}, "must be positive"},
      {"/layout/gpus", 0, "at least 1"},
      {"/layout/gpus", 1.5, "whole number"},
      {"/layout/gpus", 4e18, "whole number"},
      {"/repeat", nullptr, "is missing"},
      {"/kind", "guessed", "unknown kind"},
      {"/status", "done", "unknown status"},
      {"/parameters/gpus", "two", "wrong type"},
      {"/parameters/workload", nullptr, "is missing"},
      {"/flags/resumed", "no", "true or false"},
      {"/study", 4, "should be a text"},
  };
  for (const Bad& bad : cases) {
    const std::string said = refusal(with(bad.pointer, bad.value));
    EXPECT_NE(said.find(bad.said), std::string::npos) << bad.pointer << ": " << said;
    expect_parts(said, {std::string("file.json, key ") + bad.pointer});
  }
}

TEST(Record, RefusesAnotherSchema) {
  expect_parts(refusal(with("/schema", 4)), {"schema 4, newer than this build reads (3)"});
  for (const int older : {1, 2}) {
    EXPECT_EQ(refusal(with("/schema", older)),
              fmt::format("file.json, key /schema: the record has schema {}, older than this build "
                          "reads (3); remove it, and run its point again",
                          older));
  }
  expect_parts(refusal(Json::array()), {"not a record"});
  expect_parts(refusal(Json::object()), {"no schema"});
}

TEST(Record, AFailedRunNeedsNoTiming) {
  Json json = sample_record();
  json["status"] = "failed";
  json.erase("timing");
  EXPECT_EQ(refusal(json), "");
}

std::string refusal_of_text(const std::string& text) {
  const Scratch folder;
  const auto file = folder / "1.1.json";
  std::ofstream(file) << text;
  const std::string line = catch_error(ErrorKind::input, [&] { read_record(file); });
  EXPECT_TRUE(line.empty() || contains(line, file.string())) << line;
  return line;
}

TEST(Record, RefusesBadFiles) {
  const std::string whole = sample_record().dump();
  EXPECT_EQ(refusal_of_text(whole), "");
  for (const std::size_t cut :
       {std::size_t{0}, std::size_t{1}, whole.size() / 2, whole.size() - 1}) {
    EXPECT_NE(refusal_of_text(whole.substr(0, cut)).find("not JSON"), std::string::npos) << cut;
  }
  expect_parts(refusal_of_text(whole + std::string(kRecordLimitBytes, ' ')), {"larger than"});
  expect_parts(refusal_of_text("{\"schema\": 1, \"schema\": 1}"), {"given twice"});
  expect_parts(refusal_of_text("{\"schema\": NaN}"), {"not JSON"});
  expect_parts(refusal_of_text("{\"schema\": 1, \"x\": 1e999}"), {"not JSON"});
}

}  // namespace
}  // namespace paceline
