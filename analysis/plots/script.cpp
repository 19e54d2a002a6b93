#include "analysis/plots/script.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "engine/core/child.h"
#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/json.h"
#include "engine/core/text.h"

namespace paceline {

namespace fs = std::filesystem;

namespace {

// Okabe and Ito's palette without black, which is the ideal line's. Its yellow comes late, as it is
// faint on white. Then two of Tol's, and two shades beside the orange of communication.
constexpr std::array kColours = {"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9",
                                 "#999999", "#f0e442", "#882255", "#332288", "#f0a060", "#8a3d00"};
constexpr std::array kPointTypes = {7, 5, 9, 13, 11, 15, 6, 4};
constexpr std::array kDashes = {"", " dashtype (7,4)", " dashtype (2,3)", " dashtype (7,3,2,3)"};
constexpr std::size_t kMostTitle = 70, kMostSubtitle = 92;
constexpr std::size_t kLineHeight = 22, kLinesHeight = 440;

// One line, or two of which the first ends with a comma.
std::vector<std::string> title_lines(const std::string& title) {
  if (display_width(title) <= kMostTitle) return {title};
  std::size_t end = title.find(", ");
  for (std::size_t next = end;
       next != std::string::npos && display_width(title.substr(0, next)) < kMostTitle;
       next = title.find(", ", next + 1)) {
    end = next;
  }
  if (end == std::string::npos || display_width(title.substr(0, end)) >= kMostTitle) return {title};
  return {title.substr(0, end + 1), title.substr(end + 2)};
}

std::vector<std::string> legend_lines(const Plot& plot) {
  std::vector<std::string> names;
  if (const auto* lines = std::get_if<Lines>(&plot.body)) {
    if (lines->ideal) names.push_back(lines->ideal->name);
    for (const PlotSeries& series : lines->series) names.push_back(series.name);
  } else if (const auto* bars = std::get_if<Bars>(&plot.body)) {
    for (const BarSeries& series : bars->series) names.push_back(series.name);
  } else if (const auto* timeline = std::get_if<Timeline>(&plot.body)) {
    names = legend_lines(*timeline);
  }
  return names;
}

// Short names stand in several columns.
std::size_t legend_columns(const std::vector<std::string>& names) {
  std::size_t longest = 0;
  for (const std::string& name : names) longest = std::max(longest, display_width(name));
  const std::size_t fit = 68 / (longest + 6);
  return std::clamp<std::size_t>(fit, 1, std::max<std::size_t>(1, names.size()));
}

std::size_t legend_height(const std::vector<std::string>& names) {
  const std::size_t columns = legend_columns(names);
  return kLineHeight * ((names.size() + columns - 1) / columns + 1);
}

std::size_t plot_height(const Plot& plot) {
  std::size_t height = kLinesHeight;
  if (const auto* bars = std::get_if<Bars>(&plot.body)) height = body_height(*bars);
  const auto* map = std::get_if<HeatMap>(&plot.body);
  height = map ? body_height(*map) : height + legend_height(legend_lines(plot));
  if (plot.title.empty()) return height - 2 * kLineHeight;
  return height + (title_lines(plot.title).size() - 1) * kLineHeight;
}

// Sizes are in hundredths of the printed inch: PNG has twice the dots of SVG.
std::string terminal_options(const std::string& format, std::size_t height) {
  if (format == "svg") {
    return fmt::format(
        "svg noenhanced size 700,{} font 'DejaVu Sans,Helvetica,Arial,sans-serif,14' "
        "linewidth 1.5 background '#ffffff'",
        height);
  }
  if (format == "png") {
    return fmt::format(
        "pngcairo noenhanced size 1400,{} font 'DejaVu Sans,14' fontscale 1.86 linewidth 3 "
        "pointscale 2 background '#ffffff'",
        2 * height);
  }
  return fmt::format("pdfcairo noenhanced size 7in,{:.2f}in font 'DejaVu Sans,14' linewidth 1.5",
                     static_cast<double>(height) / 100);
}

std::string key_script(const Plot& plot) {
  const auto names = legend_lines(plot);
  if (names.empty()) return "unset key\n";
  const auto* lines = std::get_if<Lines>(&plot.body);
  const bool has_dashes =
      lines && std::ranges::any_of(line_looks(lines->series),
                                   [](const LineLook& it) { return *it.dash != 0; });
  const std::string table = fmt::format(
      "vertical maxcols {} maxrows {} reverse Left samplen {}", legend_columns(names),
      (names.size() + legend_columns(names) - 1) / legend_columns(names), has_dashes ? 5 : 2.5);
  if (!std::holds_alternative<Bars>(plot.body)) {
    return "set key below center " + table + " title ' '\n";
  }
  // In the middle of the page: names of bars push the plot to the right, and the legend out.
  constexpr double kAxis = 62, kBelow = 8;
  const auto height = static_cast<double>(plot_height(plot));
  return fmt::format(
      "set bmargin at screen {:.4f}\nset key at screen 0.5, screen {:.4f} center bottom {}\n",
      (static_cast<double>(legend_height(names)) + kAxis) / height, kBelow / height, table);
}

// Where a character begins, in bytes.
std::size_t byte_offset(const std::string& text, std::size_t character) {
  std::size_t seen = 0, at = 0;
  for (; at < text.size(); ++at) {
    const bool begins = (static_cast<unsigned char>(text[at]) >> 6) != 2;
    if (begins && seen++ == character) break;
  }
  return at;
}

struct BodyScript {
  std::string operator()(const Lines& lines) const { return lines_script(lines); }
  std::string operator()(const Bars& bars) const { return bars_script(bars); }
  std::string operator()(const HeatMap& map) const { return heat_map_script(map); }
  std::string operator()(const Timeline& timeline) const { return timeline_script(timeline); }
};

constexpr double kDeadlineSeconds = 60, kGraceSeconds = 2;
constexpr std::size_t kMostMessages = 2048;

// env finds gnuplot on PATH, without a shell, and ends with 127 if there is none.
void run_gnuplot(const fs::path& script, const fs::path& picture, const std::string& name) {
  std::string messages;
  const auto collect = [&](std::string_view text) {
    if (messages.size() < kMostMessages) {
      messages += text.substr(0, kMostMessages - messages.size());
    }
  };
  const Watch watch =
      watch_child({{"/usr/bin/env", "gnuplot", "-c", script.string(), picture.string()},
                   environment_of_process()},
                  collect, kGraceSeconds, kDeadlineSeconds);
  const auto fail = [&](const std::string& why) {
    throw usage_error("the plot cannot be drawn: gnuplot " + why, name,
                      "mend gnuplot, or pass --no-plots");
  };
  if (watch.end.exit_code == 127) {
    throw usage_error("gnuplot is not installed", name,
                      "install the package gnuplot-nox, or pass --no-plots");
  }
  std::error_code none;
  if (watch.timed_out) fail("did not end in time");
  if (watch.end.signal != 0) fail(fmt::format("was stopped by signal {}", watch.end.signal));
  if (watch.end.exit_code != 0) {
    const std::string last(trim(messages));
    fail(fmt::format("ended with exit code {}{}{}", watch.end.exit_code, last.empty() ? "" : ": ",
                     last));
  }
  if (!fs::exists(picture, none) || fs::file_size(picture, none) == 0) fail("drew nothing");
}

}  // namespace

std::string quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : printable(text)) {
    if (c == '\'') {
      result += "’";
    } else {
      // gnuplot writes names into CDATA of SVG, which this would end.
      if (c == '>' && result.ends_with("]]")) result += ' ';
      result += c;
    }
  }
  return result + "'";
}

