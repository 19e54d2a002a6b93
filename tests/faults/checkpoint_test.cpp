// Killed while it writes a checkpoint, at each step of that: what is there can be gone on from, and
// the run that does ends with the same bits as one that was never killed.
#include <gtest/gtest.h>

#include <csignal>
#include <nlohmann/json.hpp>

#include "engine/core/json.h"
#include "tests/faults/victim.h"

namespace paceline::faults {
namespace {

namespace fs = std::filesystem;

struct Moment {
  const char* kind;  // see kill_at.cpp
  int count;
};

std::vector<std::string> make_run(const fs::path& run, const fs::path& record,
                                  const std::vector<std::string>& more = {}) {
  std::vector<std::string> command = training("mirrored", Starter::us,
                                              {"--steps", "40", "--checkpoint-every", "10steps",
                                               "--quiet", "--run-dir", run, "--record", record});
  command.insert(command.end(), more.begin(), more.end());
  return command;
}

std::string checksum_in(const fs::path& record) {
  return read_json(record).value().at("quality").at("parameter_checksum").get<std::string>();
}

// Of a run that nothing happens to.
std::string checksum_of_whole_run() {
  static const std::string checksum = [] {
    const Scratch kept;
    Victim whole(make_run(kept.path() / "run", kept.path() / "whole.json"));
    EXPECT_EQ(whole.wait(60).code, 0) << whole.errors();
    return checksum_in(kept.path() / "whole.json");
  }();
  return checksum;
}

class Checkpoint : public testing::TestWithParam<Moment> {};

TEST_P(Checkpoint, IsWholeOrNotThere) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer wants to be loaded first";
#endif
  const Scratch kept;
  const fs::path run = kept.path() / "run";
  Victim killed(make_run(run, kept.path() / "killed.json"),
                {{"LD_PRELOAD", KILL_AT},
                 {"PACELINE_TEST_KILL_AT", std::string(GetParam().kind) + " " +
                                               std::to_string(GetParam().count) + " " +
                                               (run / "checkpoints").string()}});
  ASSERT_EQ(killed.wait(60).code, 128 + SIGKILL) << killed.errors();

  Victim again(make_run(run, kept.path() / "again.json", {"--resume", "latest"}));
  ASSERT_EQ(again.wait(60).code, 0) << again.errors();
  EXPECT_EQ(checksum_in(kept.path() / "again.json"), checksum_of_whole_run());
  for (const auto& entry : fs::recursive_directory_iterator(run)) {
    EXPECT_FALSE(contains(entry.path().filename(), "tmp")) << entry.path() << " was left behind";
  }
}

// In the first checkpoint, which holds the initial weights, in a later one, and as they get their
// names.
INSTANTIATE_TEST_SUITE_P(KilledAt, Checkpoint,
                         testing::Values(Moment{"write", 2}, Moment{"write", 9}, Moment{"fsync", 3},
                                         Moment{"fsync", 12}, Moment{"rename", 1},
                                         Moment{"rename", 2}),
                         [](const auto& info) {
                           return info.param.kind + std::to_string(info.param.count);
                         });

}  // namespace
}  // namespace paceline::faults
