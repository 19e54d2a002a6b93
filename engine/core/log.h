// Logs lines to standard error. By default only rank 0 prints; other ranks can log to files.
#pragma once

#include <fmt/format.h>

#include <filesystem>
#include <string>

namespace paceline::log {

enum class Level { debug, info, warning, error };

struct Setup {
  Level level = Level::info;
  std::string prefix;          // "rank 3: ", or empty
  bool to_stderr = true;       // false: only to the file, if any
  std::filesystem::path file;  // empty: none
};

void set_up(const Setup& setup);
void write(Level level, const std::string& line);

template <typename... Args>
void debug(fmt::format_string<Args...> format, Args&&... args) {
  write(Level::debug, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void info(fmt::format_string<Args...> format, Args&&... args) {
  write(Level::info, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void warning(fmt::format_string<Args...> format, Args&&... args) {
  write(Level::warning, fmt::format(format, std::forward<Args>(args)...));
}

// A warning that users must see: printed to standard error even if this rank is quiet.
void alert(const std::string& line);

}  // namespace paceline::log
