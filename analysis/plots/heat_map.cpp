#include <fmt/format.h>

#include <array>
#include <cmath>

#include "analysis/plots/script.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

// From white to the palette's blue.
std::array<int, 3> heat_color(double heat) {
  constexpr std::array<double, 3> kCold = {255, 255, 255}, kHot = {0, 114, 178};
  std::array<int, 3> rgb{};
  for (std::size_t i = 0; i < 3; ++i) {
    rgb[i] = static_cast<int>(std::lround(kCold[i] + (kHot[i] - kCold[i]) * heat));
  }
  return rgb;
}

std::string boxes(const HeatMap& map) {
  std::string block = "$cells << END\n";
  for (std::size_t r = 0; r < map.rows.size(); ++r) {
    for (std::size_t c = 0; c < map.columns.size(); ++c) {
      const auto& cell = map.cells[r][c];
      const auto [red, green, blue] = cell ? heat_color(cell->heat) : std::array{235, 235, 235};
      block += fmt::format("{} {} {} {} {} {} {}\n", c, r, static_cast<double>(c) - 0.48,
                           static_cast<double>(c) + 0.48, static_cast<double>(r) - 0.47,
                           static_cast<double>(r) + 0.47, red * 65536 + green * 256 + blue);
    }
  }
  return block + "END\n";
}

std::string texts(const HeatMap& map) {
  std::string text;
  int number = 3;
  for (std::size_t r = 0; r < map.rows.size(); ++r) {
    for (std::size_t c = 0; c < map.columns.size(); ++c) {
      const auto& cell = map.cells[r][c];
      const char* colour = !cell ? kFaint : cell->heat > 0.55 ? "#ffffff" : "#000000";
      const auto put = [&](const std::string& what, double offset, const char* font) {
        if (what.empty()) return;
        text += fmt::format(
            "set label {} {} at {},{} center offset 0,{} front font ',{}' textcolor rgb '{}'\n",
            number++, quoted(what), c, r, offset, font, colour);
      };
      put(cell ? cell->text : "no result", cell ? 0.45 : 0, cell ? "14" : "11");
      if (cell) put(cell->detail, -0.55, "11");
    }
  }
  return text;
}

std::string tics(const std::vector<std::string>& names) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < names.size(); ++i) {
    parts.push_back(fmt::format("{} {}", quoted(shortened(names[i], 20)), i));
  }
  return join(parts, ", ");
}

}  // namespace

std::size_t body_height(const HeatMap& map) {
  return 190 + map.rows.size() * 62;
}

std::string heat_map_script(const HeatMap& map) {
  std::string script = "set border 0\n";
  script += fmt::format("set xtics ({}) scale 0\nset ytics ({}) scale 0\n", tics(map.columns),
                        tics(map.rows));
  script += fmt::format("set xrange [-0.5:{}]\nset yrange [-0.5:{}]\n",
                        static_cast<double>(map.columns.size()) - 0.5,
                        static_cast<double>(map.rows.size()) - 0.5);
  script += "set style fill solid 1.0 border rgb '#888888'\n";
  script += texts(map) + boxes(map);
  return script +
         "plot $cells using 1:2:3:4:5:6:7 with boxxyerror linewidth 0.5 fillcolor rgb variable\n";
}

}  // namespace paceline
