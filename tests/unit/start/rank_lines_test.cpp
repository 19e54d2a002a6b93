#include <gtest/gtest.h>

#include "engine/start/output_filter.h"

namespace paceline {
namespace {

struct Terminal {
  std::string text;
  RankLines lines{3, [this](std::string_view part) { text += part; }};
};

TEST(RankLines, ALineOfARankPassesWhole) {
  Terminal terminal;
  terminal.lines.feed(1, "warn");
  terminal.lines.feed(2, "first\nsec");
  terminal.lines.feed(1, "ing\n");
  EXPECT_EQ(terminal.text, "first\nwarning\n");
  terminal.lines.finish();
  EXPECT_EQ(terminal.text, "first\nwarning\nsec\n");
}

TEST(RankLines, ProgressOfRank0PassesAtOnceAndIsNotBrokenInto) {
  Terminal terminal;
  terminal.lines.feed(0, "\rstep 1");
  EXPECT_EQ(terminal.text, "\rstep 1");
  terminal.lines.feed(1, "warning\n");
  terminal.lines.feed(0, "\rstep 2\n");
  terminal.lines.feed(1, "again\n");
  EXPECT_EQ(terminal.text, "\rstep 1\nwarning\n\rstep 2\nagain\n");
}

TEST(RankLines, AnEndlessLineIsNotHeldForEver) {
  Terminal terminal;
  terminal.lines.feed(1, std::string(100000, 'x'));
  EXPECT_EQ(terminal.text.size(), 100001U);
}

}  // namespace
}  // namespace paceline
