#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "analysis/plots/script.h"
#include "engine/core/error.h"
#include "tests/support/expect_error.h"
#include "tests/unit/results/sample_record.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

Plot sample_plot() {
  Lines lines;
  lines.series = {
      {"mpi", {{1, 1, std::nullopt}, {2, 1.8, Interval{1.7, 1.9}}, {4, 3, Interval{2.5, 3.6}}}},
      {"mirrored",
       {{1, 1, std::nullopt}, {2, std::nullopt, std::nullopt}, {4, 2.5, std::nullopt}}}};
  lines.ideal = PlotSeries{"ideal", {{1, 1, std::nullopt}, {4, 4, std::nullopt}}};
  lines.x_tics = {{1, "1"}, {2, "2"}, {4, "4"}};
  return {"speedup", "a title", "of tests", "GPUs", "speed-up", lines};
}

Lines& split_lines(Plot& plot) {
  return std::get<Lines>(plot.body);
}

// PATH is put back when the test ends.
class WithPath {
 public:
  explicit WithPath(const std::string& path) : before_(std::getenv("PATH")) {
    setenv("PATH", path.c_str(), 1);
  }
  ~WithPath() { setenv("PATH", before_.c_str(), 1); }
  WithPath(const WithPath&) = delete;
  WithPath& operator=(const WithPath&) = delete;

 private:
  std::string before_;
};

void make_program(const fs::path& file, const std::string& body) {
  std::ofstream(file) << "#!/bin/sh\n" << body << '\n';
  fs::permissions(file, fs::perms::owner_all);
}

// gnuplot writes names into CDATA of SVG as they are.
TEST(PlotScript, NoNameEndsCdataOrSteersAnything) {
  EXPECT_EQ(quoted("a]]>b'c\x1b\u202e"), "'a]] >b’c  '");
}

// gnuplot passes references on to SVG, where "&#x1b;" would be no XML.
TEST(PlotScript, NoNameIsACharacterReference) {
  Plot plot;
  plot.title = "x&#x1b;y & z";
  plot.body = Lines{};
  expect_parts(plot_script(plot, "svg"), {"x&#38;#x1b;y & z"});
  expect_parts(plot_script(plot, "png"), {"x&#x1b;y & z"});
}

// By place: the colour and the machine's dash.
std::string looks(const std::vector<std::pair<std::string, std::string>>& series) {
  std::vector<PlotSeries> all;
  for (const auto& [name, machine] : series) all.push_back({.name = name, .machine = machine});
  std::string text;
  for (const LineLook& look : line_looks(all)) {
    text += std::to_string(look.colour) + look.dash + "\n";
  }
  return text;
}

TEST(PlotScript, ColourIsTheBackendAndDashTheMachine) {
  EXPECT_EQ(looks({{"A, 64 CPUs, mpi", "A, 64 CPUs"},
                   {"A, 64 CPUs, ring, 2 CPUs", "A, 64 CPUs"},
                   {"B, ring, 2 CPUs", "B"},
                   {"B, mpi", "B"},
                   {"C, mpi", "C"}}),
            "0\n1\n1 dashtype (7,4)\n0 dashtype (7,4)\n0 dashtype (2,3)\n");
  EXPECT_EQ(looks({{"A", "A"}, {"B", "B"}}), "0\n0 dashtype (7,4)\n");
  EXPECT_EQ(looks({{"imported, A, mpi", "A"}, {"B, mpi", "B"}, {"mpi", ""}}),
            "0\n1 dashtype (7,4)\n1 dashtype (2,3)\n");
  EXPECT_EQ(looks({{"mpi", "A"}, {"ring", "A"}, {"mpi, 2 CPUs", "A"}}), "0\n1\n2\n");
  EXPECT_EQ(looks({{"A", "A"}, {"B", "B"}, {"C", "C"}, {"D", "D"}, {"E", "E"}}), "0\n1\n2\n3\n4\n")
      << "more machines than dashes";
}

TEST(PlotScript, DashesAreInTheLegendAndOnlyThere) {
  Plot plot = sample_plot();
  const std::string plain = plot_script(plot, "svg");
  for (PlotSeries& series : split_lines(plot).series) series.machine = "A";
  EXPECT_EQ(plot_script(plot, "svg"), plain) << "of one machine";
  expect_parts(plain, {"samplen 2.5", "linecolor rgb '#d55e00'"});
  split_lines(plot).series = {
      {.name = "A, mpi", .points = {{1, 1, Interval{0.9, 1.1}}}, .machine = "A"},
      {.name = "B, mpi", .points = {{1, 2, Interval{1.9, 2.1}}}, .machine = "B"}};
  const std::string script = plot_script(plot, "svg");
  expect_parts(script, {"samplen 5 ", "linewidth 1.2 dashtype (7,4) title 'B, mpi'"});
  expect_no_parts(script, {"#d55e00", "dashtype (7,4) notitle"});
}

TEST(Plot, IsDrawnInEveryFormat) {
  const std::pair<const char*, const char*> starts[] = {
      {"svg", "<?xml"}, {"png", "\x89PNG"}, {"pdf", "%PDF"}};
  for (const auto& [format, start] : starts) {
    EXPECT_TRUE(draw_plot(sample_plot(), format).starts_with(start)) << format;
  }
  expect_parts(draw_plot(sample_plot(), "svg"),
               {"a title", "of tests", "ideal", "mirrored", "GPUs"});
  EXPECT_THROW(draw_plot(sample_plot(), "gif"), Error);
}

