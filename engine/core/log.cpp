#include "engine/core/log.h"

#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "engine/core/output.h"
#include "engine/core/text.h"

namespace paceline::log {

namespace {

spdlog::level::level_enum to_spdlog_level(Level level) {
  constexpr spdlog::level::level_enum kLevels[] = {spdlog::level::debug, spdlog::level::info,
                                                   spdlog::level::warn, spdlog::level::err};
  return kLevels[static_cast<std::size_t>(level)];
}

}  // namespace

void set_up(const Setup& setup) {
  std::vector<spdlog::sink_ptr> sinks;
  if (setup.to_stderr) {
    const auto mode =
        colours_welcome(STDERR_FILENO) ? spdlog::color_mode::automatic : spdlog::color_mode::never;
    sinks.push_back(std::make_shared<spdlog::sinks::stderr_color_sink_mt>(mode));
  }
  if (!setup.file.empty()) {
    sinks.push_back(std::make_shared<spdlog::sinks::basic_file_sink_mt>(setup.file.string()));
  }
  auto logger = std::make_shared<spdlog::logger>("paceline", sinks.begin(), sinks.end());
  logger->set_level(to_spdlog_level(setup.level));
  logger->set_pattern(setup.prefix.empty() ? "%v" : setup.prefix + "%v");
  logger->flush_on(spdlog::level::info);
  spdlog::set_default_logger(logger);
}

void write(Level level, const std::string& text) {
  const std::string line = printable(text, "\n\t");
  // Where nobody has set a logger up, spdlog's own writes to standard output.
  static std::once_flag once;
  std::call_once(once, [] {
    if (spdlog::default_logger_raw()->name().empty()) set_up({});
  });
  if (level == Level::warning) {
    spdlog::default_logger_raw()->log(to_spdlog_level(level), "warning: {}", line);
  } else {
    spdlog::default_logger_raw()->log(to_spdlog_level(level), "{}", line);
  }
}

void alert(const std::string& line) {
  write(Level::warning, line);
  const auto& sinks = spdlog::default_logger_raw()->sinks();
  const bool shown = std::ranges::any_of(sinks, [](const spdlog::sink_ptr& sink) {
    return dynamic_cast<const spdlog::sinks::stderr_color_sink_mt*>(sink.get()) != nullptr;
  });
  if (!shown) print_note("warning: {}\n", line);
}

}  // namespace paceline::log
