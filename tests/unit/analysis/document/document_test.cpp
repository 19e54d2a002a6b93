// One document in all formats.
#include "analysis/document/document.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "analysis/document/columns.h"
#include "engine/core/error.h"
#include "tests/support/expect_error.h"
#include "tests/unit/analysis/tables.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

TEST(Cells, SmallValuesKeepTheirDigits) {
  EXPECT_EQ(measured_cell(Estimate{4.56e-5, {}, 2}).text, "0.0000456");
  EXPECT_EQ(measured_cell(Estimate{0.456, {}, 2}).text, "0.456");
  EXPECT_EQ(measured_cell(Estimate{0, {}, 2}).text, "0.000");
}

struct Fruit {
  std::string name;
  std::optional<Estimate> weight;
  int seeds = 0;
};

Document fruits() {
  const std::vector<Fruit> rows = {{"apple, red", Estimate{182.31, Interval{170, 195}, 5}, 5},
                                   {"melon", {}, 500}};
  Document document{.name = "report", .title = "Fruits_of the day", .list = "tables"};
  document.lead = {"from the garden"};
  document.warnings = {"it rained"};
  Section& section = document.sections.emplace_back();
  section.title = "Weights";
  section.headline = "The apple is light";
  section.warnings = {"the scale was wet"};
  section.table =
      ColumnsOf<Fruit>()
          .text("point", "fruit", &Fruit::name)
          .interval("weight", "weight\ng",
                    [](const Fruit& f) { return f.weight ? estimate_cell(*f.weight, 2) : Cell{}; })
          .whole("seeds", "seeds", &Fruit::seeds)
          .detail(1)
          .text("shop", "shop", [](const Fruit&) { return "corner"; })
          .layout()
          .flag("ripe", [](const Fruit& f) { return f.seeds < 10; })
          .text("nothing", "nothing", [](const Fruit&) { return ""; })
          .table(rows);
  section.findings = {{"melons are not weighed", {"the scale ends at 1 kg"}}};
  section.notes = {"± of five apples"};
  section.parts = {
      {.title = "Details", .findings = {{"grown here", {}}}, .shown = Visibility::in_detail},
      {.title = "Only here", .findings = {{"on a page", {}}}, .shown = Visibility::on_pages}};
  section.facts = make_facts({{"month", 9}});
  return document;
}

TEST(Document, AsText) {
  EXPECT_EQ(to_text(fruits()),
            "Fruits_of the day\n"
            "from the garden\n"
            "Warning: it rained\n"
            "Warning: the scale was wet\n"
            "\n"
            "Weights\n"
            "The apple is light\n"
            "\n"
            "             weight\n"
            "fruit             g  seeds\n"
            "--------------------------\n"
            "apple, red  182 ±13      5\n"
            "melon         -        500\n"
            "\n"
            "  - melons are not weighed\n"
            "      - the scale ends at 1 kg\n"
            "\n"
            "  - in all rows: shop corner\n"
            "  - ± of five apples\n");
}

TEST(Document, DetailsAreAskedFor) {
  Document document = fruits();
  expect_parts(to_text(document, {.details = true}), {"Details\n\n  - grown here"});
  expect_no_parts(to_text(document, {.details = true}), {"on a page"});
  document.is_brief = true;
  expect_no_parts(to_text(document), {"of five apples"});
  expect_parts(to_text(document), {"--verbose"});
  expect_parts(to_text(document, {.details = true}), {"of five apples"});
}

TEST(Document, AsMarkdown) {
  EXPECT_EQ(to_markdown(fruits()),
            "# Fruits\\_of the day\n\nfrom the garden\n\n**Warning: it rained**\n\n"
            "**Warning: the scale was wet**\n\n## Weights\n\nThe apple is light\n\n"
            "| fruit | weight g | seeds |\n| --- | ---: | ---: |\n"
            "| apple, red | 182 ±13 | 5 |\n| melon |  | 500 |\n\nIn all rows: shop corner.\n\n"
            "- melons are not weighed\n  - the scale ends at 1 kg\n\n"
            "### Details\n\n- grown here\n\n- ± of five apples\n");
}

