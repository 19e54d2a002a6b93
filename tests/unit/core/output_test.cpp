#include "engine/core/output.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

#include "engine/core/error.h"

namespace paceline {
namespace {

TEST(Output, StandardOutputHasNoControlCharacters) {
  testing::internal::CaptureStdout();
  print("{}: {}\n", "a\x1b]0;title\a", "\u009bx");
  OutputStream stream;
  stream << "table\t" << '\r' << 7 << std::flush;
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "a ]0;title :  x\ntable\t 7");
}

TEST(Output, AStreamPassesOnWhatItHasAtItsEnd) {
  testing::internal::CaptureStdout();
  { OutputStream() << "whole"; }
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "whole");
}

TEST(Output, NotesHaveNoneEither) {
  testing::internal::CaptureStderr();
  print_note("{}\n", "x\x1b[2J");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "x [2J\n");
}

// Bold and plain are ours where a terminal takes colours, and those alone.
TEST(Output, ATerminalGetsNoOtherStyle) {
  const int terminal = posix_openpt(O_RDWR | O_NOCTTY);
  if (terminal < 0 || grantpt(terminal) != 0 || unlockpt(terminal) != 0) GTEST_SKIP() << "no pty";
  const int other = open(ptsname(terminal), O_RDWR | O_NOCTTY);
  ASSERT_GE(other, 0);
  setenv("TERM", "xterm", 1);
  unsetenv("NO_COLOR");
  const int kept = dup(STDOUT_FILENO);
  dup2(other, STDOUT_FILENO);
  print("{}bold{} \x1b[31mred\x1b]0;t\a", kBold, kPlain);
  flush_output();
  dup2(kept, STDOUT_FILENO);
  char read_back[128] = {};
  const ssize_t size = read(terminal, read_back, sizeof read_back);
  for (const int descriptor : {terminal, other, kept}) close(descriptor);
  ASSERT_GT(size, 0);
  EXPECT_EQ(std::string(read_back, static_cast<std::size_t>(size)),
            "\x1b[1mbold\x1b[0m  [31mred ]0;t ");
}

}  // namespace
}  // namespace paceline
