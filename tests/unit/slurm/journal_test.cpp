#include "slurm/journal.h"

#include <gtest/gtest.h>

#include "tests/support/expect_error.h"
#include "tests/support/scratch.h"
#include "tests/unit/slurm/samples.h"

namespace paceline {
namespace {

class JournalTest : public ::testing::Test {
 protected:
  StudyPlan plan_ = make_plan(parse_spec("s", kFourPoints));
  std::vector<JobArray> arrays_ = make_submission(plan_, site_with("")).arrays;

  std::filesystem::path study() const { return scratch_ / "s"; }
  std::filesystem::path file() const { return study() / "slurm" / "journal.jsonl"; }

  void send_two() {
    Journal journal(study());
    journal.begin("S", "spec.json", "site.json");
    for (int i = 0; i < 2; ++i) {
      const JobArray& array = arrays_[static_cast<std::size_t>(i)];
      journal.planned("S", array, list_elements(plan_, resolve_points(plan_), array));
      journal.sending("S", array.name);
      if (i == 0) journal.sent("S", array.name, 17);
    }
  }

  Scratch scratch_;
};

TEST_F(JournalTest, WhatWasSentIsReadAgain) {
  EXPECT_TRUE(Journal(study()).empty());
  send_two();
  const Journal journal(study());
  ASSERT_EQ(journal.arrays().size(), 2U);
  const SentArray& first = journal.arrays()[0];
  EXPECT_EQ(first.job, 17);
  EXPECT_EQ(first.shape, "1 node, 1 task of 2 CPUs");
  ASSERT_EQ(first.elements.size(), 6U);
  const Element& element = first.elements[0];
  const PlannedPoint& planned = plan_.expansion.points[arrays_[0].runs[0].point];
  EXPECT_EQ(element.point, planned.point.text());
  EXPECT_EQ(element.parameters, planned.parameters);
  EXPECT_EQ(element.study + element.workload, "smnist-mlp");
  EXPECT_EQ(element.identity, "id-" + planned.point.text());
  EXPECT_EQ(journal.arrays()[1].job, 0) << "cut off before Slurm answered";
  EXPECT_TRUE(journal.arrays()[1].called);
  EXPECT_EQ(journal.jobs(), std::vector<std::int64_t>{17});
}

TEST_F(JournalTest, ALineThatWasCutOffSpoilsNoOther) {
  send_two();
  std::ofstream(file(), std::ios::app) << R"({"time": "x", "event": "sent", "ses)";
  EXPECT_EQ(Journal(study()).arrays().size(), 2U);
  Journal(study()).sent("S", arrays_[1].name, 18);
  EXPECT_EQ(Journal(study()).jobs(), (std::vector<std::int64_t>{17, 18}));
}

TEST_F(JournalTest, AForeignLineIsNamed) {
  send_two();
  std::ofstream(file(), std::ios::app) << "{\"event\": 7}\n";
  expect_error(ErrorKind::input, {"damaged", "journal.jsonl:7", "look at squeue"},
               [&] { Journal journal(study()); });
}

TEST_F(JournalTest, ADamagedJournalIsNotAnEmptyOne) {
  send_two();
  const std::string whole = file_text(file());
  const auto write = [&](const std::string& text) { std::ofstream(file()) << text; };
  const auto expect_damage = [&](const std::string& text, int line) {
    SCOPED_TRACE(text.substr(0, 100));
    write(text);
    expect_error(ErrorKind::input,
                 {"journal.jsonl:" + std::to_string(line) + ": the journal is damaged; ",
                  "look at squeue before you submit again"},
                 [&] { Journal journal(study()); });
  };
  expect_damage("", 1);
  expect_damage(std::string(4096, '\0'), 1);
  expect_damage("rubbish", 1);
  expect_damage("\n", 1);
  expect_damage(whole + std::string(100, '\0'), 7);
  const auto second = whole.find('\n') + 1;
  expect_damage(whole.substr(0, second) + "rubbish\n" + whole.substr(second), 2);
  expect_damage(whole.substr(0, second) + "{\"event\": \"se\n" + whole.substr(second), 2);
  write(whole.substr(0, 20));  // the first line was cut off: nothing was sent yet
  EXPECT_TRUE(Journal(study()).empty());
}

TEST_F(JournalTest, AStudyOfWhichNothingWasSubmitted) {
  expect_error(ErrorKind::input, {"no such study"},
               [&] { need_submissions(Journal(study()), study()); });
  std::filesystem::create_directories(study());
  expect_error(ErrorKind::input, {"was not submitted to Slurm", "paceline submit"},
               [&] { need_submissions(Journal(study()), study()); });
}

}  // namespace
}  // namespace paceline