TEST(Document, AsCsvAndJson) {
  EXPECT_EQ(to_csv(fruits()),
            "point,weight,weight_low,weight_high,seeds,shop,ripe,nothing\n"
            "\"apple, red\",182.31,170,195,5,corner,1,\nmelon,,,,500,corner,0,\n");
  const Json json = Json::parse(to_json_text(fruits()));
  EXPECT_EQ(json["schema"], 1);
  const Json& table = json["tables"][0];
  EXPECT_EQ(table["title"], "Weights");
  EXPECT_EQ(table["month"], 9);
  EXPECT_EQ(table["findings"][0], "melons are not weighed");
  EXPECT_EQ(table["rows"][0]["ripe"], true);
  EXPECT_EQ(table["rows"][0]["weight_low"], 170);
  EXPECT_TRUE(table["rows"][0]["seeds"].is_number_integer());
  EXPECT_TRUE(table["rows"][1]["weight"].is_null());
  EXPECT_TRUE(table["rows"][1]["nothing"].is_null());
}

TEST(Document, WithoutAListItsFactsAndRowsAreTheDocuments) {
  Document document = fruits();
  document.list = "";
  document.facts = make_facts({{"verdict", "sweet"}});
  document.sections[0].table.key = "fruits";
  const Json json = Json::parse(to_json_text(document));
  EXPECT_EQ(json["verdict"], "sweet");
  EXPECT_EQ(json["month"], 9);
  EXPECT_EQ(json["fruits"].size(), 2U);
  EXPECT_FALSE(json.contains("title"));
}

TEST(Document, AsAPage) {
  expect_parts(to_html(fruits()),
               {"<title>Fruits_of the day</title>", "<h1>Fruits_of the day</h1>",
                "<p class=\"warning\">Warning: it rained</p>", "<h2>Weights</h2>",
                "<p class=\"headline\">The apple is light</p>", "weight<br/>g",
                "data-value=\"182.31\">182<span class=\"margin\"> ±13</span>",
                "<caption>In all rows: shop corner</caption>", "<li>the scale ends at 1 kg</li>",
                "<h3>Only here</h3>", "<h3>Legend</h3>"});
}

TEST(Document, RowsForProgramsAreNotShown) {
  Document document = fruits();
  document.sections[0].table.is_detail = {false, true};
  for (const std::string& text :
       {to_text(document), to_markdown(document), to_html(document), to_latex(document)}) {
    expect_no_parts(text, {"melon  ", "500"});
  }
  expect_parts(to_csv(document), {"melon"});
}

// What is wider than the terminal loses details first; then each block names its rows.
TEST(Document, ATableThatIsTooWideIsSplit) {
  Document document = fruits();
  expect_parts(to_text(document, {.terminal_width = 20}), {"not shown at 20 columns: seeds"});
  document.sections[0].table.columns[2].detail = 0;
  expect_parts(to_text(document, {.terminal_width = 20}), {"apple, red  182 ±13\n"
                                                           "melon         -\n\n"
                                                           "fruit       seeds\n"
                                                           "-----------------\n"
                                                           "apple, red      5\n"});
}

TEST(Document, NotesOfAllSectionsAreSaidOnce) {
  Document document = fruits();
  document.sections.push_back(document.sections[0]);
  document.sections[1].notes.push_back("of the second");
  for (const std::string& text : {to_text(document), to_markdown(document), to_html(document)}) {
    EXPECT_EQ(text.find("of five apples"), text.rfind("of five apples")) << text;
    EXPECT_LT(text.find("of the second"), text.find("of five apples")) << text;
  }
}

TEST(Document, LatexSetsSixColumnsAndSaysTheRestOnce) {
  Section section = report_section(drifting_study());
  section.title = "a_b & 5 % of {x} \\input";
  const std::string latex = to_latex(report_document({section}));
  expect_parts(latex, {"\\caption{a\\_b \\& 5 \\% of \\{x\\} \\textbackslash{}input. In all rows: ",
                       "\\begin{table}[t]", "\\label{tab:report}", "1.80 $\\pm$0.05"});
  const std::size_t begin = latex.find("\\begin{tabular}{") + 16;
  EXPECT_EQ(latex.substr(begin, latex.find('}', begin) - begin), "lrrrrl") << latex;
  std::size_t rows = 0;
  for (const std::string& line : split(latex.substr(begin), '\n')) {
    if (!line.ends_with(" \\\\")) continue;
    EXPECT_EQ(std::count(line.begin(), line.end(), '&'), 5) << line;
    ++rows;
  }
  EXPECT_EQ(rows, section.table.rows.size() + 1);
}

