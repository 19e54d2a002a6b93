// Out of memory and out of disk: one line that says so, the right code, nothing half written.
#include <gtest/gtest.h>

#include <fstream>

#include "results/names.h"
#include "tests/faults/victim.h"
#include "tests/support/why_not.h"

namespace paceline::faults {
namespace {

constexpr bool kSanitized =
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    true;
#else
    false;
#endif

std::vector<std::string> short_run(const std::string& backend,
                                   const std::vector<std::string>& more) {
  std::vector<std::string> command = training(backend, Starter::us, {"--steps", "40", "--quiet"});
  command.insert(command.end(), more.begin(), more.end());
  return command;
}

class Limits : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const Name backend = find_name("backend", GetParam());
    if (!backend.built) GTEST_SKIP() << backend.reason;
  }
};

std::string backend_name(const testing::TestParamInfo<const char*>& info) {
  return info.param;
}

// Of address space: what a cgroup or an administrator's ulimit takes away.
using Memory = Limits;

TEST_P(Memory, TheLineReportsMemory) {
  if (kSanitized) GTEST_SKIP() << "sanitizers need all of the address space";
  Victim run(short_run(GetParam(), {"--batch-per-replica", "100000", "--record", "run.json"}), {},
             {{RLIMIT_AS, rlim_t{500} << 20}});
  const End end = run.wait(60);
  EXPECT_TRUE(end.in_time);
  EXPECT_TRUE(end.code == 64 || end.code == 70) << end.code;
  EXPECT_TRUE(end.last_line.starts_with("paceline: ")) << end.err;
  EXPECT_TRUE(contains(end.last_line, "memory")) << end.err;
  EXPECT_EQ(run.left(), std::vector<std::string>{});
  EXPECT_TRUE(std::filesystem::is_empty(run.folder()));
}

INSTANTIATE_TEST_SUITE_P(Of, Memory, testing::Values("mirrored", "ring"), backend_name);
INSTANTIATE_TEST_SUITE_P(DISABLED_AlsoOf, Memory, testing::Values("self", "mpi"), backend_name);

using FileSize = Limits;

TEST_P(FileSize, ARecordThatDoesNotFitIsNotLeft) {
  Victim run(short_run(GetParam(), {"--record", "run.json"}), {}, {{RLIMIT_FSIZE, 1024}});
  const End end = run.wait(60);
  EXPECT_TRUE(end.in_time);
  EXPECT_EQ(end.code, 65) << end.err;
  EXPECT_TRUE(contains(end.last_line, "cannot be written: File too large")) << end.err;
  EXPECT_EQ(run.left(), std::vector<std::string>{});
  EXPECT_TRUE(std::filesystem::is_empty(run.folder())) << "something was left behind";
}

INSTANTIATE_TEST_SUITE_P(Of, FileSize, testing::Values("mirrored", "ring"), backend_name);

// A file system of one or two pages, in a mount namespace of our own.
TEST(Disk, AFullOneLosesNothingElse) {
  const std::string refused = why_not("unshare -Urm mount -t tmpfs none /mnt");
  if (!refused.empty()) GTEST_SKIP() << "no right to make a mount namespace: " << refused;
  std::string line;
  for (const std::string& word : short_run("mirrored", {"--record", "small/run.json"})) {
    line += "'" + word + "' ";
  }
  Victim run({"unshare", "-Urm", "bash", "-c",
              "mkdir small && mount -t tmpfs -o size=8k none small && echo mine > small/other && " +
                  line +
                  "; code=$?; ls -A small > listing; cat small/other >> listing; exit $code"});
  const End end = run.wait(60);
  EXPECT_TRUE(end.in_time);
  EXPECT_EQ(end.code, 65) << end.err;
  expect_parts(end.last_line, {"No space left on device", "free some space"});
  std::ifstream listing(run.folder() / "listing");
  const std::string text((std::istreambuf_iterator<char>(listing)), {});
  // The record that says why it failed is small enough.
  EXPECT_EQ(text, "other\nrun.failed.json\nmine\n") << "something was left behind";
}

}  // namespace
}  // namespace paceline::faults
