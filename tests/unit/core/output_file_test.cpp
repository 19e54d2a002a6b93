#include <gtest/gtest.h>

#include <fstream>

#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/json.h"
#include "tests/support/scratch.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

bool is_ours(std::string_view content) {
  return content.starts_with("ours");
}

std::string refusal(const std::function<void()>& act) {
  try {
    act();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::input);
    return error.what();
  }
  return "";
}

void write(const fs::path& file, const std::string& text) {
  std::ofstream(file) << text;
}

TEST(OutputFile, ReplacesWhatIsItsOwnAndNothingElse) {
  const Scratch scratch;
  const fs::path file = scratch.path() / "f";
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
    const std::string line = refusal(act);
    for (const std::string& part : {std::string("--out " + file.string()),
                                    std::string("the file exists already and is no export")}) {
      EXPECT_NE(line.find(part), std::string::npos) << line;
    }
  }
  EXPECT_EQ(read_text(file), "a record");
}

TEST(OutputFile, WithoutAKindOfItsOwnItReplacesNothing) {
  const Scratch scratch;
  const fs::path file = scratch.path() / "f";
  write(file, "");
  EXPECT_NE(refusal([&] { OutputFile(file, "--trace", "trace").check(); }).find("already"),
            std::string::npos);
}

TEST(OutputFile, OnlyFilesAreReplaced) {
  const Scratch scratch;
  const auto any = [](std::string_view) { return true; };
  const auto line = [&](const fs::path& file) {
    return refusal([&] { OutputFile(file, "--out", "export", any).check(); });
  };
  EXPECT_NE(line(scratch.path()).find("not a regular file"), std::string::npos);
  EXPECT_NE(line("/dev/null").find("not a regular file"), std::string::npos);
  EXPECT_NE(line(scratch.path() / "absent/f").find("cannot be written"), std::string::npos);
}

TEST(OutputFile, ALinkStandsForItsTarget) {
  const Scratch scratch;
  fs::create_symlink("target", scratch.path() / "link");
  const OutputFile output(scratch.path() / "link", "--out", "export", is_ours);
  output.write("ours");
  EXPECT_EQ(read_text(scratch.path() / "target"), "ours");
  EXPECT_TRUE(fs::is_symlink(scratch.path() / "link"));
  write(scratch.path() / "target", "a record");
  EXPECT_NE(refusal([&] { output.write("ours"); }), "");
  EXPECT_EQ(read_text(scratch.path() / "target"), "a record");
}

}  // namespace
}  // namespace paceline
