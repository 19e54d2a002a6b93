#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

#include "sweeps/inventory.h"
#include "sweeps/runner.h"
#include "tests/support/as_nobody.h"
#include "tests/unit/results/sample_record.h"
#include "tests/unit/sweeps/samples.h"

namespace paceline {
namespace {

TEST(StudyLock, MakesTheFolderAndRefusesASecondOne) {
  const Scratch folder;
  const auto study = folder / "results" / "study";
  {
    const StudyLock lock(study);
    EXPECT_EQ(lock.folder().path(), study);
    expect_parts(catch_error([&] { StudyLock second(study); }),
                 {"another command", "process " + std::to_string(getpid()) + " on ", study.string(),
                  "use another folder"});
    EXPECT_EQ(catch_error([&] { StudyLock other(folder / "other"); }), "");
  }
  EXPECT_EQ(catch_error([&] { StudyLock again(study); }), "");
}

TEST(StudyLock, LeavesNothingWhereNothingWasWritten) {
  namespace fs = std::filesystem;
  const Scratch folder;
  const auto study = folder / "results" / "local" / "study";
  { const StudyLock lock(study); }
  EXPECT_FALSE(fs::exists(folder / "results"));
  fs::create_directory(folder / "results");
  { const StudyLock lock(study); }
  EXPECT_TRUE(fs::is_empty(folder / "results"));
  {
    const StudyLock lock(study);
    std::ofstream(study / "plan.json") << "{}";
  }
  EXPECT_TRUE(fs::exists(study / "plan.json"));
}

TEST(StudyLock, GoesWithAProcessThatIsKilled) {
  const Scratch folder;
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    const StudyLock lock(folder / "study");
    if (write(ready[1], "x", 1) != 1) _exit(1);
    while (true) pause();
  }
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  expect_parts(catch_error([&] { StudyLock second(folder / "study"); }),
               {"process " + std::to_string(child)});
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_EQ(catch_error([&] { StudyLock second(folder / "study"); }), "");
  close(ready[0]);
  close(ready[1]);
}

TEST(StudyLock, AFileWhereTheFolderShouldBe) {
  const Scratch folder;
  std::ofstream(folder / "file") << "x";
  expect_parts(catch_error([&] { StudyLock lock(folder / "file" / "study"); }), {"file"});
  std::filesystem::create_directories(folder / "study" / ".lock");
  expect_parts(catch_error([&] { StudyLock lock(folder / "study"); }),
               {"cannot be locked", (folder / "study").string(), "another folder"});
}

TEST(StudyLock, FollowsNoLink) {
  namespace fs = std::filesystem;
  const Scratch folder;
  const auto lock = folder / "study" / ".lock";
  fs::create_directories(folder / "study");
  std::ofstream(folder / "precious") << "precious";
  const std::string refusal = "the study's lock is not a plain file";
  fs::create_symlink(folder / "precious", lock);
  expect_parts(catch_error([&] { StudyLock study(folder / "study"); }), {refusal, lock.string()});
  fs::remove(lock);
  fs::create_symlink(folder / "dangling", lock);
  expect_parts(catch_error([&] { StudyLock study(folder / "study"); }), {refusal});
  EXPECT_FALSE(fs::exists(folder / "dangling"));
  fs::remove(lock);
  fs::create_hard_link(folder / "precious", lock);
  expect_parts(catch_error([&] { StudyLock study(folder / "study"); }), {refusal});
  fs::remove(lock);
  ASSERT_EQ(mkfifo(lock.c_str(), 0600), 0);
  expect_parts(catch_error([&] { StudyLock study(folder / "study"); }), {refusal});
  std::string text;
  std::getline(std::ifstream(folder / "precious") >> std::ws, text);
  EXPECT_EQ(text, "precious");
}

TEST(StudyLock, IsOfAllWhomTheUmaskAllows) {
  namespace fs = std::filesystem;
  const Scratch folder;
  fs::create_directory(folder / "study");
  const mode_t before = umask(002);
  { const StudyLock lock(folder / "study"); }
  umask(before);
  const auto file = folder / "study" / ".lock";
  EXPECT_EQ(fs::status(file).permissions() & fs::perms::all, fs::perms{0664});
  // One of an older version is locked all the same.
  fs::permissions(file, fs::perms{0644});
  fs::permissions(folder.path(), fs::perms{0755});
  fs::permissions(folder / "study", fs::perms{0777});
  {
    const AsNobody nobody;
    EXPECT_EQ(catch_error([&] { StudyLock lock(folder / "study"); }), "");
    const StudyLock lock(folder / "study");
    expect_parts(catch_error([&] { StudyLock second(folder / "study"); }), {"another command"});
  }
}

TEST(HeldSignals, WaitUntilTheyAreTaken) {
  HeldSignals signals;
  EXPECT_EQ(signals.take(), 0);
  raise(SIGTERM);  // would end this program
  EXPECT_EQ(signals.take(), SIGTERM);
  EXPECT_EQ(signals.take(), 0);
}

}  // namespace
}  // namespace paceline
