// Runs `paceline sweep` as a user does, and a small study for it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "engine/core/child.h"
#include "engine/core/text.h"
#include "results/names.h"
#include "results/run_record.h"
#include "results/store.h"
#include "tests/support/expect_parts.h"
#include "tests/support/scratch.h"

namespace paceline {
inline namespace testing {

struct Ran {
  int code = -1;
  std::string out, err;
};

inline std::size_t lines_in(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

// Twenty steps of mnist-mlp: a run takes less than a second.
class SmallStudy : public ::testing::Test {
 protected:
  void write_spec(const std::string& keys) {
    std::ofstream(spec()) << R"({"name": "small", "workload": "mnist-mlp",
 "fixed": {"steps": 20, "train_limit": 2000, "test_limit": 500, "cpus_per_replica": 1,
           "oversubscribe": true},
 )" << keys << "}\n";
  }

  std::filesystem::path spec() const { return scratch_ / "small.json"; }
  std::filesystem::path results() const { return scratch_ / "results"; }
  std::filesystem::path study() const { return results() / "small"; }

  // The shell becomes the sweep, which then leads a process group of its own.
  ChildSetup command(const std::vector<std::string>& more) const {
    std::vector<std::string> words = {PACELINE_BINARY, "sweep", spec().string(),
                                      "--results=" + results().string(),
                                      "--data=" PACELINE_SOURCE_DIR "/data"};
    words.insert(words.end(), more.begin(), more.end());
    std::string line = "export COLUMNS=300; exec";
    for (const std::string& word : words) line += " " + shell_quote(word);
    line += " >" + shell_quote(out().string()) + " 2>" + shell_quote(err().string());
    return {{"/bin/sh", "-c", line}, environment_of_process()};
  }

  Ran sweep(const std::vector<std::string>& more = {}) const {
    const Watch watch = watch_child(command(more), [](std::string_view) {});
    EXPECT_EQ(watch.end.signal, 0);
    return {watch.end.exit_code, file_text(out()), file_text(err())};
  }

  Ran succeed(const std::vector<std::string>& more = {}) const {
    Ran ran = sweep(more);
    EXPECT_EQ(ran.code, 0) << ran.err;
    return ran;
  }

  // "gpus=1,.../1.1.json" of every completed record.
  std::set<std::string> completed() const {
    std::set<std::string> files;
    for (const Record& record : load_store(study()).records) {
      if (record->completed()) {
        files.insert(std::filesystem::relative(record.where(), study()).string());
      }
    }
    return files;
  }

  static bool is_built(const std::string& backend) { return find_name("backend", backend).built; }

  const Scratch scratch_;

 private:
  std::filesystem::path out() const { return scratch_ / "out"; }
  std::filesystem::path err() const { return scratch_ / "err"; }
};

}  // namespace testing
}  // namespace paceline