std::string clipped(const std::string& text, std::size_t characters) {
  if (display_width(text) <= characters) return text;
  return text.substr(0, byte_offset(text, characters - 1)) + "…";
}

std::string shortened(const std::string& text, std::size_t characters) {
  const std::size_t all = display_width(text), head = characters / 2, tail = characters - head - 1;
  if (all <= characters) return text;
  return text.substr(0, byte_offset(text, head)) + "…" + text.substr(byte_offset(text, all - tail));
}

std::string colour(std::size_t index) {
  return kColours[index % kColours.size()];
}

std::string tics_script(const std::vector<Tic>& tics) {
  const auto text = [](const Tic& tic) { return fmt::format("{} {}", quoted(tic.label), tic.at); };
  return fmt::format("set xtics ({})\n", join(mapped(tics, text), ", "));
}

std::string line_style(std::size_t index, const LineLook& look, bool predicted) {
  constexpr int kHollow = 6;
  return fmt::format("linecolor rgb '{}' pointtype {} pointsize {} linewidth 1.2{}",
                     colour(look.colour),
                     predicted ? kHollow : kPointTypes[index % kPointTypes.size()],
                     predicted ? 1.1 : 0.8, predicted ? " dashtype (3,3)" : "");
}

std::string without_part(std::string name, const std::string& part) {
  if (part.empty()) return name;
  for (const std::string& each : {part + ", ", ", " + part}) {
    if (const auto at = name.find(each); at != std::string::npos)
      return name.erase(at, each.size());
  }
  return name == part ? "" : name;
}

