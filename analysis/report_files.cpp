#include "analysis/report_files.h"

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

void check_report_folder(const fs::path& folder, const std::vector<std::string>& names) {
  std::error_code none;
  if (fs::exists(folder, none) && !fs::is_directory(folder, none)) {
    throw Error(ErrorKind::usage, "is no folder", folder.string(), "name another with --out");
  }
  const bool ours = says_it_is_ours(folder / "report.json", "tables") ||
                    says_it_is_ours(folder / "collectives.json", "collectives");
  for (const std::string& name : names) {
    const fs::path file = folder / name;
    if (!fs::exists(fs::symlink_status(file, none))) continue;
    if (ours && fs::is_regular_file(file, none)) continue;
    throw Error(ErrorKind::usage, "is there already and is no report's", file.string(),
                "name another folder with --out, or move it away");
  }
}

}  // namespace paceline
