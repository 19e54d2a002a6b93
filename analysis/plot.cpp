#include "analysis/plot.h"

#include <fmt/format.h>
#include <stdlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <set>

#include "engine/core/child.h"
#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/json.h"
#include "engine/core/text.h"

namespace paceline {

namespace fs = std::filesystem;

namespace {

// Okabe and Ito's palette, told apart also with colour-blind eyes; black is the ideal line's.
constexpr std::array kColours = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                 "#e69f00", "#56b4e9", "#f0e442"};
constexpr std::array kPointTypes = {7, 5, 9, 13, 11, 15, 6};
constexpr std::size_t kMostReadableSeries = 8;
constexpr double kDeadlineSeconds = 60, kGraceSeconds = 2;
constexpr std::size_t kMostMessages = 2048;

PlotSeries series_of(const Ladder& ladder) {
  PlotSeries series{ladder.name, {}};
  for (const Rung& rung : ladder.rungs) {
    const RowFacts* best = *std::max_element(
        rung.rows.begin(), rung.rows.end(), [](const RowFacts* a, const RowFacts* b) {
          return a->speed_up->ratio.estimate.value < b->speed_up->ratio.estimate.value;
        });
    const Estimate& estimate = best->speed_up->ratio.estimate;
    series.points.push_back({rung.gpus, estimate.value, estimate.interval});
  }
  return series;
}

// gnuplot substitutes nothing within single quotes, and a typographic quote does not end them.
std::string quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) {
    if (c == '\'') {
      result += "’";
    } else {
      result += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  }
  return result + "'";
}

// The legend stands below the plot, a line a series, so the picture grows with it. Sizes are in
// hundredths of the printed inch: PNG has twice the dots of SVG.
std::string terminal(const std::string& format, std::size_t series) {
  const std::size_t height = 440 + 22 * (series + 2);
  if (format == "svg") {
    return fmt::format(
        "svg noenhanced size 700,{} font 'DejaVu Sans,Helvetica,Arial,sans-serif,14' "
        "linewidth 1.5 background '#ffffff'",
        height);
  }
  if (format == "png") {
    return fmt::format(
        "pngcairo noenhanced size 1400,{} font 'DejaVu Sans,26' linewidth 3 pointscale 2 "
        "background '#ffffff'",
        2 * height);
  }
  return fmt::format("pdfcairo noenhanced size 7in,{:.2f}in font 'DejaVu Sans,14' linewidth 1.5",
                     static_cast<double>(height) / 100);
}

// Every size that was run where they are few or far apart; gnuplot's own choice is not whole.
std::string tics(const Plot& plot) {
  std::set<int> sizes = {1};
  for (const PlotSeries& series : plot.series) {
    for (const PlotPoint& point : series.points) sizes.insert(point.gpus);
  }
  if (plot.most_gpus <= 16) {
    for (int gpus = 1; gpus <= plot.most_gpus; ++gpus) sizes.insert(gpus);
  }
  std::vector<std::string> labels;
  int last = 0;
  for (const int gpus : sizes) {
    if (last > 0 && gpus < plot.most_gpus && gpus - last < plot.most_gpus / 20) continue;
    labels.push_back(std::to_string(gpus));
    last = gpus;
  }
  return join(labels, ", ");
}

bool has_bars(const PlotSeries& series) {
  return std::any_of(series.points.begin(), series.points.end(),
                     [](const PlotPoint& point) { return point.interval.has_value(); });
}

bool has_bars(const Plot& plot) {
  return std::any_of(plot.series.begin(), plot.series.end(),
                     [](const PlotSeries& series) { return has_bars(series); });
}

// Series with error bars are moved aside by a hair, so that the bars do not cover each other.
double shift(const Plot& plot, std::size_t index) {
  if (!has_bars(plot)) return 0;
  const double step = 0.01 * std::max(1, plot.most_gpus - 1);
  return step * (static_cast<double>(index) - (static_cast<double>(plot.series.size()) - 1) / 2);
}

std::string data_block(const Plot& plot, std::size_t index) {
  std::string block = fmt::format("$series{} << END\n", index);
  for (const PlotPoint& point : plot.series[index].points) {
    const Interval bar = point.interval.value_or(Interval{point.speed_up, point.speed_up});
    const double x = point.gpus + (point.gpus == 1 ? 0 : shift(plot, index));
    block += fmt::format("{} {} {} {}\n", x, point.speed_up, bar.low, bar.high);
  }
  return block + "END\n";
}

double highest(const Plot& plot) {
  double most = plot.most_gpus;
  for (const PlotSeries& series : plot.series) {
    for (const PlotPoint& point : series.points) {
      most = std::max(most, std::min(point.interval ? point.interval->high : point.speed_up,
                                     1.5 * plot.most_gpus));
    }
  }
  return most;
}

std::string curves(const Plot& plot) {
  std::string text =
      "plot $ideal using 1:2 with lines dashtype (8,6) linewidth 1 linecolor rgb '#000000' "
      "title 'ideal'";
  for (std::size_t i = 0; i < plot.series.size(); ++i) {
    const std::string style =
        fmt::format("linecolor rgb '{}' pointtype {} pointsize 0.8 linewidth 1.2",
                    kColours[i % kColours.size()], kPointTypes[i % kPointTypes.size()]);
    text += fmt::format(", \\\n  $series{} using 1:2 with linespoints {} title {}", i, style,
                        quoted(plot.series[i].name.empty() ? "measured" : plot.series[i].name));
    if (has_bars(plot.series[i])) {
      text += fmt::format(", \\\n  $series{} using 1:2:3:4 with yerrorbars {} notitle", i, style);
    }
  }
  return text + "\n";
}

