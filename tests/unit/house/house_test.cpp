// The architecture, checked by reading the sources: which folder may include which, and where a few
// things may stand.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "engine/core/hash.h"
#include "engine/core/json.h"
#include "results/parameters.h"
#include "tests/unit/house/sources.h"

namespace {

namespace fs = std::filesystem;
using paceline::house::read_sources;
using paceline::house::Source;
using paceline::house::sources;

// A folder may include itself, these, and what these may include is not implied.
const std::map<std::string, std::vector<std::string>> kMayUse = {
    {"engine/core", {}},
    {"engine/facts", {"engine/core"}},
    {"engine/launch", {"engine/core"}},
    {"engine/failure", {"engine/core", "engine/launch"}},
    {"engine/start", {"engine/core", "engine/launch", "engine/failure"}},
    {"engine/meter", {"engine/core", "engine/facts"}},
    {"engine/input", {"engine/core", "engine/facts"}},
    {"engine/plan", {"engine/core"}},
    {"engine/device", {"engine/core", "engine/facts", "engine/plan"}},
    {"engine/comm", {"engine/core", "engine/launch", "engine/failure"}},
    {"engine/train",
     {"engine/core", "engine/facts", "engine/launch", "engine/failure", "engine/input",
      "engine/plan", "engine/device", "engine/comm"}},
    {"results", {"engine/core", "engine/facts"}},
    {"workloads", {"engine/core", "engine/input", "engine/plan", "results"}},
    {"sweeps", {"engine/core", "engine/facts", "results"}},
    {"slurm", {"engine/core", "results", "sweeps"}},
    {"analysis", {"engine/core", "engine/facts", "results"}},
    {"run",
     {"engine/core", "engine/facts", "engine/launch", "engine/failure", "engine/start",
      "engine/meter", "engine/input", "engine/plan", "engine/device", "engine/comm", "engine/train",
      "results", "workloads", "sweeps", "slurm", "analysis"}},
    {"cli",
     {"engine/core", "engine/facts", "engine/launch", "engine/failure", "engine/start",
      "engine/meter", "engine/input", "engine/plan", "engine/device", "engine/comm", "engine/train",
      "results", "workloads", "sweeps", "slurm", "analysis", "run"}},
};

// Rooms of a folder, from the ground up: one may include itself and those below. What stands in the
// folder itself is its contract or its entrance, and is not of a room.
const std::map<std::string, std::vector<std::string>> kRooms = {
    {"analysis",
     {"statistics", "evidence", "study", "plots", "document", "findings", "table", "explain",
      "gate", "plan", "history", "predict"}},
    {"engine/input", {"formats", "decode", "cache", "loading", "prepare"}},
    {"engine/comm", {"rendezvous", "transport", "algorithms", "checks", "wrappers", "backends"}},
};

std::string record_folder(const std::string& path) {
  const auto first = path.find('/');
  if (path.substr(0, first) != "engine") return path.substr(0, first);
  return path.substr(0, path.find('/', first + 1));
}

// "engine/comm/backends/mpi" of a backend's, device's or workload's own folder; else empty.
std::string inner_folder(const std::string& path) {
  for (const char* shared : {"engine/comm/wrappers/recorded/", "engine/comm/wrappers/staged/"}) {
    if (path.starts_with(shared)) return "";  // for all backends, around any of them
  }
  for (const char* parent :
       {"engine/comm/backends/", "engine/comm/wrappers/", "engine/device/", "workloads/"}) {
    if (!path.starts_with(parent)) continue;
    const auto end = path.find('/', std::string(parent).size());
    if (end != std::string::npos) return path.substr(0, end);
  }
  return "";
}

std::vector<std::string> list_includes(const Source& source) {
  static const std::regex kInclude("#include \"([^\"]+/[^\"]+)\"");
  std::vector<std::string> paths;
  for (std::sregex_iterator it(source.text.begin(), source.text.end(), kInclude), end; it != end;
       ++it) {
    paths.push_back((*it)[1]);
  }
  return paths;
}

TEST(House, ArrowsPointDownOnly) {
  ASSERT_GT(sources().size(), 50U);
  for (const Source& source : sources()) {
    const std::string from = record_folder(source.path);
    ASSERT_TRUE(kMayUse.count(from)) << source.path << ": folder without a row in the table";
    const auto& allowed = kMayUse.at(from);
    for (const std::string& path : list_includes(source)) {
      const std::string to = record_folder(path);
      const bool fine = to == from || std::ranges::find(allowed, to) != allowed.end();
      EXPECT_TRUE(fine) << source.path << " includes " << path;
    }
  }
}

// A build without the engine leaves out these sources of `run`: the others call nothing of them but
// what engine_absent.cpp replaces.
TEST(House, WhatNeedsNoEngineLinksWithoutIt) {
  std::ifstream file(std::string(PACELINE_SOURCE_DIR) + "/run/CMakeLists.txt");
  std::stringstream text;
  text << file.rdbuf();
  const std::string lists = text.str();
  const std::size_t begin = lists.find("if(PACELINE_ENGINE)"), end = lists.find("else()", begin);
  ASSERT_NE(end, std::string::npos);
  std::set<std::string> of_engine, absent;
  for (const Source& source : sources()) {
    if (!source.path.starts_with("run/") || !source.path.ends_with(".cpp")) continue;
    const auto at = lists.find(source.path.substr(4), begin);
    if (at < end) of_engine.insert(source.path);
    if (source.path != "run/engine_absent.cpp") continue;
    for (const std::string& path : list_includes(source)) absent.insert(path);
  }
  EXPECT_GT(of_engine.size(), 10U);
  for (const Source& source : sources()) {
    if (!source.path.starts_with("run/") || !source.path.ends_with(".cpp") ||
        of_engine.contains(source.path)) {
      continue;
    }
    for (const std::string& path : list_includes(source)) {
      const std::string code = path.substr(0, path.size() - 1) + "cpp";
      EXPECT_TRUE(!of_engine.contains(code) || absent.contains(path))
          << source.path << " includes " << path << ", which the build without engine leaves out";
    }
  }
}

TEST(House, RoomsOfAFolderStandOnThoseBelow) {
  for (const auto& entry : kRooms) {
    const auto& folder = entry.first;
    const auto& rooms = entry.second;
    const auto find_floor = [&folder, &rooms](const std::string& path) {
      if (!path.starts_with(folder + "/")) return rooms.end();
      const auto end = path.find('/', folder.size() + 1);
      const std::size_t begin = folder.size() + 1;
      return std::ranges::find(rooms,
                               end == std::string::npos ? "" : path.substr(begin, end - begin));
    };
    for (const std::string& room : rooms) {
      EXPECT_TRUE(fs::exists(fs::path(PACELINE_SOURCE_DIR) / folder / room))
          << folder << " " << room;
    }
    for (const Source& source : sources()) {
      const auto from = find_floor(source.path);
      if (from == rooms.end()) continue;
      for (const std::string& path : list_includes(source)) {
        const auto to = find_floor(path);
        EXPECT_TRUE(to == rooms.end() || to <= from) << source.path << " includes " << path;
      }
    }
  }
}

// What a change of `header` compiles anew: of `all`, what is not a header itself.
std::vector<std::string> sources_reaching(const std::string& header,
                                          const std::vector<Source>& all) {
  std::map<std::string, std::vector<std::string>> included_by;
  for (const std::vector<Source>* some : {&sources(), &all}) {
    for (const Source& source : *some) {
      for (const std::string& path : list_includes(source)) {
        included_by[path].push_back(source.path);
      }
    }
  }
  std::set<std::string> reached = {header};
  for (std::vector<std::string> next = {header}; !next.empty();) {
    const std::string path = next.back();
    next.pop_back();
    for (const std::string& by : included_by[path]) {
      if (reached.insert(by).second) next.push_back(by);
    }
  }
  std::vector<std::string> compiled;
  for (const Source& source : all) {
    if (!source.path.ends_with("h") && reached.contains(source.path)) {
      compiled.push_back(source.path);
    }
  }
  return compiled;
}

// Facts are added often. A record holds them in boxes, so who reads others does not include them.
TEST(House, FewSourcesIncludeTheFactsOfARun) {
  const std::string header = "engine/facts/timing.h";
  EXPECT_LE(sources_reaching(header, sources()).size(), 80U);
  EXPECT_LE(sources_reaching(header, read_sources({"tests"})).size(), 60U);
}

TEST(House, BackendsDevicesAndWorkloadsDoNotKnowEachOther) {
  for (const Source& source : sources()) {
    const std::string mine = inner_folder(source.path);
    for (const std::string& path : list_includes(source)) {
      const std::string other = inner_folder(path);
      EXPECT_TRUE(other.empty() || other == mine) << source.path << " includes " << path;
    }
  }
}

// Folders are built or left out; only compilers, CPUs and versions of libraries are asked for in
// code.
TEST(House, FeaturesAreNotIfdefs) {
  const std::set<std::string> may = {"defined",           "CUDNN_VERSION",
                                     "MADV_HUGEPAGE",     "LIBCURL_VERSION_NUM",
                                     "PACELINE_WITH_CRC", "PACELINE_CUDA_LIBRARY_FOLDER"};
  const std::regex condition("(?:^|\\n)#\\s*(?:el)?if(?:n?def)?\\b([^\\n]*)"),
      name("\\b[A-Za-z_]\\w*");
  for (const Source& source : sources()) {
    const std::sregex_iterator none;
    for (std::sregex_iterator line(source.text.begin(), source.text.end(), condition); line != none;
         ++line) {
      const std::string words = (*line)[1];
      for (std::sregex_iterator word(words.begin(), words.end(), name); word != none; ++word) {
        EXPECT_TRUE(word->str().starts_with("__") || may.contains(word->str()))
            << source.path << ": #if " << words;
      }
    }
  }
}

TEST(House, OpenMpStandsInOnePlace) {
  for (const Source& source : sources()) {
    if (source.path.starts_with("engine/device/cpu/parallel.")) continue;
    EXPECT_EQ(source.text.find("#pragma omp"), std::string::npos) << source.path;
    EXPECT_EQ(source.text.find("#include <omp.h>"), std::string::npos) << source.path;
  }
}

// What a backend or a device needs stands where it registers; to know it by its name would make one
// more a change in many folders. Words of other tools lead to ours by name, and an ablation is one
// by name.
TEST(House, BackendsAndDevicesAreKnownByWhatTheyAre) {
  const std::regex name("\"(cuda|nccl|gloo|mpi|self|mirrored|null|reference)\"");
  const std::set<std::string> may = {"results/names.cpp",
                                     "analysis/study/switches.cpp",
                                     "slurm/script.cpp",
                                     "slurm/site.cpp",                    // a reference point
                                     "results/import/lines.cpp",          // JSON's null
                                     "results/import/kineto_trace.cpp"};  // PyTorch's names
  for (const Source& source : sources()) {
    const std::string folder = source.path.substr(0, source.path.rfind('/'));
    const bool own =
        folder.starts_with("engine/comm/backends/") || folder.starts_with("engine/device/");
    if (own || may.contains(source.path)) continue;
    std::istringstream lines(source.text);
    for (std::string line; std::getline(lines, line);) {
      const std::string code = line.substr(0, line.find("//"));
      EXPECT_FALSE(std::regex_search(code, name)) << source.path << ": " << line;
    }
  }
}

// Names from files reach a terminal and JSON through one place each, which makes them harmless.
TEST(House, TextLeavesThroughOnePlace) {
  for (const Source& source : sources()) {
    for (const char* printing :
         {"std::cout", "std::cerr", "std::clog", "std::puts", "std::fputs", "std::putchar",
          "std::fputc", "std::fwrite", "std::printf", "std::fprintf", "std::perror", "fmt::print",
          "std::print", " puts(", " fputs(", " fwrite(", " printf(", " fprintf("}) {
      if (source.path == "engine/core/output.cpp") continue;
      EXPECT_EQ(source.text.find(printing), std::string::npos)
          << source.path << " prints by itself: " << printing;
    }
    if (source.path != "engine/core/json.cpp") {
      EXPECT_EQ(source.text.find(".dump("), std::string::npos)
          << source.path << ": json_text() takes any text, dump() ends with an exception";
    }
  }
}

TEST(House, HeavyHeadersStayInSources) {
  for (const Source& source : sources()) {
    if (!source.path.ends_with(".h")) continue;
    // Templates, which few sources include.
    if (source.path == "engine/facts/json.h") continue;
    EXPECT_EQ(source.text.find("#include <nlohmann/json.hpp>"), std::string::npos) << source.path;
    EXPECT_EQ(source.text.find("#include <CLI/CLI.hpp>"), std::string::npos) << source.path;
    // The adapter to oneDNN's versions is for the sources of its folder.
    if (source.path == "engine/device/cpu/descriptors.h") continue;
    EXPECT_EQ(source.text.find("#include <dnnl.hpp>"), std::string::npos) << source.path;
  }
}

// Of two types with one name the linker takes the functions of either.
TEST(House, NoTwoHeadersDefineOneType) {
  static const std::regex kNamespace("namespace (paceline[a-z:_]*) \\{"),
      kType("\n(?:struct|class|enum class) ([A-Z]\\w*)(?: final)?(?: :[^{;]*)? \\{");
  std::map<std::string, std::string> where;
  for (const Source& source : sources()) {
    if (!source.path.ends_with(".h")) continue;
    std::smatch space;
    if (!std::regex_search(source.text, space, kNamespace)) continue;
    for (std::sregex_iterator it(source.text.begin(), source.text.end(), kType), end; it != end;
         ++it) {
      const std::string name = space[1].str() + "::" + (*it)[1].str();
      const auto [first, is_new] = where.emplace(name, source.path);
      EXPECT_TRUE(is_new) << name << " stands in " << first->second << " and " << source.path;
    }
  }
  EXPECT_GT(where.size(), 300U);
}

// What one more of a kind costs (docs/architecture.md): its own file, and its row in a table.
TEST(House, OneMoreVerbPlotOrFindingTouchesTwoFiles) {
  const auto check = [](const std::string& path, const char* pattern, const std::string& scope,
                        int least, int most) {
    const std::string folder = path.substr(0, path.find('/') + 1);
    const auto text = paceline::read_text(fs::path(PACELINE_SOURCE_DIR) / path);
    const std::regex row(pattern);
    std::set<std::string> names;
    for (std::sregex_iterator it(text.begin(), text.end(), row), end; it != end; ++it) {
      names.insert((*it)[1]);
    }
    EXPECT_GE(static_cast<int>(names.size()), least) << path;
    for (const std::string& name : names) {
      const auto uses = [&](const Source& source) {
        const std::string word = scope + name;
        for (auto at = source.text.find(word); at != std::string::npos;
             at = source.text.find(word, at + 1)) {
          const char next = source.text[at + word.size()];
          if (next != '_' && !std::isalnum(static_cast<unsigned char>(next))) return true;
        }
        return false;
      };
      const auto files = std::ranges::count_if(sources(), [&](const Source& source) {
        return source.path.starts_with(folder) && source.path != "cli/engine_absent.cpp" &&
               uses(source);
      });
      EXPECT_LE(files, most) << path << ": " << name;
    }
  };
  check("cli/main.cpp", "\\{\"[A-Za-z ]*\", (add_[a-z]+)\\}", "", 25, 2);
  check("analysis/plots/study_plots.cpp", "\\b([a-z_]+_plots)[,;}]", "", 8, 2);
  check("analysis/findings/finding_kinds.def", "FINDING\\(([a-z_]+),", "FindingKind::", 31,
        4);  // explain asks for trends
}

TEST(House, FilesAreReadInOneSitting) {
  for (const Source& source : sources()) {
    if (source.path.ends_with("_table.cpp")) continue;  // looked up in, not read
    EXPECT_LE(std::ranges::count(source.text, '\n'), 500) << source.path;
  }
}

// What a parameter means is said in its entry; others ask has_role() and the like.
TEST(House, NoOtherListOfParametersIsKept) {
  static const std::regex kList("\"[a-z_]+\"(?:,\\s*\"[a-z_]+\")+"), kName("\"([a-z_]+)\"");
  for (const Source& source : sources()) {
    if (source.path == "results/parameter_table.cpp") continue;
    static const std::regex kComment("//[^\n]*");
    const std::string code = std::regex_replace(source.text, kComment, "");
    for (std::sregex_iterator it(code.begin(), code.end(), kList), end; it != end; ++it) {
      const std::string list = it->str();
      int names = 0;
      for (std::sregex_iterator name(list.begin(), list.end(), kName); name != end; ++name) {
        if (paceline::find_parameter((*name)[1].str()) != nullptr) ++names;
      }
      EXPECT_LT(names, 3) << source.path << " keeps a list of parameters: " << list;
    }
  }
}

// Files and folders, from the root.
const std::set<std::string>& paths() {
  static const std::set<std::string> all = [] {
    std::set<std::string> found = {"CHANGELOG.md", "CONTRIBUTING.md", "README.md"};
    const fs::path root = PACELINE_SOURCE_DIR;
    for (const char* top : {"analysis", "cli", "cmake", "docs", "engine", "packaging", "results",
                            "run", "slurm", "sweeps", "tests", "workloads"}) {
      for (const auto& entry : fs::recursive_directory_iterator(root / top)) {
        const std::string path = fs::relative(entry.path(), root);
        if (!path.starts_with("results/local/")) found.insert(path);
      }
    }
    return found;
  }();
  return all;
}

// In a table, the columns "folder" and "file": `name` is name, name.* or a folder.
TEST(House, ReadmesNameFilesThatAre) {
  const std::regex name("`([^`]+)`");
  for (const std::string& page : paths()) {
    if (!page.ends_with("README.md")) continue;
    std::istringstream lines(paceline::read_text(fs::path(PACELINE_SOURCE_DIR) / page));
    std::vector<std::string> heads;
    fs::path folder;
    for (std::string line, cell; std::getline(lines, line);) {
      std::vector<std::string> cells;
      std::istringstream row(line.starts_with("|") ? line.substr(1) : "");
      while (std::getline(row, cell, '|')) cells.push_back(cell);
      if (heads.empty() || cells.empty()) {
        heads = cells;
        folder = fs::path(page).parent_path();
      }
      for (std::size_t i = 0; i < std::min(cells.size(), heads.size()); ++i) {
        if (heads[i] == " folder ") {
          if (cells[i] != " ") folder = fs::path(page).parent_path();
        } else if (heads[i] != " file ") {
          continue;
        }
        const fs::path in = folder;
        for (std::sregex_iterator it(cells[i].begin(), cells[i].end(), name), end; it != end;
             ++it) {
          std::string path = (in / (*it)[1].str()).lexically_normal();
          if (path.ends_with("/")) path.pop_back();
          const auto next = paths().lower_bound(path + ".");
          const bool is_stem = next != paths().end() && next->starts_with(path + ".");
          EXPECT_TRUE(paths().contains(path) || is_stem) << page << ": " << path << " is no file";
          if (heads[i] == " folder ") folder = path;
        }
      }
    }
  }
}

// A file that a comment or a page names without its folder is where the folder may look.
TEST(House, CommentsNameFilesThatAre) {
  const std::set<std::string> others = {"jpeglib.h", "tensorflow/core/lib/hash/tfrecord.h"};
  const std::regex word("(?:\\.\\.?/)*([\\w./-]*\\w\\.(?:h|cpp|cuh?))\\b");
  for (const std::string& from : paths()) {
    const std::string ending = fs::path(from).extension();
    if (ending != ".md" && ending != ".h" && ending != ".cpp" && ending != ".cu") continue;
    const auto uses = kMayUse.find(record_folder(from));
    std::istringstream lines(paceline::read_text(fs::path(PACELINE_SOURCE_DIR) / from));
    for (std::string line; std::getline(lines, line);) {
      if (ending != ".md") line.erase(0, line.find("//"));
      for (std::sregex_iterator it(line.begin(), line.end(), word), end; it != end; ++it) {
        const std::string file = (*it)[1];
        if (others.contains(file)) continue;
        if (file.starts_with("_") || file.find("NAME") != file.npos) continue;  // of any name
        const bool anywhere = uses == kMayUse.end() || file.find('/') != file.npos;
        EXPECT_TRUE(std::ranges::any_of(paths(),
                                        [&](const std::string& path) {
                                          if (path == file || !path.ends_with("/" + file))
                                            return path == file;
                                          const std::string to = record_folder(path);
                                          return anywhere || to == uses->first ||
                                                 file.ends_with("_test.cpp") ||
                                                 std::ranges::count(uses->second, to) > 0;
                                        }))
            << from << ": " << file << " is no file";
      }
    }
  }
}

// The page that lists them all, and nothing else of ours.
TEST(House, EveryVariableIsOnItsPage) {
  const fs::path root = PACELINE_SOURCE_DIR;
  const auto find = [](const std::string& text, const std::regex& name) {
    return std::set<std::string>{std::sregex_token_iterator(text.begin(), text.end(), name, 1),
                                 std::sregex_token_iterator()};
  };
  std::set<std::string> read =
      find(paceline::read_text(root / "quickstart"), std::regex("\\$\\{(PACELINE_[A-Z_]+)"));
  for (const Source& source : sources()) {
    read.merge(find(source.text, std::regex("\"((?:PACELINE|XDG)_[A-Z_]*[A-Z])\"")));
  }
  EXPECT_GE(read.size(), 25U);
  EXPECT_EQ(find(paceline::read_text(root / "docs/configuration.md"),
                 std::regex("\\b((?:PACELINE|XDG)_[A-Z_]+)")),
            read);
}

// Choices that were kept against another version of these kernels would stay for ever.
TEST(House, FasterKernelsThatCompeteGetAnotherNumber) {
  const fs::path kernels = fs::path(PACELINE_SOURCE_DIR) / "engine/device/cuda/kernels";
  std::string text;
  for (const char* name : {"attention.h", "channel_sums.h", "layer_norm.h", "norm.h", "pool.h",
                           "tokens.h", "update.h"}) {
    text += paceline::read_text(kernels / name);
  }
  EXPECT_EQ(paceline::hash_hex(text), "e4ea046836a1c53d")
      << "if their speed changed, raise kOwnKernels (engine/device/cuda/products.h); then this "
         "hash";
}

// Clang 14 does not read those of libstdc++ 12, and Debian 12 has both.
TEST(House, NoSourceUsesViews) {
  for (const std::string& path : paths()) {
    if (!path.ends_with(".cpp") && !path.ends_with(".h")) continue;
    const std::string text = paceline::read_text(fs::path(PACELINE_SOURCE_DIR) / path);
    EXPECT_EQ(text.find(std::string("std::") + "views::"), text.npos) << path;
  }
}

TEST(House, EveryFolderHasAReadme) {
  const fs::path root = PACELINE_SOURCE_DIR;
  for (const auto& [folder, uses] : kMayUse) {
    if (folder == "engine/core" || fs::exists(root / folder)) {
      EXPECT_TRUE(fs::exists(root / folder / "README.md")) << folder;
    }
  }
}

}  // namespace
