// Killed while it writes its record, at each step of that: what is there is whole, and the next run
// finds its way.
#include <gtest/gtest.h>

#include <csignal>

#include "results/store.h"
#include "tests/faults/victim.h"

namespace paceline::faults {
namespace {

namespace fs = std::filesystem;

struct RecordMoment {
  const char* kind;  // see kill_at.cpp
  int count;
  bool record_is_there;
};

class Record : public testing::TestWithParam<RecordMoment> {};

TEST_P(Record, IsWholeOrNotThere) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer wants to be loaded first";
#endif
  const Scratch results;
  const fs::path store = results.path() / "study";
  const auto command =
      training("mirrored", Starter::us, {"--steps", "5", "--quiet", "--store", store});
  Victim run(command, {{"LD_PRELOAD", KILL_AT},
                       {"PACELINE_TEST_KILL_AT", std::string(GetParam().kind) + " " +
                                                     std::to_string(GetParam().count) + " " +
                                                     store.string()}});
  EXPECT_EQ(run.wait(60).code, 128 + SIGKILL) << run.errors();
  std::size_t records = 0;
  for (const auto& entry : fs::recursive_directory_iterator(store)) {
    const std::string name = entry.path().filename();
    EXPECT_FALSE(contains(name, ".tmp")) << name;
    records += name.ends_with(".json") ? 1 : 0;
  }
  EXPECT_EQ(records, GetParam().record_is_there ? 1U : 0U);

  Victim again(command);
  EXPECT_EQ(again.wait(60).code, 0) << again.errors();
  const StoreContent content = load_store(store);
  EXPECT_TRUE(content.rejected.empty()) << content.rejected[0].reason;
  EXPECT_EQ(content.records.size(), records + 1);
}

// The samples' file comes first, then the record: each is written, synced, given its name, and the
// folder is synced.
INSTANTIATE_TEST_SUITE_P(
    KilledAt, Record,
    testing::Values(RecordMoment{"write", 1, false}, RecordMoment{"fsync", 1, false},
                    RecordMoment{"linkat", 1, false}, RecordMoment{"write", 2, false},
                    RecordMoment{"fsync", 3, false}, RecordMoment{"linkat", 2, false},
                    RecordMoment{"fsync", 4, true}),
    [](const auto& info) { return info.param.kind + std::to_string(info.param.count); });

}  // namespace
}  // namespace paceline::faults
