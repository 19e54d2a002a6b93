#include <gtest/gtest.h>

#include "engine/core/error.h"
#include "sweeps/program.h"
#include "tests/support/expect_error.h"

namespace paceline {
namespace {

std::string filled_with(const std::string& text, const std::string& value) {
  return fill_shell_command(text, [&](const std::string&) { return value; });
}

struct Case {
  const char *text, *value, *command;
};

TEST(ShellCommand, ValuesAreOneWordInAndOutsideOfQuotes) {
  const Case kCases[] = {
      {"run {out}/x", "/a", "run /a/x"},
      {"run {out}/x", "/a b", "run '/a b'/x"},
      {"run {out}", "$(id)", "run '$(id)'"},
      {"run {out}", "it's", "run 'it'\\''s'"},
      {"run {out}", "", "run ''"},
      {"run \"{out}/x\"", "/a b", "run \"/a b/x\""},
      {"run '{out}'", "/a b", "run '/a b'"},
      {"run '{out}'", "", "run ''"},
      {"run 'a' {out}", "/a b", "run 'a' '/a b'"},
      {"run \"a\\\" {out}\"", "/a b", "run \"a\\\" /a b\""},
      {"run \"$(cat {out})\"", "/a b", "run \"$(cat '/a b')\""},
      {"run \"$(cat \"{out}\")\"", "/a b", "run \"$(cat \"/a b\")\""},
      {"run \"`cat {out}`\" {out}", "a b", "run \"`cat 'a b'`\" 'a b'"},
      {"# don't\nrun {out}", "a;b", "# don't\nrun 'a;b'"},
      {"echo a#b 'c' {out}", "a;b", "echo a#b 'c' 'a;b'"},
      {"(run {out})", "a b", "(run 'a b')"},
      {"run {{out}} {out}", "a b", "run {out} 'a b'"},
      {"run ${out} {out}", "a b", "run ${out} 'a b'"},
      {"cat <<E\nit's {out}\nE", "2", "cat <<E\nit's 2\nE"},
  };
  for (const Case& each : kCases) {
    EXPECT_EQ(filled_with(each.text, each.value), each.command) << each.text;
  }
}

TEST(ShellCommand, WhatAShellWouldReadInQuotesIsRefused) {
  for (const char* value :
       {"$(touch x)", "`id`", "a\"b", "$HOME", "a\\b", "x'; id; '", "a\nb", "a;b", "a|b", "a&b"}) {
    for (const char* text : {"run \"{out}\"", "run '{out}'", "run $'{out}'", "sh -c 'run {out}'",
                             "run \"a'{out}'b\"", "run \"$(cat '{out}')\""}) {
      expect_error(ErrorKind::usage, {"{out} stands in quotes", "take the quotes away"},
                   [&] { filled_with(text, value); });
    }
    expect_error(ErrorKind::usage, {"{out} stands behind a here-document", "into a script"},
                 [&] { filled_with("cat <<E\n{out}\nE", value); });
  }
}

// Specs refuse it before.
TEST(ShellCommand, AZeroByteIsNoEndOfQuotes) {
  EXPECT_EQ(filled_with(std::string("a\0'b' {x}", 9), "1"), std::string("a\0'b' 1", 7));
}

}  // namespace
}  // namespace paceline
