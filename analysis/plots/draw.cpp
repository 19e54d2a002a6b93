#include "analysis/plots/draw.h"

#include <fmt/format.h>

#include "analysis/plots/script.h"
#include "engine/core/child.h"
#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/json.h"
#include "engine/core/text.h"

namespace paceline {

namespace fs = std::filesystem;

namespace {

constexpr double kDeadlineSeconds = 60, kGraceSeconds = 2;
constexpr std::size_t kMostMessages = 2048;

// env finds it on PATH, without a shell, and ends with 127 where there is none.
void run_gnuplot(const fs::path& script, const fs::path& picture, const std::string& name) {
  std::string said;
  const auto collect = [&](std::string_view text) {
    if (said.size() < kMostMessages) said += text.substr(0, kMostMessages - said.size());
  };
  const Watch watch =
      watch_child({{"/usr/bin/env", "gnuplot", "-c", script.string(), picture.string()},
                   environment_of_process()},
                  collect, kGraceSeconds, kDeadlineSeconds);
  const auto fail = [&](const std::string& why) {
    throw Error(ErrorKind::usage, "the plot cannot be drawn: gnuplot " + why, name,
                "mend gnuplot, or pass --no-plots");
  };
  if (watch.end.exit_code == 127) {
    throw Error(ErrorKind::usage, "gnuplot is not installed", name,
                "install the package gnuplot-nox, or pass --no-plots");
  }
  std::error_code none;
  if (watch.timed_out) fail("did not end in time");
  if (watch.end.signal != 0) fail(fmt::format("was stopped by signal {}", watch.end.signal));
  if (watch.end.exit_code != 0) {
    const std::string last(trim(said));
    fail(fmt::format("ended with exit code {}{}{}", watch.end.exit_code, last.empty() ? "" : ": ",
                     last));
  }
  if (!fs::exists(picture, none) || fs::file_size(picture, none) == 0) fail("drew nothing");
}

}  // namespace

void check_plot_format(const std::string& format) {
  if (format == "svg" || format == "png" || format == "pdf") return;
  throw Error(ErrorKind::usage, fmt::format("unknown plot format \"{}\"", format), "--plots",
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

void draw_plot(const Plot& plot, const std::string& format, const fs::path& file) {
  replace_file(file, draw_plot(plot, format));
}

}  // namespace paceline