// A paper's column is narrow: long remarks stand below the table, each once.
TEST(Document, LatexHasLongRemarksBelowTheTable) {
  Section section{.table = {.columns = {{.key = "point", .is_text = true},
                                        {.key = "verdict", .is_text = true}}}};
  const std::string busy = "cannot tell; busy machine in 3 of 5 runs";
  for (const char* name : {"a", "b"}) section.table.rows.push_back({{name}, {busy}});
  section.table.rows.push_back({{"a name of more than twenty characters"}, {"faster"}});
  section.table.rows.push_back({{"c"}, {"far lower accuracy in 2 of 6 runs"}});
  expect_parts(to_latex(report_document({section})),
               {"\\resizebox{", "  a & cannot tell$^{a}$ \\\\\n", "  b & cannot tell$^{a}$ \\\\\n",
                "characters & faster \\\\\n", "  c & $^{b}$ \\\\\n",
                "$^{a}$busy machine in 3 of 5 runs; $^{b}$far lower accuracy in 2 of 6 runs}\n"});
}

TEST(Document, FormatsAreNamed) {
  EXPECT_EQ(parse_format("md"), Format::markdown);
  EXPECT_EQ(parse_format("latex"), Format::latex);
  EXPECT_THROW(parse_format("xml"), Error);
}

TEST(Document, AFolderHasAllFormatsAndPictures) {
  const Scratch folder;
  Document document = fruits();
  Plot& plot = document.sections[0].plots.emplace_back();
  plot.name = plot.title = "weights";
  plot.body = Lines{};
  std::get<Lines>(plot.body).series = {{"apple", {{1, 2.0, {}}, {2, 3.0, {}}}}};
  std::ostringstream printed;
  const WrittenFiles files = write_documents({document}, {.out = folder / "out"}, printed);
  EXPECT_EQ(files.tables.size(), 4U);
  EXPECT_EQ(files.plots, std::vector{folder / "out/weights.svg"});
  expect_parts(printed.str(), {"report: " + (folder / "out/report.html").string(),
                               "beside it: report.json, report.md, report.csv, weights.svg"});
  expect_parts(read_text(folder / "out/report.html"),
               {"id=\"plot-weights\"", "href=\"weights.svg\""});
  // A picture has its title, but not on the page, where it stands above.
  expect_parts(read_text(folder / "out/weights.svg"), {">weights</text>"});
  expect_parts(read_text(folder / "out/report.html"), {"<figcaption><strong>weights</strong>"});
  expect_no_parts(read_text(folder / "out/report.html"), {">weights</text>"});
  EXPECT_EQ(read_text(folder / "out/report.csv"), to_csv(document));
  std::ofstream(folder / "out/report.json") << "{}";
  EXPECT_THROW(write_documents({document}, {.out = folder / "out"}, printed), Error);
}

TEST(Headline, IsTheLargestSpeedUpOfRealWork) {
  std::vector<Json> records = drifting_study();
  const std::string before = report_section(records).headline;
  EXPECT_TRUE(before.starts_with("Largest mean speed-up: ")) << before;
  for (int repeat = 1; repeat <= 3; ++repeat) {  // an ablation trains nothing together
    records.push_back(
        sample_record({.gpus = 2, .repeat = repeat, .fit_seconds = 0.1, .backend = "null"}));
  }
  const std::string after = report_section(records).headline;
  expect_no_parts(after, {"null"});
  EXPECT_EQ(after.substr(0, 30), before.substr(0, 30));
}

TEST(Headline, IsNoneWithoutSeveralReplicasAgainstOne) {
  EXPECT_EQ(report_section({sample_record({.gpus = 1})}).headline, "");
  EXPECT_EQ(report_section({sample_record({.gpus = 2})}).headline, "");
  EXPECT_EQ(report_section(drifting_study(), Base("backend", "mpi")).headline, "");
}

TEST(Headline, ASizeIsABaseLikeOneReplica) {
  EXPECT_EQ(report_section(drifting_study(), Base("gpus", "1")).headline,
            report_section(drifting_study()).headline);
}

}  // namespace
}  // namespace paceline