TEST(Plot, ALongTitleHasTwoLines) {
  Plot plot = sample_plot();
  plot.title =
      "mnist-mlp, fp32, time-to-goal scaling, batch_per_replica 256, to test_accuracy>=0.95";
  expect_parts(plot_script(plot, "svg"),
               {"'mnist-mlp, fp32, time-to-goal scaling, batch_per_replica 256,'",
                "'to test_accuracy>=0.95'", "set label 2 'of tests'"});
  expect_parts(draw_plot(plot, "svg"), {"of tests"});
}

TEST(Plot, NamesFromRecordsRunNothing) {
  const Scratch folder;
  const fs::path victim = folder / "victim";
  Plot plot = sample_plot();
  plot.title = "'; system('touch " + victim.string() + "') #";
  split_lines(plot).series[0].name = "`touch " + victim.string() + "`\nset output";
  expect_parts(draw_plot(plot, "svg"), {"’; system("});
  EXPECT_FALSE(fs::exists(victim));
}

TEST(Plot, BarsThatHaveNoIntervalAreNotDrawn) {
  const std::string script = plot_script(sample_plot(), "svg");
  expect_parts(script, {"$series0 using 1:2:3:4 with yerrorbars"});
  expect_no_parts(script, {"$series1 using 1:2:3:4"});
  expect_parts(script, {"set xtics ('1' 1, '2' 2, '4' 4)"});
}

TEST(Plot, AGapBreaksTheLineAndHasNoPoint) {
  const std::string script = plot_script(sample_plot(), "svg");
  expect_parts(script, {"$series1 << END\n1 1 1 1\n\n4 2.5 2.5 2.5\nEND"});
  EXPECT_EQ(script.find("pointtype 2 "), std::string::npos) << "a cross reads as a speed-up of 0";
}

TEST(Plot, BarsAndHeatMapsAreDrawnToo) {
  Bars bars;
  bars.groups = {"one", "two's"};
  bars.series = {{"mpi", {Bar{2, Interval{1.5, 2.5}, "2"}, std::nullopt}},
                 {"gloo", {Bar{1, std::nullopt, "1"}, Bar{3, std::nullopt, "3"}}}};
  HeatMap map;
  map.columns = {"2", "4"};
  map.rows = {"1"};
  map.cells = {{HeatCell{"5 s", "best", 0}, std::nullopt}};
  for (const auto& body : {decltype(Plot::body)(bars), {map}}) {
    const std::string svg = draw_plot({"x", "a title", "", "x", "", body}, "svg");
    expect_parts(svg, {"a title", body.index() == 1 ? "two’s" : "no result"});
  }
  bars.stacked = true;
  bars.notes = {"3 ms", "not run"};
  const std::string script = plot_script({"x", "", "", "", "", bars}, "svg");
  expect_parts(script, {"$bars1 << END\n3 0 2 3 "});  // on the first
  expect_no_parts(script, {"$errors"});
}

TEST(Plot, NumbersStandBeyondTheirLines) {
  Bars bars;
  bars.groups = {"a"};
  bars.series = {{"mpi", {Bar{100, Interval{60, 290}, "100"}}},
                 {"gloo", {Bar{50, Interval{1, 5000}, "50"}}}};
  const std::string script = plot_script({"x", "", "", "", "", bars}, "svg");
  // The axis is 300 long, and a number stands a little right of its line.
  expect_parts(script, {"'100' at 293.6,", "'50' at 303.6,", "set arrow from 50,", " to 300,"});
}

TEST(Plot, NegativePartsOfAStackAreLeftOfZero) {
  Bars bars;
  bars.groups = {"a", "b"};
  bars.series = {{"lost", {Bar{13, std::nullopt, ""}, Bar{0, std::nullopt, ""}}},
                 {"gained", {Bar{-4, std::nullopt, ""}, Bar{-2, std::nullopt, ""}}},
                 {"noise", {Bar{-1, std::nullopt, ""}, Bar{1, std::nullopt, ""}}}};
  bars.stacked = true;
  bars.notes = {"13 - 5 = 8", "1 - 2 = -1"};
  const Plot plot{"x", "", "", "", "", bars};
  expect_parts(plot_script(plot, "svg"),
               {"$bars1 << END\n-4 0 0 -4 ", "$bars2 << END\n-5 0 -4 -5 ", "set xrange [-5.25:"});
  expect_parts(draw_plot(plot, "svg"), {"13 - 5 = 8"});
}

TEST(Plot, BarsOfNoLengthHaveAnAxis) {
  Bars bars;
  bars.groups = {"a"};
  bars.series = {{"lost", {Bar{0, std::nullopt, ""}}}};
  bars.stacked = true;
  bars.notes = {"0.0"};
  expect_parts(draw_plot({"x", "a title", "", "", "", bars}, "svg"), {"a title"});
}

TEST(Plot, AMissingGnuplotIsNamedByItsPackage) {
  const Scratch folder;
  const WithPath path(folder.path().string());
  expect_error(ErrorKind::usage, {"gnuplot-nox"}, [&] { draw_plot(sample_plot(), "svg"); });
}

TEST(Plot, AFailingGnuplotReportsWhy) {
  const Scratch programs;
  make_program(programs / "gnuplot", "echo no such terminal >&2; exit 3");
  const WithPath path(programs.path().string() + ":/usr/bin:/bin");
  expect_error(ErrorKind::usage, {"exit code 3: no such terminal"},
               [&] { draw_plot(sample_plot(), "svg"); });
}

}  // namespace
}  // namespace paceline
