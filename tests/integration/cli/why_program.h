// A folder with a stand-in for PyTorch, whose work is sleep, and `why` of its programs.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/core/json.h"
#include "tests/integration/cli/paceline.h"

namespace paceline {

class WhyOfProgram : public Cli {
 protected:
  void SetUp() override {
    if (shell("command -v python3").code != 0) GTEST_SKIP() << "no python3 on the PATH";
    std::filesystem::copy(kPrograms / "launch.py", folder());
    std::filesystem::copy(kPrograms / "train.py", folder());
    std::ofstream(folder() / "notes.txt") << "mine\n";
  }

  // `why` with the stand-in's two ranks.
  Ran why(const std::string& options, const std::string& program) const {
    return shell("unset PYTHONDONTWRITEBYTECODE\nPYTHONPATH=" + kPrograms.string() +
                 " paceline why " + options + " -- python3 launch.py train.py " + program);
  }
  Json verdict(const std::string& options, const std::string& program) const {
    const Ran ran = why("--json --minutes 2 " + options, "--steps 134 " + program);
    EXPECT_TRUE(ran.code == 0 || ran.code == 2) << ran.err << ran.out;  // the machine may be busy
    return parse_json(ran.out);
  }
  void expect_no_measure(const std::string& program, int code,
                         const std::vector<std::string>& parts) const {
    const Ran ran = why("", program);
    EXPECT_EQ(ran.code, code) << ran.err;
    EXPECT_EQ(ran.out, "");
    expect_parts(ran.err, parts);
  }

  // What the hook writes of the ranks of a program that it is loaded into, without `why`.
  Json hooked(const std::string& settings, const std::string& program,
              const std::string& launcher = "python3 launch.py") const {
    std::filesystem::remove_all(folder() / "out");
    std::filesystem::create_directory(folder() / "out");
    Json all = {{"out", (folder() / "out").string()},
                {"warm", 34},
                {"steps", 60},
                {"seconds", 0},
                {"take", Json::array()},
                {"replicas", "2"},
                {"threads", 0},
                {"cpus", {0}},
                {"bucket_mb", 0},
                {"workers", 0},
                {"batch", 0}};
    all.update(parse_json(settings));
    expect_success(shell("export PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=" + kHook.string() + ":" +
                         kPrograms.string() + "\nexport PACELINE_WHY='" + json_text(all) +
                         "'\ntimeout 60 " + launcher + " train.py " + program));
    const std::filesystem::path file = folder() / "out" / "run.json";
    return std::filesystem::exists(file) ? parse_json(file_text(file)) : Json();
  }

  // Names and contents of all files of the folder, but the study.
  std::map<std::string, std::string> files() const {
    std::map<std::string, std::string> all;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder())) {
      const std::string name = entry.path().lexically_relative(folder());
      if (!name.starts_with("study")) {
        all[name] = entry.is_regular_file() ? file_text(entry.path()) : "";
      }
    }
    return all;
  }

  const std::filesystem::path kPrograms =
      std::filesystem::path(PACELINE_SOURCE_DIR) / "tests/integration/cli/stand_in_torch";
  const std::filesystem::path kHook = std::filesystem::path(PACELINE_SOURCE_DIR) / "sweeps/why";
};

inline double points(const Json& verdict, const std::string& key,
                     const std::string& rows = "causes") {
  for (const Json& cause : verdict.at(rows)) {
    if (cause.at("key") == key) return cause.at("points");
  }
  ADD_FAILURE() << "no " << key << " in " << verdict.dump(2);
  return 0;
}

}  // namespace paceline