std::vector<LineLook> line_looks(const std::vector<PlotSeries>& series) {
  std::vector<std::string> names, machines;
  const auto index = [](std::vector<std::string>& all, const std::string& text) {
    const auto at = static_cast<std::size_t>(std::ranges::find(all, text) - all.begin());
    if (at == all.size()) all.push_back(text);
    return at;
  };
  std::vector<LineLook> looks;
  for (const PlotSeries& each : series) {
    const std::size_t machine = index(machines, each.machine);
    looks.push_back({index(names, without_part(each.name, each.machine)),
                     kDashes[std::min(machine, kDashes.size() - 1)]});
  }
  if (machines.size() > 1 && machines.size() <= kDashes.size()) return looks;
  for (std::size_t i = 0; i < looks.size(); ++i) looks[i] = {i};
  return looks;
}

namespace {

std::string head_script(const Plot& plot) {
  std::string script;
  // Labels of the body count from 3.
  constexpr int kSubtitle = 2, kFirstTitle = 100000;
  double offset = -1.1;
  int number = kFirstTitle;
  for (const std::string& line : title_lines(plot.title)) {
    script += fmt::format("set label {} {} at screen 0.5,1 center offset 0,{:.1f} font ',15'\n",
                          number++, quoted(clipped(line, kMostTitle)), offset);
    offset -= 1.4;
  }
  return script + fmt::format(
                      "set label {} {} at screen 0.5,1 center offset 0,{:.1f} font ',13' textcolor "
                      "rgb '#444444'\nset tmargin {:.1f}\n",
                      kSubtitle, quoted(clipped(plot.subtitle, kMostSubtitle)), offset,
                      1.1 - offset);
}

}  // namespace

std::string plot_script(const Plot& plot, const std::string& format) {
  std::string script = fmt::format("set terminal {}\nset output ARG1\nset encoding utf8\n",
                                   terminal_options(format, plot_height(plot)));
  script += plot.title.empty() ? "set tmargin 0.8\n" : head_script(plot);
  script +=
      fmt::format("set xlabel {}\nset ylabel {}\n", quoted(plot.x_label), quoted(plot.y_label));
  script += "set border 3\nset tics nomirror out\n";
  script += key_script(plot) + std::visit(BodyScript{}, plot.body) + "unset output\n";
  // gnuplot escapes "&" in SVG, but not before "#": a name with "&#x1b;" would be no XML.
  for (auto at = script.find("&#"); format == "svg" && at != script.npos;
       at = script.find("&#", at + 5)) {
    script.replace(at, 1, "&#38;");
  }
  return script;
}

void check_plot_format(const std::string& format) {
  if (format == "svg" || format == "png" || format == "pdf") return;
  throw usage_error(fmt::format("unknown plot format \"{}\"", format), "--plots",
                    suggestion(format, {"svg", "png", "pdf"}));
}

std::string draw_plot(const Plot& plot, const std::string& format) {
  check_plot_format(format);
  const ScratchFolder folder("paceline-plot");
  const fs::path script = folder.path() / "plot.gp";
  const fs::path picture = folder.path() / ("plot." + format);
  replace_file(script, plot_script(plot, format));
  run_gnuplot(script, picture, plot.name);
  return read_text(picture);
}

}  // namespace paceline
