#include "analysis/render/report_files.h"

#include <nlohmann/json.hpp>

#include "engine/core/error.h"
#include "engine/core/json.h"

namespace paceline {

namespace fs = std::filesystem;

namespace {

bool says_it_is_ours(const fs::path& file, const char* key) {
  std::error_code none;
  if (!fs::is_regular_file(file, none)) return false;
  try {
    const Json json = Json::parse(read_text(file));
    return json.is_object() && json.contains("schema") && json.contains(key);
  } catch (const std::exception&) {
    return false;
  }
}

}  // namespace

OutputFile report_file(const fs::path& folder, const std::string& name) {
  return {folder / name, "--out", "report's", [folder](std::string_view) {
            return says_it_is_ours(folder / "report.json", "tables") ||
                   says_it_is_ours(folder / "collectives.json", "collectives") ||
                   says_it_is_ours(folder / "history.json", "history") ||
                   says_it_is_ours(folder / "prediction.json", "tables");
          }};
}

void check_report_folder(const fs::path& folder, const std::vector<std::string>& names) {
  std::error_code none;
  if (fs::exists(folder, none) && !fs::is_directory(folder, none)) {
    throw Error(ErrorKind::usage, "not a folder", folder.string(), "name another with --out");
  }
  for (const std::string& name : names) report_file(folder, name).check_name();
}

}  // namespace paceline