// A folder of our own, gone with us.
class ScratchFolder {
 public:
  ScratchFolder() {
    std::string name = (fs::temp_directory_path() / "paceline-plot.XXXXXX").string();
    if (!mkdtemp(name.data())) {
      throw Error(ErrorKind::input, std::string("no temporary folder: ") + std::strerror(errno),
                  name, "set TMPDIR to a folder that can be written");
    }
    path_ = name;
  }
  ~ScratchFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

// env finds it on PATH, without a shell, and ends with 127 where there is none.
void run_gnuplot(const fs::path& script, const fs::path& picture, const fs::path& wanted) {
  std::string said;
  const auto hear = [&](std::string_view text) {
    if (said.size() < kMostMessages) said += text.substr(0, kMostMessages - said.size());
  };
  const Watch watch =
      watch_child({{"/usr/bin/env", "gnuplot", "-c", script.string(), picture.string()},
                   environment_of_process()},
                  hear, kGraceSeconds, kDeadlineSeconds);
  const auto fail = [&](const std::string& why) {
    throw Error(ErrorKind::internal, "no plot: gnuplot " + why, wanted.string(), "pass --no-plots");
  };
  if (watch.end.exit_code == 127) {
    throw Error(ErrorKind::usage, "no plot: gnuplot is not installed", wanted.string(),
                "install the package gnuplot-nox, or pass --no-plots");
  }
  std::error_code none;
  if (watch.timed_out) fail("did not end in time");
  if (watch.end.signal != 0) fail(fmt::format("was stopped by signal {}", watch.end.signal));
  if (watch.end.exit_code != 0) fail("failed: " + std::string(trim(said)));
  if (!fs::exists(picture, none) || fs::file_size(picture, none) == 0) fail("drew nothing");
}

}  // namespace

std::optional<Plot> make_plot(const Study& study, const Comparison& comparison,
                              const std::vector<RowFacts>& facts, const std::string& title) {
  std::vector<Ladder> ladders = make_ladders(study, comparison, facts, true);
  if (ladders.size() > kMostReadableSeries) ladders = make_ladders(study, comparison, facts, false);
  if (ladders.empty()) return std::nullopt;
  Plot plot;
  plot.title = title;
  plot.subtitle =
      fmt::format("ratio of {}, base {}", comparison.rates ? "samples per second" : "fit seconds",
                  comparison.base == Base::best ? "best" : "matched");
  plot.x_label = study.replicas_are_cores ? "replicas (groups of CPU cores)" : "GPUs";
  for (const Ladder& ladder : ladders) {
    plot.series.push_back(series_of(ladder));
    plot.most_gpus = std::max(plot.most_gpus, ladder.rungs.back().gpus);
  }
  if (has_bars(plot)) plot.subtitle += "; bars: 95 % intervals";
  return plot;
}

void check_plot_format(const std::string& format) {
  if (format == "svg" || format == "png" || format == "pdf") return;
  throw Error(ErrorKind::usage, fmt::format("unknown plot format \"{}\"", format), "--plots",
              suggestion(format, {"svg", "png", "pdf"}));
}

std::string plot_script(const Plot& plot, const std::string& format) {
  const double margin = 0.05 * std::max(1, plot.most_gpus - 1);
  std::string script = fmt::format("set terminal {}\nset output ARG1\nset encoding utf8\n",
                                   terminal(format, plot.series.size()));
  script += fmt::format(
      "set tmargin 4.5\nset title {} offset 0,0.9\nset label 1 {} at graph 0.5,1.05 center "
      "textcolor rgb '#444444'\n"
      "set xlabel {}\nset ylabel 'speed-up'\n",
      quoted(plot.title), quoted(plot.subtitle), quoted(plot.x_label));
  script += "set border 3\nset tics nomirror out\n";
  script += "set grid ytics linetype 1 linewidth 0.5 linecolor rgb '#dddddd'\n";
  script += "set key below center vertical maxcols 1 reverse Left samplen 2.5 title ' '\n";
  script += fmt::format("set xrange [{}:{}]\nset xtics ({})\n", 1 - margin, plot.most_gpus + margin,
                        tics(plot));
  script += fmt::format("set yrange [0:{}]\n", 1.04 * highest(plot));
  script += fmt::format("$ideal << END\n1 1\n{0} {0}\nEND\n", plot.most_gpus);
  for (std::size_t i = 0; i < plot.series.size(); ++i) script += data_block(plot, i);
  return script + curves(plot) + "unset output\n";
}

void draw_plot(const Plot& plot, const std::string& format, const fs::path& file) {
  check_plot_format(format);
  const ScratchFolder folder;
  const fs::path script = folder.path() / "plot.gp";
  const fs::path picture = folder.path() / ("plot." + format);
  replace_file(script, plot_script(plot, format));
  run_gnuplot(script, picture, file);
  replace_file(file, read_text(picture));
}

}  // namespace paceline
