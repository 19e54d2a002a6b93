#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/plots/script.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

constexpr double kBand = 0.76;  // of what a group has for them is bars
constexpr std::size_t kMostBeside = 30, kMostGroupName = 70, kMostName = 60;
constexpr std::size_t kNameHeight = 22;  // pixels

// Groups stand at 0, -1, -2, ... from the top.
struct Box {
  double from, to, low, high;
};

std::size_t longest_name(const Bars& bars) {
  std::size_t longest = 0;
  for (const std::string& name : bars.groups) longest = std::max(longest, display_width(name));
  return longest;
}

// Long names would leave no room for the bars beside them.
bool has_names_above(const Bars& bars) {
  return longest_name(bars) > kMostBeside;
}

// In pixels, without a name above.
std::size_t bars_height(const Bars& bars) {
  const std::size_t lines = std::max<std::size_t>(1, bars.series.size());
  return bars.stacked ? 30 : 12 + 26 * lines;
}

std::size_t group_height(const Bars& bars) {
  return bars_height(bars) + (has_names_above(bars) ? kNameHeight : 0);
}

// The centre of a group's bars.
double centre(const Bars& bars, std::size_t group) {
  const double below = has_names_above(bars) ? 0.5 * static_cast<double>(kNameHeight) /
                                                   static_cast<double>(group_height(bars))
                                             : 0;
  return -static_cast<double>(group) - below;
}

double middle(const Box& box) {
  return (box.low + box.high) / 2;
}

Box compute_box(const Bars& bars, std::size_t series, std::size_t group) {
  const double at = centre(bars, group);
  const double band =
      kBand * static_cast<double>(bars_height(bars)) / static_cast<double>(group_height(bars));
  const double value = bars.series[series].bars[group]->value;
  if (!bars.stacked) {
    const double height = band / static_cast<double>(bars.series.size());
    const double top = at + band / 2 - height * static_cast<double>(series);
    return {0, value, top - 0.92 * height, top};
  }
  double before = 0;  // negative values are stacked to the left
  for (std::size_t s = 0; s < series; ++s) {
    const auto& bar = bars.series[s].bars[group];
    if (bar && (bar->value < 0) == (value < 0)) before += bar->value;
  }
  return {before, before + value, at - band / 2, at + band / 2};
}

// Calls visit(series, group, bar) for each bar that is there.
template <typename Visit>
void each_bar(const Bars& bars, const Visit& visit) {
  for (std::size_t s = 0; s < bars.series.size(); ++s) {
    for (std::size_t g = 0; g < bars.groups.size(); ++g) {
      if (bars.series[s].bars[g]) visit(s, g, *bars.series[s].bars[g]);
    }
  }
}

// From where the stacks to the left end, or 0, to where bars do.
Interval reach(const Bars& bars) {
  Interval ends;
  each_bar(bars, [&](std::size_t s, std::size_t g, const Bar&) {
    const double end = compute_box(bars, s, g).to;
    ends = {std::min(ends.low, end), std::max(ends.high, end)};
  });
  return ends;
}

// The interval's, or where it would leave the bars too short: it is cut there.
double line_end(const Bar& bar, double longest_bar) {
  constexpr double kReach = 3;
  return bar.interval ? std::min(bar.interval->high, kReach * longest_bar) : bar.value;
}

double longest_line(const Bars& bars, double longest_bar) {
  double most = longest_bar;
  each_bar(bars, [&](std::size_t, std::size_t, const Bar& bar) {
    most = std::max(most, line_end(bar, longest_bar));
  });
  return most;
}

std::string boxes(const Bars& bars, std::size_t series) {
  std::string block = fmt::format("$bars{} << END\n", series);
  for (std::size_t g = 0; g < bars.groups.size(); ++g) {
    if (!bars.series[series].bars[g]) continue;
    const Box box = compute_box(bars, series, g);
    block += fmt::format("{} {} {} {} {} {}\n", box.to, middle(box), box.from, box.to, box.low,
                         box.high);
  }
  return block + "END\n";
}

// A line that is cut ends in an arrow.
std::string error_bars(const Bars& bars, double longest_bar) {
  std::string block, arrows;
  each_bar(bars, [&](std::size_t s, std::size_t g, const Bar& bar) {
    if (!bar.interval || bars.stacked) return;
    const double at = middle(compute_box(bars, s, g)), end = line_end(bar, longest_bar);
    const bool is_cut = end < bar.interval->high;
    block +=
        fmt::format("{} {} {} {}\n", bar.value, at, bar.interval->low, is_cut ? bar.value : end);
    if (!is_cut) return;
    arrows += fmt::format("set arrow from {},{} to {},{} linewidth 1.2 linecolor rgb '#000000'\n",
                          bar.value, at, end, at);
  });
  return block.empty() ? block : arrows + "$errors << END\n" + block + "END\n";
}

