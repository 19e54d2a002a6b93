#include "engine/meter/meter_files.h"

#include <algorithm>
#include <fstream>

#include "engine/core/environment.h"
#include "engine/core/text.h"
#include "engine/meter/meter_roots.h"

namespace paceline {

namespace fs = std::filesystem;

MeterRoots meter_roots() {
  const std::string folder = environment_value(environment_of_process(), "PACELINE_METER_ROOT");
  if (folder.empty()) return {};
  return {fs::path(folder) / "proc", fs::path(folder) / "sys"};
}

std::string first_line(const fs::path& file) {
  std::ifstream stream(file);
  std::string line;
  std::getline(stream, line);
  return std::string(trim(line));
}

std::optional<double> leading_number(const std::string& line) {
  return to_real(split(line, ' ').front());
}

bool can_read(const fs::path& file) {
  return std::ifstream(file).good();
}

std::vector<fs::path> list_entries(const fs::path& folder, std::string_view beginning) {
  std::vector<fs::path> found;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    if (entry.path().filename().string().starts_with(beginning)) found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::function<std::optional<double>()> make_reader(const fs::path& file, double scale) {
  return [file, scale]() -> std::optional<double> {
    const auto number = leading_number(first_line(file));
    return number ? std::optional(*number * scale) : std::nullopt;
  };
}

}  // namespace paceline
