#include <gtest/gtest.h>

#include <algorithm>

#include "analysis/render/render.h"
#include "engine/core/error.h"
#include "engine/core/text.h"
#include "tests/unit/analysis/tables.h"

namespace paceline {
namespace {

using testing::drifting_study;
using testing::format_table;
using testing::sample_record;

TEST(Render, LatexSetsWhatDiffersAndReportsTheRestOnce) {
  Table table = format_table(drifting_study());
  table.title = "a_b & 5 % of {x} \\input";
  const std::string latex = render_latex(table);
  EXPECT_NE(
      latex.find("\\caption{a\\_b \\& 5 \\% of \\{x\\} \\textbackslash{}input. In all rows: "),
      std::string::npos)
      << latex;
  EXPECT_NE(latex.find("1.80 $\\pm$0.05"), std::string::npos) << latex;
  const std::size_t begin = latex.find("\\begin{tabular}{") + 16;
  const std::size_t columns = latex.find('}', begin) - begin;
  std::size_t rows = 0;
  for (const std::string& line : split(latex.substr(begin), '\n')) {
    if (!line.ends_with(" \\\\")) continue;
    EXPECT_EQ(std::count(line.begin(), line.end(), '&'), static_cast<std::ptrdiff_t>(columns) - 1)
        << line;
    ++rows;
  }
  EXPECT_EQ(rows, table.rows.size() + 1);
  EXPECT_EQ(latex.find("nodes &"), std::string::npos);  // one in all rows
}

TEST(Render, MarkdownRowsHaveAllCells) {
  std::size_t bars = 0;
  for (const std::string& line : split(render_markdown(format_table(drifting_study())), '\n')) {
    if (!line.starts_with("|")) continue;
    const auto count = static_cast<std::size_t>(std::count(line.begin(), line.end(), '|'));
    if (bars == 0) bars = count;
    EXPECT_EQ(count, bars) << line;
  }
  EXPECT_GT(bars, 10U);
}

TEST(Render, FormatsAreNamed) {
  EXPECT_EQ(parse_format("md"), Format::markdown);
  EXPECT_EQ(parse_format("latex"), Format::latex);
  EXPECT_THROW(parse_format("xml"), Error);
}

TEST(Headline, IsTheLargestSpeedUpOfRealWork) {
  std::vector<Json> records = drifting_study();
  EXPECT_TRUE(format_table(records).headline.starts_with("Largest mean speed-up: ")) << "";
  const std::string before = format_table(records).headline;
  for (int repeat = 1; repeat <= 3; ++repeat) {  // an ablation trains nothing together
    records.push_back(
        sample_record({.gpus = 2, .repeat = repeat, .fit_seconds = 0.1, .backend = "null"}));
  }
  EXPECT_EQ(format_table(records).headline.find("null"), std::string::npos)
      << format_table(records).headline;
  EXPECT_EQ(format_table(records).headline.substr(0, 30), before.substr(0, 30));
}

TEST(Headline, IsNoneWithoutSeveralReplicasAgainstOne) {
  EXPECT_EQ(format_table({sample_record({.gpus = 1})}).headline, "");
  EXPECT_EQ(format_table({sample_record({.gpus = 2})}).headline, "");
  EXPECT_EQ(format_table(drifting_study(), Base("gpus", "1")).headline, "");  // ratios to a setting
}

}  // namespace
}  // namespace paceline