// How far the axis reaches, so that the note behind each stack fits: in pixels, of a letter of a
// note and of a group's name, and of a picture of 700.
double axis_end(const Bars& bars, double least, double most) {
  constexpr double kNoteLetter = 7.3, kNameLetter = 10, kPicture = 667, kNames = 32;
  const std::size_t beside = has_names_above(bars) ? 0 : longest_name(bars);
  const double width = kPicture - kNames - kNameLetter * static_cast<double>(beside);
  double end = 1.18 * most;
  for (std::size_t g = 0; g < bars.notes.size(); ++g) {
    double stack = 0;
    for (const BarSeries& series : bars.series) {
      if (series.bars[g]) stack += std::max(0.0, series.bars[g]->value);
    }
    const double note = kNoteLetter * static_cast<double>(display_width(bars.notes[g]) + 1) / width;
    end = std::max(end, least + (stack - least) / (1 - std::min(0.7, note)));
  }
  return end;
}

// Numbers behind the bars, notes behind the stacks.
std::string labels(const Bars& bars, double longest_bar, double most) {
  std::string text;
  int number = 3;
  const auto put = [&](const std::string& what, double x, double y, const char* colour) {
    if (what.empty()) return;
    text += fmt::format("set label {} {} at {},{} left font ',12' textcolor rgb '{}'\n", number++,
                        quoted(what), x + 0.012 * most, y, colour);
  };
  for (std::size_t g = 0; g < bars.groups.size(); ++g) {
    double end = 0;
    bool is_empty = true;
    for (std::size_t s = 0; s < bars.series.size(); ++s) {
      const auto& bar = bars.series[s].bars[g];
      if (!bar) continue;
      is_empty = is_empty && bar->value == 0;
      const Box box = compute_box(bars, s, g);
      end = std::max(end, box.to);
      put(bar->label, std::max(line_end(*bar, longest_bar), box.to), middle(box), "#000000");
    }
    if (g < bars.notes.size()) {
      put(bars.notes[g], end, centre(bars, g), is_empty ? kFaint : "#000000");
    }
  }
  return text;
}

// 1, 2 or 5 times a power of ten, so that about five numbers stand below the axis.
double tic_step(double most) {
  if (!(most > 0)) return 1;
  const double power = std::pow(10.0, std::floor(std::log10(most / 5)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= most / 5) return factor * power;
  }
  return 10 * power;
}

// The groups' names, beside their bars or above them.
std::string group_names(const Bars& bars) {
  constexpr int kFirst = 50000;  // of the labels
  std::vector<std::string> tics;
  std::string above;
  for (std::size_t g = 0; g < bars.groups.size(); ++g) {
    const std::string name = quoted(shortened(bars.groups[g], kMostGroupName));
    if (!has_names_above(bars)) {
      tics.push_back(fmt::format("{} {}", name, -static_cast<int>(g)));
      continue;
    }
    const double share = static_cast<double>(kNameHeight) / static_cast<double>(group_height(bars));
    above +=
        fmt::format("set label {} {} at graph 0.003,first {} left front boxed\n",
                    kFirst + static_cast<int>(g), name, 0.5 - 0.5 * share - static_cast<double>(g));
  }
  if (!above.empty()) {
    return "unset ytics\nset lmargin 4\nset style textbox opaque margins 0.2,0.1 noborder\n" +
           above;
  }
  // gnuplot would take letters for wider than they are.
  return fmt::format("set ytics ({}) scale 0\nset lmargin {:.1f}\n", join(tics, ", "),
                     3 + 0.93 * static_cast<double>(longest_name(bars)));
}

}  // namespace

std::size_t body_height(const Bars& bars) {
  return 185 + bars.groups.size() * group_height(bars);
}

std::string bars_script(const Bars& bars) {
  const auto [least, longest_bar] = reach(bars);
  const double line = longest_line(bars, longest_bar);
  const double most = line > 0 || least < 0 ? line : 1;  // an axis has a length
  const double end = std::max(axis_end(bars, least, most), -0.2 * least);
  std::string script = group_names(bars);
  script += fmt::format("set xrange [{}:{}]\nset xtics {}{}\nset yrange [{}:0.6]\n", 1.05 * least,
                        end, least < 0 ? "" : "0,", tic_step(end - least),
                        0.4 - static_cast<double>(bars.groups.size()));
  script += "set grid xtics linetype 1 linewidth 0.5 linecolor rgb '#dddddd'\n";
  script += "set border 1\nset style fill solid 1.0 border rgb '#ffffff'\n";
  if (least < 0) script += "set yzeroaxis linetype 1 linewidth 0.7 linecolor rgb '#000000'\n";
  script += labels(bars, longest_bar, most - least);
  std::vector<std::string> parts;
  for (std::size_t s = 0; s < bars.series.size(); ++s) {
    script += boxes(bars, s);
    parts.push_back(
        fmt::format("$bars{} using 1:2:3:4:5:6 with boxxyerror linewidth 0.5 fillcolor rgb '{}' "
                    "title {}",
                    s, colour(bars.series[s].colour.value_or(s)),
                    quoted(shortened(bars.series[s].name, kMostName))));
  }
  if (const std::string errors = error_bars(bars, longest_bar); !errors.empty()) {
    script += errors;
    parts.push_back(
        "$errors using 1:2:3:4 with xerrorbars pointtype -1 linewidth 1.2 linecolor rgb '#000000' "
        "notitle");
  }
  return script + "plot " + join(parts, ", \\\n  ") + "\n";
}

}  // namespace paceline
