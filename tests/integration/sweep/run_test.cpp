// Real runs of a small study: resumed, failing, interrupted.
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "engine/core/clock.h"
#include "tests/integration/sweep/paceline.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

class Sweep : public SmallStudy {
 protected:
  // point and repeat of each run that a dry run says is to be made, with the reason.
  std::map<std::string, std::string> to_make() const {
    const Ran ran = succeed({"--dry-run", "--json"});
    std::map<std::string, std::string> reasons;
    const auto plan = nlohmann::json::parse(ran.out);
    for (const auto& run : plan.at("runs")) {
      if (run.at("state") == "done") continue;
      const std::string point = run.at("point"), why = run.at("why");
      reasons[point + " repeat " + std::to_string(run.at("repeat").get<int>())] = why;
    }
    return reasons;
  }
};

// "[ 1/10] ...": the lines of finished runs.
std::vector<std::string> finished_runs(const std::string& text) {
  std::vector<std::string> lines;
  for (const std::string& line : split(text, '\n')) {
    if (line.starts_with("[")) lines.push_back(line);
  }
  return lines;
}

TEST_F(Sweep, AControlIsRunAndIsNoResult) {
  write_spec(R"("axes": {"gpus": [1]}, "repeats": 3)");
  const Ran ran = succeed({"--control"});
  EXPECT_EQ(completed().size(), 6U);
  EXPECT_TRUE(fs::exists(study() / "gpus=1,control=true/3.1.json"));
  EXPECT_EQ(to_make().size(), 0U);  // of the spec itself
  const auto report = nlohmann::json::parse(file_text(study() / "report/report.json"));
  const auto& table = report.at("tables").at(0);
  ASSERT_EQ(table.at("rows").size(), 1U);
  EXPECT_EQ(table["rows"][0].at("runs"), 3);
  ASSERT_EQ(table.at("controls").size(), 1U);
  EXPECT_EQ(table["controls"][0].at("runs"), 3);
}

TEST_F(Sweep, ASecondCallMakesExactlyWhatIsMissing) {
  const std::string mpi = is_built("mpi") ? R"(, "mpi")" : "";
  write_spec(R"("axes": {"gpus": [1, 2], "backend": ["self", "mirrored")" + mpi +
             R"(]}, "exclude": [{"gpus": 2, "backend": "self"}], "repeats": 2)");
  const std::size_t runs = is_built("mpi") ? 10 : 6;
  const Ran first = succeed();
  EXPECT_EQ(finished_runs(first.err).size(), runs);
  expect_parts(first.out, {"mirrored", "speed-up", "report.csv"});
  EXPECT_EQ((first.out + first.err).find('\033'), std::string::npos) << "no colours in a pipe";
  EXPECT_EQ((first.out + first.err).find('\r'), std::string::npos);
  EXPECT_EQ(completed().size(), runs);
  EXPECT_TRUE(to_make().empty());
  EXPECT_TRUE(fs::exists(study() / "plan.json"));  // by which reports know what is missing
  const auto spec = nlohmann::json::parse(file_text(study() / "spec.json"));
  EXPECT_EQ(spec.at("repeats"), 2) << "by which others can run the same";

  const std::string removed = "gpus=2,cpus_per_task=2,backend=mirrored";
  const std::string cut = "gpus=1,cpus_per_task=1,backend=self";
  fs::remove(study() / removed / "2.1.json");
  fs::resize_file(study() / cut / "1.1.json", 300);
  const auto reasons = to_make();
  ASSERT_EQ(reasons.size(), 2u);
  EXPECT_EQ(reasons.at(removed + " repeat 2"), "no record");
  expect_parts(reasons.at(cut + " repeat 1"), {"its record cannot be used"});

  const Ran second = succeed({"--no-report"});
  EXPECT_EQ(finished_runs(second.err).size(), 2u);
  expect_parts(second.err,
               {"2 to do", "to run: " + removed + " repeat 2: no record",
                "to run: " + cut + " repeat 1: ", (study() / cut / "1.1.json").string()});
  EXPECT_EQ(second.out, "");
  EXPECT_EQ(completed().size(), runs);
  EXPECT_TRUE(to_make().empty());
  EXPECT_EQ(finished_runs(sweep({"--no-report"}).err).size(), 0u);
}

TEST_F(Sweep, RunsOfAnotherMachineAreNotDoneAndShareNoRow) {
  write_spec(R"("axes": {"backend": ["self"]}, "repeats": 2)");
  ASSERT_EQ(sweep({"--no-report"}).code, 0);
  const fs::path file = study() / *completed().begin();
  auto record = nlohmann::json::parse(file_text(file));
  record["provenance"]["cpu_model"] = "Z80";
  std::ofstream(file) << record.dump();
  const std::string line = "note: 1 run of another machine (Z80, ";
  expect_parts(sweep({"--dry-run"}).out, {line, ") is not counted", "1 of 2 done"});
  EXPECT_EQ(to_make().size(), 1U);
  const Ran again = succeed();
  expect_parts(again.err, {line, "2 runs, 1 done already, 1 to do"});
  EXPECT_TRUE(to_make().empty());
  EXPECT_TRUE(again.out.find("\nWarning: runs of two machines are mixed: ") != std::string::npos)
      << again.out;
  const auto report = nlohmann::json::parse(file_text(study() / "report/report.json"));
  EXPECT_EQ(report.at("tables").at(0).at("rows").size(), 2U);
}

