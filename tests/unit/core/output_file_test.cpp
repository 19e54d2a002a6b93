#include <gtest/gtest.h>

#include "engine/core/file.h"
#include "engine/core/json.h"
#include "tests/support/expect_error.h"
#include "tests/support/scratch.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

bool is_ours(std::string_view content) {
  return content.starts_with("ours");
}

void write(const fs::path& file, const std::string& text) {
  std::ofstream(file) << text;
}

TEST(OutputFile, ReplacesWhatIsItsOwnAndNothingElse) {
  const Scratch scratch;
  const fs::path file = scratch / "f";
  const OutputFile output(file, "--out", "export", is_ours);
  output.check();
  EXPECT_FALSE(fs::exists(file));
  for (const char* old : {"", "ours, before"}) {
    write(file, old);
    output.check();
    output.write("ours");
    EXPECT_EQ(read_text(file), "ours");
  }
  write(file, "a record");
  for (const auto& act : {std::function<void()>([&] { output.check(); }),
                          std::function<void()>([&] { output.write("ours"); })}) {
    expect_error(ErrorKind::input,
                 {"--out " + file.string(), "the file exists already and is no export"}, act);
  }
  EXPECT_EQ(read_text(file), "a record");
}

TEST(OutputFile, WithoutAKindOfItsOwnItReplacesNothing) {
  const Scratch scratch;
  const fs::path file = scratch / "f";
  write(file, "");
  expect_error(ErrorKind::input, {"already"},
               [&] { OutputFile(file, "--trace", "trace").check(); });
}

TEST(OutputFile, OnlyFilesAreReplaced) {
  const Scratch scratch;
  const auto any = [](std::string_view) { return true; };
  const auto line = [&](const fs::path& file) {
    return catch_error(ErrorKind::input, [&] { OutputFile(file, "--out", "export", any).check(); });
  };
  expect_parts(line(scratch.path()), {"not a regular file"});
  expect_parts(line("/dev/null"), {"not a regular file"});
  expect_parts(line(scratch.path() / "absent/f"), {"cannot be written"});
}

TEST(OutputFile, ALinkStandsForItsTarget) {
  const Scratch scratch;
  fs::create_symlink("target", scratch / "link");
  const OutputFile output(scratch / "link", "--out", "export", is_ours);
  output.write("ours");
  EXPECT_EQ(read_text(scratch.path() / "target"), "ours");
  EXPECT_TRUE(fs::is_symlink(scratch.path() / "link"));
  write(scratch.path() / "target", "a record");
  expect_error(ErrorKind::input, {}, [&] { output.write("ours"); });
  EXPECT_EQ(read_text(scratch.path() / "target"), "a record");
}

}  // namespace
}  // namespace paceline
