#include "engine/core/file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <csignal>

#include "engine/core/json.h"
#include "tests/support/expect_error.h"
#include "tests/support/on_threads.h"
#include "tests/support/scratch.h"
#include "tests/support/why_not.h"

namespace paceline {
namespace {

TEST(File, ReplaceWritesTheWholeAndLeavesNothingElse) {
  const Scratch scratch;
  const auto file = scratch / "a";
  replace_file(file, "one");
  replace_file(file, "two, longer");
  EXPECT_EQ(read_text(file), "two, longer");
  EXPECT_EQ(scratch.files(), 1U);
}

TEST(File, CreateNeverOverwrites) {
  const Scratch scratch;
  const auto file = scratch / "a";
  EXPECT_TRUE(create_file(file, "one"));
  EXPECT_FALSE(create_file(file, "two"));
  EXPECT_EQ(read_text(file), "one");
  EXPECT_EQ(scratch.files(), 1U);
}

TEST(File, OfRacingCreatorsExactlyOneWins) {
  const Scratch scratch;
  for (int round = 0; round < 20; ++round) {
    const auto file = scratch / std::to_string(round);
    std::atomic<int> winner{-1}, winners{0}, waiting{0};
    on_threads(4, [&](int i) {
      for (++waiting; waiting < 4;) std::this_thread::yield();
      if (!create_file(file, std::string(10000, static_cast<char>('a' + i)))) return;
      ++winners;
      winner = i;
    });
    EXPECT_EQ(winners, 1);
    EXPECT_EQ(read_text(file), std::string(10000, static_cast<char>('a' + winner)));
  }
  EXPECT_EQ(scratch.files(), 20U);
}

TEST(Folder, FollowsNoLinkBelowIt) {
  namespace fs = std::filesystem;
  const Scratch scratch;
  fs::create_directories(scratch / "real/logs");
  fs::create_directories(scratch / "mine/deep");
  replace_file(scratch / "mine/precious", "precious");
  fs::create_directory_symlink("real", scratch / "study");  // above: the user's own
  fs::create_directory_symlink("../mine", scratch / "real/runs");
  fs::create_symlink("../../mine/precious", scratch / "real/logs/a.log");
  fs::create_symlink("../../mine/new", scratch / "real/logs/dangling.log");
  const Folder study(scratch / "study");
  const auto refused = [&](const std::string& name, const std::function<void()>& work) {
    expect_error(ErrorKind::input,
                 {"a link is here", (scratch / "study" / name).string(), "remove"}, work);
  };
  refused("logs/a.log", [&] { study.open_new("logs/a.log"); });
  refused("logs/a.log", [&] { study.open_to_append("logs/a.log"); });
  refused("logs/dangling.log", [&] { study.open_new("logs/dangling.log"); });
  refused("runs", [&] { study.open_new("runs/p.start"); });
  refused("runs", [&] { study.remove("runs/deep"); });
  refused("runs", [&] { study.make_folder("runs/p"); });
  refused("runs", [&] { study.create_file("runs/p/1.1.json", "x"); });
  refused("runs", [&] { study.replace_file("runs/p.json", "x"); });
  expect_error(ErrorKind::input, {"cannot be written"}, [&] { study.make_folder("../out"); });
  study.remove("runs");  // the link itself
  EXPECT_EQ(read_text(scratch / "mine/precious"), "precious");
  EXPECT_TRUE(fs::exists(scratch / "mine/deep"));
  EXPECT_FALSE(fs::exists(scratch / "mine/new"));

  fs::create_hard_link(scratch / "mine/precious", scratch / "real/logs/b.log");
  refused("logs/b.log", [&] { study.open_to_append("logs/b.log"); });
  EXPECT_TRUE(study.open_new("logs/b.log"));
  EXPECT_EQ(read_text(scratch / "mine/precious"), "precious");
  EXPECT_TRUE(study.create_file("p/1.1.json", "x"));
  EXPECT_FALSE(study.create_file("p/1.1.json", "y"));
  study.replace_file("p/1.1.json", "z");
  EXPECT_EQ(read_text(scratch / "real/p/1.1.json"), "z");
  study.make_folder("p/q/r");
  fs::create_directory_symlink("../../../mine", scratch / "real/p/q/mine");
  study.remove("p");
  study.remove("p");
  EXPECT_FALSE(fs::exists(scratch / "real/p"));
  EXPECT_EQ(read_text(scratch / "mine/precious"), "precious");
}

TEST(Folder, KnowsThatItWasMovedOrRemoved) {
  namespace fs = std::filesystem;
  const Scratch scratch;
  const Folder study(scratch / "a/b");
  EXPECT_TRUE(study.is_at_path());
  fs::rename(scratch / "a/b", scratch / "c");
  EXPECT_FALSE(study.is_at_path());
  EXPECT_EQ(study.find_path(), scratch / "c");
  EXPECT_TRUE(study.create_file("record", "x"));
  EXPECT_EQ(read_text(scratch / "c/record"), "x");
  fs::create_directory(scratch / "a/b");
  EXPECT_FALSE(study.is_at_path()) << "another of its name";
  fs::remove_all(scratch / "c");
  EXPECT_TRUE(study.find_path().empty());
  expect_error(ErrorKind::input, {"cannot be written"}, [&] { study.create_file("record", "x"); });
}

TEST(File, UnwritablePlacesAreNamed) {
  const Scratch scratch;
  const auto file = scratch / "absent" / "a";
  expect_error(ErrorKind::input, {"cannot be written", "absent", "check the path"},
               [&] { replace_file(file, "x"); });
  expect_error(ErrorKind::input, {"cannot be written"}, [&] { create_file(file, "x"); });
  replace_file(scratch / "file", "x");
  expect_error(ErrorKind::input, {"folder cannot be created"},
               [&] { make_folder(scratch / "file" / "below"); });
  expect_error(ErrorKind::input, {"folder cannot be created", "/file"},
               [&] { make_folder(scratch / "file"); });
  make_folder(scratch / "p" / "q");
  make_folder(scratch / "p" / "q");
  EXPECT_TRUE(std::filesystem::is_directory(scratch / "p" / "q"));
}

// In a child that may write files of at most 4096 bytes, as on a full file system: the write comes
// back short and then fails.
TEST(File, FullTargetKeepsTheOldContentAndNoRemains) {
  const Scratch scratch;
  const auto file = scratch / "a";
  replace_file(file, "old");
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{4096, 4096};
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) _exit(2);
    for (const bool create : {false, true}) {
      try {
        const std::string large(10000, 'x');
        create ? (void)create_file(scratch / "b", large) : replace_file(file, large);
        _exit(3);
      } catch (const Error& error) {
        if (error.kind() != ErrorKind::input) _exit(4);
      }
    }
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(read_text(file), "old");
  EXPECT_EQ(scratch.files(), 1U);
}

TEST(File, FullDeviceReportsToFreeSpace) {
  const Scratch scratch;
  // The temporary name is made beside the file, so a full device is met through a tiny tmpfs.
  const std::string script =
      "mount -t tmpfs -o size=8k none " + scratch.path().string() + " 2>/dev/null";
  const std::string refused = why_not("unshare -rm sh -c '" + script + "'");
  if (!refused.empty()) GTEST_SKIP() << "no right to make a mount namespace: " << refused;
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
  const std::string run = script + " && PACELINE_FULL=" + scratch.path().string() + " " + program +
                          " --gtest_filter=File.DISABLED_Inside --gtest_also_run_disabled_tests";
  EXPECT_EQ(std::system(("unshare -rm sh -c '" + run + "' >/dev/null").c_str()), 0);
}

// Run by the test above, in the mount namespace.
TEST(File, DISABLED_Inside) {
  const char* folder = std::getenv("PACELINE_FULL");
  ASSERT_NE(folder, nullptr);
  const std::filesystem::path file = std::filesystem::path(folder) / "a";
  replace_file(file, "old");
  expect_error(ErrorKind::input, {"No space left", "free some space"},
               [&] { replace_file(file, std::string(100'000, 'x')); });
  EXPECT_EQ(read_text(file), "old");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1);
}

}  // namespace
}  // namespace paceline