TEST_F(Sweep, SetMakesOtherRunsAndReportsWhatChanged) {
  write_spec(R"("axes": {"backend": ["self"]})");
  ASSERT_EQ(sweep({"--no-report"}).code, 0);
  const Ran ran = succeed({"--no-report", "--set", "steps=30"});
  expect_parts(ran.err, {"1 to do", "steps was 20, is 30"});
  const Ran more = sweep({"--no-report", "--set", "seed=1,2"});
  EXPECT_EQ(finished_runs(more.err).size(), 2u) << more.err;
}

TEST_F(Sweep, AFailingPointIsRecordedAndTheOthersComplete) {
  write_spec(R"("axes": {"weights": ["none", "/no/such.h5"]})");
  const Ran ran = sweep();
  EXPECT_EQ(ran.code, 1) << ran.err;
  expect_parts(ran.err, {"/no/such.h5 repeat 1 failed: ", "1 of 2 runs failed"});
  EXPECT_EQ(completed().size(), 1u);
  int failed = 0;
  for (const Record& record : load_store(study()).records) {
    if (record->completed()) continue;
    ++failed;
    EXPECT_EQ(record->status, "failed");
    expect_parts(record->reason, {"/no/such.h5"});
  }
  EXPECT_EQ(failed, 1);
  const Ran again = sweep({"--no-report"});
  EXPECT_EQ(again.code, 1);
  EXPECT_EQ(finished_runs(again.err).size(), 1u) << "only the failed one";
}

TEST_F(Sweep, APointThatCannotRunHereIsLeftOutBeforeTheFirstRun) {
  write_spec(R"("axes": {"gpus": [1, 4096], "backend": ["mirrored"]})");
  const std::vector<std::string> set = {"--no-report", "--set", "oversubscribe=false"};
  const Ran ran = succeed(set);
  expect_parts(ran.err,
               {"note: cannot run here, left out: gpus=4096,", "4096 replicas of 1 CPU each",
                "--set oversubscribe=true", "small: 1 run, 0 done"});
  EXPECT_EQ(load_store(study()).records.size(), 1u);
  EXPECT_EQ(file_text(study() / "plan.json").find("4096"), std::string::npos)
      << "no report misses it";
  const Ran none = sweep({"--set", "oversubscribe=false", "--set", "gpus=4096"});
  EXPECT_EQ(none.code, 64);
  expect_parts(none.err, {"no points here", "4096 replicas"});
}

TEST_F(Sweep, AResultsFolderThatIsAFile) {
  write_spec(R"("axes": {"backend": ["self"]})");
  std::ofstream(results()) << "mine";
  const Ran ran = sweep();
  EXPECT_EQ(ran.code, 65);
  EXPECT_EQ(lines_in(ran.err), 1u) << ran.err;
  expect_parts(ran.err, {"paceline: ", results().string()});
  EXPECT_EQ(file_text(results()), "mine");
}

TEST_F(Sweep, ATimeoutEndsARun) {
  write_spec(R"("axes": {"backend": ["self"]})");
  const Ran ran = sweep({"--set", "steps=10000000", "--timeout", "1"});
  EXPECT_EQ(ran.code, 1) << ran.err;
  expect_parts(ran.err, {"timed out: took longer than 1"});
  ASSERT_EQ(load_store(study()).records.size(), 1u);
  EXPECT_EQ(load_store(study()).records[0]->status, "timeout");
}

// Processes whose command line names this folder.
std::vector<std::string> list_processes(const fs::path& folder) {
  std::vector<std::string> found;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string pid = entry.path().filename().string();
    if (!to_integer(pid) || pid == std::to_string(getpid())) continue;
    if (file_text(entry.path() / "cmdline").find(folder.string()) != std::string::npos) {
      found.push_back(pid);
    }
  }
  return found;
}

template <typename Condition>
bool comes_true(const Condition& condition, double seconds) {
  const double start = now_seconds();
  while (!condition()) {
    if (now_seconds() - start > seconds) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return true;
}

TEST_F(Sweep, InterruptedItLeavesNoProcessAndNoRecord) {
  write_spec(R"("axes": {"gpus": [2], "backend": [")" +
             std::string(is_built("mpi") ? "mpi" : "mirrored") + "\"]}");
  Child child(command({"--set", "steps=10000000", "--no-report"}));
  ASSERT_TRUE(comes_true([&] { return list_processes(study()).size() >= 1; }, 120));
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));  // let the ranks meet and train
  child.signal(SIGINT);
  ChildEnd end;
  ASSERT_TRUE(comes_true([&] { return child.ended(end); }, 120));
  EXPECT_EQ(end.exit_code, 128 + SIGINT);
  EXPECT_TRUE(comes_true([&] { return list_processes(study()).empty(); }, 60));
  const StoreContent store = load_store(study());
  EXPECT_TRUE(store.records.empty());
  EXPECT_TRUE(store.rejected.empty());
}

}  // namespace
}  // namespace paceline
