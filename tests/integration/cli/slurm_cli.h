// A study and a profile of a site, where nothing of Slurm is real.
#pragma once

#include <string>

#include "tests/integration/cli/paceline.h"

namespace paceline {
inline namespace testing {

inline const std::string kGpu = "'" PACELINE_SOURCE_DIR "/slurm/sites/generic-gpu.json'";
inline const std::string kCassava = "'" PACELINE_SOURCE_DIR "/sweeps/nyu-cassava.json'";

class CliSlurm : public Cli {
 protected:
  void SetUp() override {
    write("s.json", R"({"name": "s", "workload": "mnist-mlp", "repeats": 2,
      "fixed": {"device": "cpu", "cpus_per_task": 1}, "axes": {"gpus": [1], "backend": ["self"]}})");
    // A program of the compute nodes: a build without the engine submits, too.
    write("site.json", R"({"name": "x", "program": "/opt/paceline", "array": {"max_size": 100}})");
  }

  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder() / name) << text;
  }

  // The scripts, or the points, that a dry run left in a folder.
  std::string all(const std::string& name, const std::string& ending) const {
    std::string text;
    for (const auto& entry : std::filesystem::directory_iterator(folder() / name)) {
      if (entry.path().extension() == ending) text += file_text(entry.path());
    }
    return text;
  }

  // Programs of Slurm that answer with a line of the shell.
  std::string with(const std::string& programs) const {
    return "mkdir -p bin; play() { printf '#!/bin/sh\\n%s\\n' \"$2\" > bin/$1; chmod +x bin/$1; "
           "}\n" +
           programs + "\nexport PATH=$PWD/bin:$PATH\n";
  }
};

}  // namespace testing
}  // namespace paceline
