// The ratchet: no folder grows, and no more names of the house's old dialect are given, without a
// line of sizes.txt in the diff. PACELINE_WRITE_SIZES=1 writes it anew.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <fstream>
#include <initializer_list>
#include <map>
#include <set>
#include <sstream>
#include <string>

#include "tests/unit/house/sources.h"

namespace {

using paceline::house::Source;
using paceline::house::sources;

struct Size {
  long lines = 0, files = 0;
};

// "analysis/plots", "cli": two levels where a folder has rooms.
std::string folder_name(const std::string& path) {
  static const std::set<std::string> kWithRooms = {"analysis", "engine", "results"};
  const std::size_t first = path.find('/'), second = path.find('/', first + 1);
  const std::string top = path.substr(0, first);
  const bool has_room = kWithRooms.contains(top) && second != std::string::npos;
  return has_room ? path.substr(0, second) : top;
}

std::map<std::string, Size> folder_sizes() {
  std::map<std::string, Size> sizes;
  for (const Source& source : sources()) {
    Size& size = sizes[folder_name(source.path)];
    size.lines += std::count(source.text.begin(), source.text.end(), '\n');
    ++size.files;
  }
  return sizes;
}

std::string without_comments(const std::string& text) {
  std::string code;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) code += line.substr(0, line.find("//")) + '\n';
  return code;
}

bool is_of_name(const std::string& name) {
  static const std::set<std::string> kOfTheStandard = {
      "any_of",       "all_of",           "none_of",  "find_first_of", "find_first_not_of",
      "find_last_of", "find_last_not_of", "first_of", "last_of",       "size_of"};
  return name.ends_with("_of") && std::islower(static_cast<unsigned char>(name.front())) != 0 &&
         !kOfTheStandard.contains(name);
}

bool is_speech(std::string name) {
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
  if (name.starts_with("leave_") || name == "remains_of") return true;
  return std::ranges::any_of(
      std::initializer_list<const char*>{"tell", "told", "hear", "last_words", "hopeless", "quill",
                                         "vigil", "clique", "patience", "hindrance",
                                         "surroundings"},
      [&](const char* word) { return name.find(word) != std::string::npos; });
}

// Names that a stranger cannot guess: functions called something_of, and speech for logging, files
// and processes.
std::map<std::string, long> dialect() {
  std::set<std::string> of;
  long speech = 0;
  for (const Source& source : sources()) {
    const std::string code = without_comments(source.text);
    const auto is_part = [&](std::size_t at) {
      return std::isalnum(static_cast<unsigned char>(code[at])) != 0 || code[at] == '_';
    };
    for (std::size_t at = 0, end = 0; at < code.size(); at = end + 1) {
      for (end = at; end < code.size() && is_part(end);) ++end;
      if (end == at) continue;
      const std::string name = code.substr(at, end - at);
      if (is_of_name(name) && end < code.size() && code[end] == '(') of.insert(name);
      speech += is_speech(name) ? 1 : 0;
    }
  }
  return {{"functions in _of", static_cast<long>(of.size())}, {"words of speech", speech}};
}

std::string rows() {
  std::ostringstream text;
  text << "# folder: lines, files; then names of the old dialect. No row may be exceeded.\n";
  for (const auto& [folder, size] : folder_sizes()) {
    text << folder << ": " << size.lines << ", " << size.files << '\n';
  }
  for (const auto& [kind, count] : dialect()) text << kind << ": " << count << '\n';
  return text.str();
}

std::map<std::string, Size> limits(std::istream& stream) {
  std::map<std::string, Size> limits;
  for (std::string line; std::getline(stream, line);) {
    const std::size_t colon = line.find(':'), comma = line.find(',');
    if (line.starts_with('#') || colon == std::string::npos) continue;
    Size& size = limits[line.substr(0, colon)];
    size.lines = std::stol(line.substr(colon + 1));
    if (comma != std::string::npos) size.files = std::stol(line.substr(comma + 1));
  }
  return limits;
}

TEST(House, FoldersKeepToTheirSizes) {
  const std::string file = std::string(PACELINE_SOURCE_DIR) + "/tests/unit/house/sizes.txt";
  if (std::getenv("PACELINE_WRITE_SIZES")) std::ofstream(file) << rows();
  std::ifstream stream(file);
  const auto most = limits(stream);
  const std::string advice = "; make it smaller, or raise its row in tests/unit/house/sizes.txt";
  for (const auto& [folder, size] : folder_sizes()) {
    const auto row = most.find(folder);
    ASSERT_NE(row, most.end()) << folder << " has no row in tests/unit/house/sizes.txt";
    EXPECT_LE(size.lines, row->second.lines) << "lines of " << folder << advice;
    EXPECT_LE(size.files, row->second.files) << "files of " << folder << advice;
  }
  for (const auto& [kind, count] : dialect()) {
    const auto row = most.find(kind);
    ASSERT_NE(row, most.end()) << kind;
    EXPECT_LE(count, row->second.lines) << kind << ": name it as CONTRIBUTING.md says";
  }
}

}  // namespace
