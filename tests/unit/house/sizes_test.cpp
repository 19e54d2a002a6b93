// The ceiling and the ratchet: the whole stays below a row that only a hand raises, no folder grows
// by a hundred lines, and no more names of the house's old dialect are given, without a line of
// sizes.txt in the diff. tests/regenerate writes it anew.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <map>
#include <set>
#include <sstream>
#include <string>

#include "tests/support/scratch.h"
#include "tests/unit/house/sources.h"

namespace {

namespace fs = std::filesystem;
using paceline::house::Source;
using paceline::house::sources;

struct Size {
  long lines = 0, files = 0;
};
using Sizes = std::map<std::string, Size>;

constexpr char kSizes[] = "tests/unit/house/sizes.txt";
constexpr char kCode[] = "C++ and CUDA", kScripts[] = "scripts, CMake and JSON";

// The lowest limit that one more of them does not exceed.
long next_multiple(long count, long unit) {
  return (count / unit + 1) * unit;
}

long count_lines(const std::string& text) {
  return std::count(text.begin(), text.end(), '\n');
}

// "analysis/plots", "cli": two levels where a folder has rooms.
std::string folder_name(const std::string& path) {
  static const std::set<std::string> kWithRooms = {"analysis", "engine", "results"};
  const std::size_t first = path.find('/'), second = path.find('/', first + 1);
  const std::string top = path.substr(0, first);
  const bool has_room = kWithRooms.contains(top) && second != std::string::npos;
  return has_room ? path.substr(0, second) : top;
}

Sizes folder_sizes() {
  Sizes sizes;
  for (const Source& source : sources()) {
    Size& size = sizes[folder_name(source.path)];
    size.lines += count_lines(source.text);
    ++size.files;
  }
  return sizes;
}

bool is_script(const fs::path& file, const std::string& text) {
  static const std::set<std::string> kEndings = {".awk", ".cmake", ".job", ".json", ".py", ".sh"};
  const fs::path made = file.extension() == ".in" ? file.stem() : file.filename();
  return made == "CMakeLists.txt" || kEndings.contains(made.extension()) || text.starts_with("#!");
}

// Outside of tests, and without what was measured.
long script_lines() {
  const fs::path root = PACELINE_SOURCE_DIR;
  static const std::set<std::string> kData = {"choices", "comparisons", "local", "reference"};
  long lines = 0;
  for (const char* file : {"CMakeLists.txt", "CMakePresets.json", "quickstart"}) {
    lines += count_lines(paceline::file_text(root / file));
  }
  for (const char* top : {".ci", "analysis", "cli", "cmake", "docs", "engine", "packaging",
                          "results", "run", "slurm", "sweeps", "workloads"}) {
    for (auto it = fs::recursive_directory_iterator(root / top), end = fs::end(it); it != end;
         ++it) {
      if (it->path().parent_path() == root / "results" && kData.contains(it->path().filename())) {
        it.disable_recursion_pending();
      } else if (it->is_regular_file()) {
        const std::string text = paceline::file_text(*it);
        if (is_script(*it, text)) lines += count_lines(text);
      }
    }
  }
  return lines;
}

Sizes whole_sizes() {
  Sizes sizes;
  for (const auto& [folder, size] : folder_sizes()) sizes[kCode].lines += size.lines;
  sizes[kScripts].lines = script_lines();
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

Sizes read_limits(std::istream& stream) {
  Sizes limits;
  for (std::string line; std::getline(stream, line);) {
    const std::size_t colon = line.find(':');
    if (line.starts_with('#') || colon == std::string::npos) continue;
    Size& size = limits[line.substr(0, colon)];
    const std::size_t comma = line.find(',', colon);
    size.lines = std::stol(line.substr(colon + 1));
    if (comma != std::string::npos) size.files = std::stol(line.substr(comma + 1));
  }
  return limits;
}

// A row of the whole becomes lower with what it counts, and never higher.
std::string make_rows(const Sizes& before) {
  std::ostringstream text;
  text
      << "# Limits: lines of the whole, which only a hand raises; lines and files of each folder;\n"
         "# names of the old dialect. CONTRIBUTING.md, \"The ceiling\".\n";
  for (const auto& [whole, size] : whole_sizes()) {
    const auto row = before.find(whole);
    const long now = next_multiple(size.lines, 100);
    text << whole << ": " << (row == before.end() ? now : std::min(now, row->second.lines)) << '\n';
  }
  for (const auto& [folder, size] : folder_sizes()) {
    text << folder << ": " << next_multiple(size.lines, 100) << ", "
         << next_multiple(size.files, 10) << '\n';
  }
  for (const auto& [kind, count] : dialect()) text << kind << ": " << count << '\n';
  return text.str();
}

Sizes read_limits(const std::string& file) {
  std::ifstream stream(file);
  return read_limits(stream);
}

TEST(House, FoldersKeepToTheirSizes) {
  const std::string file = std::string(PACELINE_SOURCE_DIR) + "/" + kSizes;
  if (std::getenv("PACELINE_WRITE_SIZES")) {
    const std::string rows = make_rows(read_limits(file));
    std::ofstream(file) << rows;
  }
  const Sizes most = read_limits(file);
  for (const auto& [whole, size] : whole_sizes()) {
    const auto row = most.find(whole);
    ASSERT_NE(row, most.end()) << whole << " has no row in " << kSizes;
    EXPECT_LE(size.lines, row->second.lines)
        << "lines of " << whole << ": the whole is above its ceiling. A feature names what it "
        << "replaces: take as many lines away, or raise the row in " << kSizes
        << " by hand, and say in the commit what they are worth; no command raises it";
  }
  const std::string advice =
      std::string("; make it smaller, or let tests/regenerate write ") + kSizes + " anew";
  for (const auto& [folder, size] : folder_sizes()) {
    const auto row = most.find(folder);
    ASSERT_NE(row, most.end()) << folder << " has no row" << advice;
    EXPECT_LE(size.lines, row->second.lines) << "lines of " << folder << advice;
    EXPECT_LE(size.files, row->second.files) << "files of " << folder << advice;
  }
  for (const auto& [kind, count] : dialect()) {
    const auto row = most.find(kind);
    ASSERT_NE(row, most.end()) << kind;
    EXPECT_LE(count, row->second.lines) << kind << ": name it as CONTRIBUTING.md says";
  }
}

TEST(House, WritingSizesLowersTheCeilingAndNeverRaisesIt) {
  const auto written = [](const Sizes& before) {
    std::istringstream rows(make_rows(before));
    return read_limits(rows);
  };
  const Sizes low = written({{kCode, {500, 0}}, {kScripts, {100, 0}}, {"cli", {1, 1}}});
  EXPECT_EQ(low.at(kCode).lines, 500);
  EXPECT_EQ(low.at(kScripts).lines, 100);
  EXPECT_GT(low.at("cli").lines, folder_sizes().at("cli").lines);
  const Sizes high = written({{kCode, {9'000'000, 0}}, {kScripts, {9'000'000, 0}}});
  for (const auto& [whole, size] : whole_sizes()) {
    EXPECT_EQ(high.at(whole).lines, (size.lines / 100 + 1) * 100) << whole;
  }
}

}  // namespace
