#include "results/shipped.h"

#include <algorithm>
#include <map>

#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/program_file.h"
#include "engine/core/text.h"

namespace paceline {

namespace fs = std::filesystem;

namespace {

std::vector<fs::path> roots() {
  return {program_file().parent_path() / "../share/paceline", fs::path(PACELINE_SOURCE)};
}

// By their names without ".json".
std::map<std::string, fs::path> shipped_in(const std::string& folder) {
  std::error_code code;
  std::map<std::string, fs::path> files;
  for (const fs::path& root : roots()) {
    for (fs::directory_iterator entry(root / folder, code), end; !code && entry != end;
         entry.increment(code)) {
      if (entry->path().extension() == ".json") {
        files.emplace(entry->path().stem().string(), entry->path().lexically_normal());
      }
    }
    code.clear();
  }
  return files;
}

}  // namespace

fs::path shipped_path(const fs::path& relative) {
  std::error_code code;
  if (relative.empty() || relative.is_absolute()) return "";
  for (const fs::path& root : roots()) {
    if (fs::exists(root / relative, code)) return (root / relative).lexically_normal();
  }
  return "";
}

fs::path find_shipped(const fs::path& given, const std::string& folder) {
  if (path_exists(given)) return given;
  if (const fs::path found = shipped_path(given); !found.empty()) return found;
  const auto files = shipped_in(folder);
  const bool is_name =
      !given.has_parent_path() && (given.extension() == ".json" || !given.has_extension());
  if (is_name) {
    if (const auto found = files.find(given.stem().string()); found != files.end()) {
      return found->second;
    }
  }
  std::vector<std::string> names;
  for (const auto& [name, file] : files) names.push_back(name);
  const auto near = nearest(given.stem().string(), names);
  const std::string fix = near ? "did you mean " + folder + "/" + *near + ".json?"
                          : names.empty() || !is_name ? "check the path"
                                                      : "shipped are: " + join(names, ", ");
  throw Error(ErrorKind::input, "no such file", given.string(), fix);
}

}  // namespace paceline
