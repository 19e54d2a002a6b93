#include <fmt/format.h>

#include <array>
#include <cmath>

#include "analysis/plots/script.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

// From white, or where gaps are white from a pale one, to the palette's blue.
std::array<int, 3> heat_color(double heat, bool pale) {
  constexpr std::array<double, 3> kPale = {212, 228, 240}, kHot = {0, 114, 178};
  std::array<int, 3> rgb{};
  for (std::size_t i = 0; i < 3; ++i) {
    const double cold = pale ? kPale[i] : 255;
    rgb[i] = static_cast<int>(std::lround(cold + (kHot[i] - cold) * heat));
  }
  return rgb;
}

// Of more rows cells are too small for a text, and most are gaps.
constexpr std::size_t kMostWithTexts = 16;

bool is_small(const HeatMap& map) {
  return map.rows.size() > kMostWithTexts;
}

std::string boxes(const HeatMap& map) {
  std::string block = "$cells << END\n";
  for (std::size_t r = 0; r < map.rows.size(); ++r) {
    for (std::size_t c = 0; c < map.columns.size(); ++c) {
      const auto& cell = map.cells[r][c];
      if (!cell && is_small(map)) continue;
      const auto [red, green, blue] =
          cell ? heat_color(cell->heat, is_small(map)) : std::array{235, 235, 235};
      block += fmt::format("{} {} {} {} {} {} {}\n", c, r, static_cast<double>(c) - 0.48,
                           static_cast<double>(c) + 0.48, static_cast<double>(r) - 0.47,
                           static_cast<double>(r) + 0.47, red * 65536 + green * 256 + blue);
    }
  }
  return block + "END\n";
}

std::string texts(const HeatMap& map) {
  std::string text;
  if (is_small(map)) return text;
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
  return 190 + map.rows.size() * (is_small(map) ? 11 : 62);
}

std::string heat_map_script(const HeatMap& map) {
  std::string script = "set border 0\n";
  const bool small = is_small(map);
  script += fmt::format("set xtics ({}) scale 0{}\nset ytics ({}) scale 0{}\n", tics(map.columns),
                        small ? " rotate by 90 right font ',8'" : "", tics(map.rows),
                        small ? " font ',8'" : "");
  script += fmt::format("set xrange [-0.5:{}]\nset yrange [-0.5:{}]\n",
                        static_cast<double>(map.columns.size()) - 0.5,
                        static_cast<double>(map.rows.size()) - 0.5);
  script +=
      fmt::format("set style fill solid 1.0 {}\n", small ? "noborder" : "border rgb '#888888'");
  script += texts(map) + boxes(map);
  return script +
         "plot $cells using 1:2:3:4:5:6:7 with boxxyerror linewidth 0.5 fillcolor rgb variable\n";
}

}  // namespace paceline
