#include <gtest/gtest.h>

#include "engine/core/file.h"
#include "tests/support/scratch.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

fs::path executable() {
  return fs::read_symlink("/proc/self/exe");
}

// The loader of this program, as the kernel mapped it.
std::string loader() {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    const std::size_t slash = line.find('/');
    if (slash == std::string::npos) continue;
    const fs::path file = line.substr(slash);
    if (file.filename().string().rfind("ld-", 0) == 0) return file.string();
  }
  return "";
}

// What a program started by `command` takes for its file; see Told below.
bool distinguishes(const std::string& command, const fs::path& expected) {
  const std::string run =
      "PACELINE_EXPECTED=" + expected.string() + " " + command +
      " --gtest_also_run_disabled_tests --gtest_filter=ProgramFile.DISABLED_Told > /dev/null";
  return std::system(run.c_str()) == 0;
}

TEST(ProgramFile, IsTheExecutable) {
  EXPECT_EQ(program_file(), executable());
}

TEST(ProgramFile, IsNotTheLoader) {
  ASSERT_NE(loader(), "");
  EXPECT_TRUE(distinguishes(loader() + " " + executable().string(), executable()));
}

TEST(ProgramFile, OfABundleIsItsScript) {
  const Scratch scratch;
  const fs::path program = scratch / "libexec" / "tool";
  fs::create_directories(program.parent_path());
  fs::copy_file(executable(), program);
  EXPECT_TRUE(distinguishes(program.string(), program)) << "without a script";
  const fs::path starter = scratch / "bin" / "tool";
  fs::create_directories(starter.parent_path());
  std::ofstream(starter) << "#!/bin/sh\n";
  EXPECT_TRUE(distinguishes(program.string(), starter));
  EXPECT_TRUE(distinguishes(loader() + " " + program.string(), starter));
}

// Run by the tests above.
TEST(ProgramFile, DISABLED_Told) {
  const char* expected = std::getenv("PACELINE_EXPECTED");
  ASSERT_NE(expected, nullptr);
  EXPECT_EQ(program_file(), expected);
}

}  // namespace
}  // namespace paceline
